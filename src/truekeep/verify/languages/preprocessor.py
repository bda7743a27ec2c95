"""Preprocessor lines of C, C++ and C#: finds the macros they define, and removes the lines from the text."""

from __future__ import annotations

from truekeep.verify.languages.lexer import BLANK
from truekeep.verify.languages.patterns import Patterns
from truekeep.verify.languages.walker import DefinitionMark

_PATTERNS = Patterns(
    {
        "directive": rb"\n\h*+#[^\n]*+(?:(?<=\\)\n[^\n]*+|(?<=\\\r)\n[^\n]*+)*+",
        "define": rb"\n\h*+#\h*+define\h++([A-Za-z_]\w*+)",
        "condition": rb"\n\h*+#\h*+(if|elif|else|endif)",
        # A file does not say what its macros mean: API of `API int f()`, `class API Box`, `if API (x)`. The pattern
        # begins with a plain set of letters, which makes the search several times as fast.
        "macro word": rb"[A-Z](?:(?<![\w.>][A-Z])[A-Z0-9]*+_?[A-Z0-9_]++(?:\([^()\n]*+\))?+\s++"
        rb"(?=[A-Za-z_][\w:]*+(?:<[^<>\n]*+>)?+(?:\s*+[*&]++\s*+|\s++)(?:[A-Za-z_]|\([*&]?\w++\)\s*+\()|template\b)"
        rb"|(?:(?<=class [A-Z])|(?<=struct [A-Z]))[A-Z0-9_]++(?:\([^()\n]*+\))?+\h++(?=[A-Za-z_])"
        rb"|(?<=\bif [A-Z])[A-Z0-9_]++(?= \()"
        rb"|(?<=\n[A-Z])[A-Z0-9_]++PARENS\h*+(?=\n++[^{\n]))",
        "macro behind": rb"\)(?:\s++[A-Z][A-Z0-9_]++(?:\([^()\n]*+\))?+)++(?=\s*+[;{])",  # of `int f() API;`
        "cpp macro": rb"(?<![\w.>(,=])[A-Z][A-Z0-9]*+_[A-Z0-9_]++\h++(?=(?:explicit\h++)?~?[A-Za-z_]\w*+\h*+\()"
        rb"|(?<=\w)\h++[A-Z][A-Z0-9]*+_[A-Z0-9_]++(?=\s*+[,)])"
        rb"|(?<=\n)[A-Z][A-Z0-9]*+_[A-Z0-9_]++\h*+(?=\n\s*+[^\s}=,{(;])",
        "macro parameter": rb"(?<=[,<])(\s*+)([A-Z][A-Z0-9_]{3,}+PARENS)(?=\s*+>)",
    }
)


def without_directives(text: bytes, macros: list[DefinitionMark]) -> bytes:
    """Blank preprocessor lines, and branches that would unbalance the braces."""
    parts: list[bytes] = []
    branches: list[tuple[int, int, bool]] = []  # braces opened and closed before a branch, whether others are left out
    opened = closed = at = dropped = 0
    for match in _PATTERNS["directive"].finditer(text):
        code = text[at : match.start()]
        at = match.end()
        if dropped:
            code = code.translate(BLANK)
        else:
            opened += code.count(b"{")
            closed += code.count(b"}")
        parts += (code, match[0].translate(BLANK))
        if name := _PATTERNS["define"].match(match[0]):
            begin = match.start() + name.start(1)
            macros.append(DefinitionMark(begin, begin + len(name[1]), "macro", b"", match.start() + 1, match.end()))
        condition = _PATTERNS["condition"].match(match[0])
        if condition is None:
            continue
        if condition[1] == b"if":
            branches.append((opened, closed, False))
        elif branches and condition[1] == b"endif":
            dropped -= branches.pop()[2]
        elif branches and not branches[-1][2]:
            if opened - branches[-1][0] != closed - branches[-1][1]:
                branches[-1] = (opened, closed, True)
                dropped += 1
            else:
                branches[-1] = (opened, closed, False)
    parts.append(text[at:])
    return b"".join(parts)


def without_macro_words(text: bytes) -> bytes:
    """Blank the words in capitals around a declaration, such as `API` of `class API Box {`."""
    text = _PATTERNS["macro behind"].sub(lambda match: b")" + match[0][1:].translate(BLANK), text)
    return _PATTERNS["macro word"].sub(lambda match: match[0].translate(BLANK), text)


def without_cpp_macros(text: bytes) -> bytes:
    """Blank macros around constructors and parameters, and put a type for those that are template parameters."""
    text = _PATTERNS["cpp macro"].sub(lambda match: match[0].translate(BLANK), text)
    return _PATTERNS["macro parameter"].sub(lambda match: match[1] + b"int" + match[2][3:].translate(BLANK), text)
