"""What a source file defines: the text of a file goes in, names with their scopes and lines come out.

This is lexing, not parsing. One regular expression per language tells comments and strings from code; then a walker
looks for what the code defines: by indentation (Python), by keywords and braces (JavaScript, Rust, Go ...), by the
words before a bracket (Java, C ...), by lines (Ruby, shell, SQL ...) or by keys (YAML, TOML ...). So a repository is
read in about a second, and a file of any content in linear time: what looks ahead cannot go back, or pays with fuel.

A name that is called, imported or mentioned is not defined. When in doubt a definition is missed rather than invented,
for an invented one makes a thing that is gone look alive. Locals and parameters do not count.

All texts are bytes and all offsets count bytes. Nothing here reads a file or knows what a claim is.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable
from functools import cache
from typing import NamedTuple


class Definition(NamedTuple):
    """One thing that a file defines."""

    name: str
    scope: str
    """What it stands in, "Outer.Inner"; empty at the top of the file."""
    kind: str
    line: int
    """Of the name, 1-based."""
    end: int
    """The last line of its body."""
    start: int
    """Offset of its beginning: decorators and modifiers belong to it."""
    stop: int
    """Offset behind its body."""


def language_of(path: str) -> str:
    """The language of a file by its name, or "" when it is not source. The text is not looked at."""
    name = path.rpartition("/")[2].lower()
    if found := _FILES.get(name):
        return found
    if name.startswith(("dockerfile.", "containerfile.")):
        return "dockerfile"
    if name.startswith((".env.", ".env-", ".env_")):
        return "env"
    stem, _, extension = name.rpartition(".")
    return _EXTENSIONS.get(extension, "") if stem else ""


def is_config(language: str) -> bool:
    """Whether files of this language hold keys and values, so that every key counts as a word of the code."""
    return language in _CONFIG


def clean(data: bytes, language: str) -> bytes:
    """The same length and the same lines, with comments and docstrings blanked.

    Other strings stay: they hold flags, names of settings and environment variables.
    """
    if language in _MARKUP:
        return _clean_markup(data)
    if language not in _LEXES:
        return data
    return _paint(data, language, _without_docstrings if language == "python" else _without_comments)


def names(cleaned: bytes, language: str) -> list[bytes]:
    """Every name that a cleaned file defines, once for every time. Fast: this runs over a whole repository."""
    walk = _WALKS.get(language)
    if walk is None:
        return []
    found = [cleaned[mark.begin - 1 : mark.end - 1] for mark in walk(cleaned, language).marks]
    return found if cleaned.isascii() else [name for name in found if _is_text(name)]


def definitions(cleaned: bytes, language: str) -> list[Definition]:
    """The same names, each with its scope, lines and offsets, in the order of the file."""
    walk = _WALKS.get(language)
    if walk is None:
        return []
    walked = walk(cleaned, language)
    marks = [mark for mark in walked.marks if _is_text(cleaned[mark.begin - 1 : mark.end - 1])]
    walked.finish(cleaned, walked.text, marks, language)
    breaks = [match.start() for match in re.finditer(b"\n", cleaned)]
    found = []
    for mark in marks:  # a walker's text begins with a line break, so its offsets are one too high
        begin, end = mark.begin - 1, mark.end - 1
        stop = min(max(mark.stop - 1, end), len(cleaned))
        found.append(
            Definition(
                cleaned[begin:end].decode(),
                mark.scope.decode("utf-8", "replace"),
                mark.kind,
                bisect_left(breaks, begin) + 1,
                bisect_left(breaks, max(begin, stop - 1)) + 1,
                max(0, min(mark.start - 1, begin)),
                stop,
            )
        )
    found.sort(key=lambda one: (one.line, one.start))
    return found


def body_digest(cleaned: bytes, definition: Definition) -> str:
    """A short digest of a definition's code, equal when only white space, comments or docstrings differ.

    White space inside of strings is code, and so is the layout of a Python body. The layout of other bodies is not.
    """
    body = cleaned[definition.start : definition.stop]
    header = _pattern("python header").search(body)
    layout = header is not None and header[1] == definition.name.encode()
    levels = [definition.start - (cleaned.rfind(b"\n", 0, definition.start) + 1)]
    depth = 0

    def squeeze(match: re.Match[bytes]) -> bytes:
        nonlocal depth
        token = match[0]
        if token in b"([{":
            depth += 1
        elif token in b")]}":
            depth = max(0, depth - 1)
        elif token[0] not in b"\"'`":
            if layout and not depth and token[0] != _BACKSLASH and b"\n" in token:
                indent = len(token) - token.rfind(b"\n") - 1
                while len(levels) > 1 and indent < levels[-1]:
                    levels.pop()
                if indent > levels[-1]:
                    levels.append(indent)
                return b"\n%d " % len(levels)
            around = body[match.start() - 1 : match.start()] + body[match.end() : match.end() + 1]
            return b" " if len(around) == 2 and _pattern("word").fullmatch(around) else b""
        return token

    return hashlib.blake2b(_pattern("digest token").sub(squeeze, body.strip()), digest_size=8).hexdigest()


# --- languages -----------------------------------------------------------------------------------------------------

_EXTENSIONS = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyw pyx pxd py-tpl",
        "javascript": "js jsx mjs cjs es6",
        "typescript": "ts tsx mts cts",
        "vue": "vue",
        "svelte": "svelte astro",
        "html": "html htm xhtml",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "groovy": "groovy gradle",
        "kotlin": "kt kts",
        "scala": "scala sc sbt",
        "csharp": "cs",
        "swift": "swift",
        "dart": "dart",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh ino",
        "ruby": "rb rake gemspec ru podspec",
        "php": "php phtml php5 inc",
        "shell": "sh bash zsh ksh bats",
        "lua": "lua",
        "perl": "pl pm",
        "elixir": "ex exs",
        "haskell": "hs",
        "ocaml": "ml mli",
        "zig": "zig zon",
        "nim": "nim nims",
        "sql": "sql ddl psql",
        "make": "mk mak",
        "dockerfile": "dockerfile",
        "protobuf": "proto",
        "graphql": "graphql gql graphqls",
        "terraform": "tf tfvars hcl",
        "css": "css scss less",
        "yaml": "yaml yml",
        "toml": "toml",
        "json": "json jsonc json5 webmanifest",
        "ini": "ini cfg conf",
        "env": "env",
        "properties": "properties",
    }.items()
    for extension in extensions.split()
}
_FILES = {
    name: language
    for language, files in {
        "make": "makefile gnumakefile",
        "dockerfile": "dockerfile containerfile",
        "ruby": "rakefile gemfile podfile vagrantfile brewfile fastfile",
        "groovy": "jenkinsfile",
        "python": "sconstruct wscript",
        "shell": ".bashrc .bash_profile .zshrc .profile",
        "toml": "cargo.lock poetry.lock uv.lock pipfile",
        "json": "composer.lock pipfile.lock .babelrc .eslintrc .prettierrc .swcrc",
        "yaml": ".clang-format .clang-tidy",
        "ini": ".editorconfig .gitconfig .gitmodules .npmrc .flake8 .pylintrc .coveragerc",
        "env": ".env",
    }.items()
    for name in files.split()
}
_CONFIG = frozenset(("yaml", "toml", "json", "ini", "env", "properties"))
_MARKUP = frozenset(("vue", "svelte", "html"))


# --- lexing ----------------------------------------------------------------------------------------------------------
# What spans lines ends at its closing mark or else with the file. When the latter happens, the rest of the text is read
# once more with patterns for single lines, so that one stray mark does not hide the rest of a file.

_QUOTE, _BACKSLASH, _HASH, _COLON, _EQUALS, _NEWLINE, _COMMA, _SEMICOLON = b'"\\#:=\n,;'
_PAREN, _BRACKET, _BRACE, _CLOSING, _ANGLE = b"([{}<"
_BYTE_ORDER = b"\xef\xbb\xbf"
_BLANK = bytes(byte if byte in b"\r\n" else 32 for byte in range(256))


class _Token(NamedTuple):
    """A comment or a string: its pattern, and if it spans lines the one for the lines behind one that is not closed."""

    pattern: bytes
    single: bytes = b""


def _span(opens: bytes, closes: bytes, single: bytes) -> _Token:
    """From a mark to another, of two bytes."""
    first, second = (re.escape(closes[at : at + 1]) for at in (0, 1))
    inner = rb"[^%b]*+(?:%b(?!%b)[^%b]*+)*+" % (first, first, second, first)
    return _Token(re.escape(opens) + inner + rb"(?:%b%b|\Z)" % (first, second), single)


def _nesting(opens: bytes, closes: bytes) -> _Token:
    """The same, with others inside of it."""
    head, tail = re.escape(opens), re.escape(closes)
    a, b, c, d = (re.escape(bytes((byte,))) for byte in opens + closes)
    plain = rb"[^%b%b]++|%b(?!%b)|%b(?!%b)" % (a, c, c, d, a, b)
    inner = rb"(?:%b|%b(?:%b)*+%b|%b)*+" % (plain, head, plain, tail, a)
    return _Token(head + inner + rb"(?:%b|\Z)" % tail, head + rb"[^\n]*+")


def _string(mark: bytes, *, lines: bool = False, behind: bytes = b"") -> _Token:
    """A string with escapes. It ends with its line, unless its language lets it go on."""
    single = rb"%b%b[^%b\\\n]*+(?:\\(?:\r\n|.)?[^%b\\\n]*+)*+%b?" % (mark, behind, mark, mark, mark)
    if not lines:
        return _Token(single)
    return _Token(rb"%b%b[^%b\\]*+(?:\\.?[^%b\\]*+)*+(?:%b|\Z)" % (mark, behind, mark, mark, mark), single)


def _tripled(mark: bytes, *, raw: bool = False) -> _Token:
    stops = mark if raw else mark + rb"\\"
    step = (b"" if raw else rb"\\.|") + rb"%b(?!%b%b)" % (mark, mark, mark)
    return _Token(rb"%b[^%b]*+(?:(?:%b)[^%b]*+)*+(?:%b|\\?\Z)" % (mark * 3, stops, step, stops, mark * 3), mark * 3)


def _raw(prefix: bytes, hashes: int) -> bytes:
    """A raw string of Rust. It is found by its quote: a letter would make the search slow."""
    fence = b"#" * hashes
    inner = rb'[^"]*+(?:"(?!%b)[^"]*+)*+' % fence if hashes else rb'[^"]*+'
    return rb'"(?<=\b%b%b")%b(?:"%b|\Z)' % (prefix, fence, inner, fence)


def _heredoc(opens: bytes, word: bytes) -> _Token:
    head = opens + rb"[\"'`]?(?P<%b>" + word + rb")[\"'`]?[^\n]*+\n"
    closed = head.replace(b"%b", b"here") + rb"(?:(?s:.*?)\n)?\h*+(?P=here)(?!\w)"
    return _Token(closed + b"|" + head.replace(b"%b", b"unclosed") + rb"(?s:.*)", opens)


def _statement(*strings: _Token) -> bytes:
    """A Python string that has its lines for itself."""
    return rb"\n\h*+[rRuU]?+(?:" + b"|".join(one.pattern for one in strings) + rb")(?=\h*+[\r\n#;])(?P<statement>)"


_TEMPLATE = rb"[^`\\$]*+(?:(?:\\.|\$(?!\{)|\$\{[^{}`\"'/\\]*+\})[^`\\$]*+)*+(?:`|(?P<nested>\$\{)|\\?\Z)"
_PYTHON = (_tripled(b'"'), _tripled(b"'"), _string(b'"'), _string(b"'"))
_TOKENS = {
    "//": _Token(rb"//[^\n]*+"),
    "// no url": _Token(rb"/(?<!:/)/[^\n]*+"),
    "// php": _Token(rb"//[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "#": _Token(rb"#[^\n]*+"),
    "# php": _Token(rb"#(?!\[)[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "# word": _Token(rb"#(?<![^\s;|&()\[\]{},`]#)(?!\{)[^\n]*+"),
    "# blank": _Token(rb"#(?<!\S#)[^\n]*+"),
    "# escape": _Token(rb"#(?<!\\#)[^\n]*+"),
    "# line": _Token(rb"\n\h*+[#;!][^\n]*+"),
    "--": _Token(rb"--[^\n]*+"),
    "-- word": _Token(rb"--(?<![!#$%&*+./<=>?@\\^|~:]--)-*+(?![!#$%&*+./<=>?@\\^|~:])[^\n]*+"),
    "/* */": _span(b"/*", b"*/", rb"/\*[^\n]*+"),
    "/* nesting */": _nesting(b"/*", b"*/"),
    "{- -}": _nesting(b"{-", b"-}"),
    "(* *)": _nesting(b"(*", b"*)"),
    "#[ ]#": _span(b"#[", b"]#", rb"#[^\n]*+"),
    "<!-- -->": _Token(rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)", b"<!--"),
    "--[[ ]]": _Token(rb"--\[(?P<level>=*+)\[(?s:.*?)(?:\](?P=level)\]|\Z)", rb"--\[[^\n]*+"),
    "[[ ]]": _Token(rb"\[(?P<long>=*+)\[(?s:.*?)(?:\](?P=long)\]|\Z)", rb"\[\["),
    "=begin": _Token(rb"\n=begin\b(?s:.*?)(?:\n=end\b[^\n]*+|\Z)", rb"\n=begin"),
    "=pod": _Token(rb"\n=[a-z]\w*+(?s:.*?)(?:\n=cut\b[^\n]*+|\Z)", rb"\n=[a-z]\w*+"),
    "__END__": _Token(rb"\n__(?:END|DATA)__[ \t\r]*+\n(?s:.*)"),
    "@doc": _Token(
        rb"@(?:module|type)?doc\h++(?:~[sS])?(?:" + _tripled(b'"').pattern + b"|" + _string(b'"').pattern + b")",
        rb"@(?:module|type)?doc\h++" + _string(b'"').pattern,
    ),
    "description": _Token(_tripled(b'"').pattern + rb'|\n\h*+"[^"\n]*+"(?=[ \t\r]*+\n)', b'"""'),
    '"': _string(b'"'),
    "'": _string(b"'"),
    # An apostrophe in a word is text between tags, or parts digits, and begins no string.
    "' no word": _string(
        b"'", behind=rb"(?:(?<!\w')|(?<=\breturn')|(?<=\bcase')|(?<=\btypeof')|(?<=\bin')|(?<=\bof'))"
    ),
    "' no digit": _string(b"'", behind=rb"(?<![0-9a-fA-F]')"),
    '" lines': _string(b'"', lines=True),
    "' lines": _string(b"'", lines=True),
    "' shell": _Token(rb"'(?<!\w')[^']*+(?:'|\Z)", rb"'[^'\n]*+'?"),
    "' sql": _Token(rb"'[^']*+(?:'|\Z)", rb"'[^'\n]*+'?"),
    "' char": _Token(rb"'(?:[^'\\\n\x80-\xff]|[\x80-\xff]{2,4}|\\(?:u\{?\w{1,8}\}?|x\w\w|[0-7]{1,3}|[^\n]))'"),
    '" closed': _Token(rb'"(?<!\\")[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'),
    "' closed": _Token(rb"'[^'\n]*+'"),
    '"""': _tripled(b'"'),
    "'''": _tripled(b"'"),
    '""" raw': _tripled(b'"', raw=True),
    "`": _Token(rb"`[^`]*+(?:`|\Z)", b"`"),
    "` template": _Token(b"`" + _TEMPLATE, b"`"),
    "statement": _Token(_statement(*_PYTHON), _statement(*_PYTHON[2:])),
    "/re/": _Token(
        # A slash begins a regular expression where a value may stand: behind an operator, a bracket, some words.
        rb"/(?:(?<=[=(,:\[!&|?{;+*%~^\n-]/)|(?<=[=(,:\[!&|?{;+*%~^-] /)|(?<==> /)|(?<=[ \t\n]\h/)|(?<=\breturn /)"
        rb"|(?<=\bcase /)|(?<=\btypeof /)|(?<=\bin /)|(?<=\bof /)|(?<=\bwhen /)|(?<=\bif /)|(?<=\bunless /))"
        rb"(?![*/> \t=])[^\\/\[\n]*+(?:(?:\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,200}+\])[^\\/\[\n]*+)*+/[a-z]*+"
    ),
    "%r{}": _Token(rb"%[rqQwWiI](?:\{[^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}|\[[^\[\]\n]*+\]|\([^()\n]*+\))"),
    'r"': _Token(
        b"|".join(_raw(prefix, hashes) for prefix in (b"r", b"br", b"cr") for hashes in range(4)),
        rb'"(?<=\br")[^"\n]*+"?',
    ),
    'R"(': _Token(rb'"(?<=R")(?P<fence>[^\s()\\]{0,16}+)\((?s:.*?)(?:\)(?P=fence)"|\Z)', rb'"(?<=R")'),
    '@"': _Token(rb'"(?:(?<=@")|(?<=@\$"))[^"]*+(?:""[^"]*+)*+(?:"|\Z)', rb'"(?<=@")[^"\n]*+"?'),
    "<<EOF": _heredoc(rb"<<(?<!<<<)(?!<)[-~]?\h*+", rb"[A-Za-z_]\w*+"),
    "<<~EOF": _heredoc(rb"<<(?<![<\w]<<)(?!<)[-~]?", rb"[A-Z_][A-Z0-9_]*+"),
    "<<<EOF": _heredoc(rb"<<<\h*+", rb"[A-Za-z_]\w*+"),
    "?>": _Token(rb"\?>(?s:.*?)(?:<\?|\Z)"),
    "<?": _Token(rb"\n(?<!.\n)[^<]*+(?:<(?!\?)[^<]*+)*+<\?"),
    "\\\\": _Token(rb"\\\\[^\n]*+"),
    "\\.": _Token(rb"\\[^\n]"),
    "?c": _Token(rb"\?[#\"'](?=[\s,)\]])"),
}
# The comments and the strings of each language, in the order in which they are tried.
_LEXES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": (("#",), ("statement", '"""', "'''", '"', "'")),
    "javascript": (("/* */", "// no url"), ('"', "' no word", "` template", "/re/")),
    "go": (("/* */", "//"), ('"', "`", "' char")),
    "rust": (("/* nesting */", "//"), ('r"', '" lines', "' char")),
    "java": (("/* */", "//"), ('"""', '"', "'")),
    "groovy": (("/* */", "// no url"), ('"""', "'''", '"', "'")),
    "kotlin": (("/* nesting */", "//"), ('""" raw', '"', "' char")),
    "scala": (("/* nesting */", "//"), ('""" raw', '"', "' char")),
    "csharp": (("/* */", "//"), ('@"', '""" raw', '"', "'")),
    "swift": (("/* nesting */", "//"), ('"""', '"')),
    "dart": (("/* */", "//"), ('"""', "'''", '"', "'")),
    "c": (("/* */", "//"), ('"', "'")),
    "cpp": (("/* */", "//"), ('R"(', '"', "' no digit")),
    "ruby": (("=begin", "__END__", "# word"), ("<<~EOF", '"', "'", "/re/", "%r{}", "?c")),
    "php": (("/* */", "// php", "# php"), ("<?", "<<<EOF", "?>", '" lines', "' lines")),
    "shell": (("# word",), ("\\.", "<<EOF", '" lines', "' shell")),
    "lua": (("--[[ ]]", "--"), ("[[ ]]", '"', "'")),
    "perl": (("=pod", "__END__", "# word"), ("\\.", "<<~EOF", '"', "' no word")),
    "elixir": (("@doc", "# word"), ('"""', "'''", '"', "?c")),
    "haskell": (("{- -}", "-- word"), ('"', "' char")),
    "ocaml": (("(* *)",), ('" lines', "' char")),
    "zig": (("//",), ("\\\\", '"', "' char")),
    "nim": (("#[ ]#", "#"), ('""" raw', '"', "' char")),
    "sql": (("/* */", "--"), ("' sql",)),
    "make": (("# escape",), ()),
    "dockerfile": (("# line",), ()),
    "protobuf": (("/* */", "//"), ('"', "'")),
    "graphql": (("description", "#"), ('"',)),
    "terraform": (("/* */", "// no url", "#"), ("<<EOF", '"')),
    "css": (("/* */", "// no url"), ('"', "'")),
    "html": (("<!-- -->",), ()),
    "yaml": (("# blank",), ('" closed', "' closed")),
    "toml": (("#",), ('"""', "'''", '" closed', "' closed")),
    "json": (("/* */", "//"), ('"',)),
    "ini": (("# line",), ()),
    "env": (("# blank",), ('" closed', "' closed")),
    "properties": (("# line",), ()),
}
_LEXES["typescript"] = _LEXES["javascript"]

_Paint = Callable[[re.Match[bytes]], bytes]
_Odd = list[re.Match[bytes]]
_Painter = Callable[[bytes, _Odd], _Paint]


class _Lexis(NamedTuple):
    """The tokens of a language as one alternation.

    The last group of a match tells what it is: nothing for a string, "comment", "statement" for a Python string on
    lines of its own. A painter puts others aside: "nested" is a template literal up to the code in it, "open" is what
    ends with the text.
    """

    tokens: re.Pattern[bytes]
    single: re.Pattern[bytes]


@cache
def _lexis(language: str) -> _Lexis:
    comments, strings = ([_TOKENS[name] for name in group] for group in _LEXES[language])

    def compiled(pattern: Callable[[_Token], bytes]) -> re.Pattern[bytes]:
        comment = b"(?:" + b"|".join(map(pattern, comments)) + b")(?P<comment>)"
        return _compiled(b"(?:" + b"|".join((comment, *map(pattern, strings))) + rb")(?P<open>\Z)?+")

    return _Lexis(compiled(lambda token: token.pattern), compiled(lambda token: token.single or token.pattern))


def _paint(data: bytes, language: str, painter: _Painter) -> bytes:
    """The text with its comments and strings as a painter returns them, all of the same length."""
    lexis = _lexis(language)
    text = _framed(data)  # a pattern may begin with the break before a line; what is closed ends before the last
    odd: _Odd = []
    painted = lexis.tokens.sub(painter(text, odd), text)
    at = odd[-1].start() if odd and odd[-1].end() == len(text) else -1
    if any(match.lastgroup == "nested" for match in odd):
        painted, at = _paint_templates(text, lexis, painter(text, []))
    if at >= 0:
        painted = painted[:at] + lexis.single.sub(painter(text[at:], []), text[at:])
    return _BYTE_ORDER + painted[4:-1] if data.startswith(_BYTE_ORDER) else painted[1:-1]


def _framed(text: bytes) -> bytes:
    """A text between line breaks: every line begins behind one. A byte order mark is no part of its line either."""
    if text.startswith(_BYTE_ORDER):
        text = b"\n" * len(_BYTE_ORDER) + text[len(_BYTE_ORDER) :]
    return b"\n" + text + b"\n"


def _paint_templates(text: bytes, lexis: _Lexis, paint: _Paint) -> tuple[bytes, int]:
    """As `sub` does, for a text with code inside of template literals that is not plain: this needs a stack.

    Also where something begins that is not closed, or -1.
    """
    braces = _braced_tokens(lexis)
    depths: list[int] = []
    parts: list[bytes] = []
    at = begin = 0
    while match := (braces if depths else lexis.tokens).search(text, at):
        parts.append(text[at : match.start()])
        at = match.end()
        begin = begin if depths else match.start()
        token = match[0]
        opens = match.lastgroup == "nested"
        if token == b"{":
            depths[-1] += 1
        elif token == b"}":
            depths[-1] -= 1
        if token not in b"{}" or depths[-1] < 0:
            token = paint(match)
        parts.append(token)
        if depths and depths[-1] < 0:
            depths.pop()
            if rest := _pattern("template rest").match(text, at):
                parts.append(paint(rest))
                at = rest.end()
                opens = rest.lastgroup == "nested"
        if opens:
            depths.append(0)
    parts.append(text[at:])
    return b"".join(parts), begin if depths or at == len(text) else -1


@cache
def _braced_tokens(lexis: _Lexis) -> re.Pattern[bytes]:
    return _compiled(lexis.tokens.pattern + rb"|[{}]")


def _without_comments(text: bytes, odd: _Odd) -> _Paint:  # noqa: ARG001 - a painter may look around
    def paint(match: re.Match[bytes]) -> bytes:
        group = match.lastgroup
        if group is None:
            return match[0]
        if group != "comment":
            odd.append(match)
        return match[0].translate(_BLANK) if match["comment"] is not None else match[0]

    return paint


def _without_strings(text: bytes, odd: _Odd) -> _Paint:  # noqa: ARG001
    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup is not None:
            odd.append(match)
        return b'"' * (match.end() - match.start())

    return paint


def _without_docstrings(text: bytes, odd: _Odd) -> _Paint:
    """Blanks comments, and strings that are statements by themselves. A string that is a value stays.

    A string is a statement when it has its lines for itself and no expression goes on into it: before it stands
    nothing, a colon that ends a header, or a complete expression.
    """
    last = 0  # where the previous comment ended
    before = b""  # the end of the code before that

    def paint(match: re.Match[bytes]) -> bytes:
        nonlocal last, before
        group = match.lastgroup
        if group is None:
            return match[0]
        start, end = match.span()
        code = text[max(last, start - 200) : start].rstrip()[-12:]
        if group == "comment":
            before = code or before
            last = end
            return b" " * (end - start)
        if group == "open":
            odd.append(match)
        elif _ends_statement(code or (before if start - last < 200 else b"?"), match[0].lstrip(b" \t\r\nrRuU")):
            return match[0].translate(_BLANK)
        return match[0]

    return paint


def _ends_statement(before: bytes, token: bytes) -> bool:
    """Whether a string on lines of its own behind this code is a statement."""
    if not before:
        return True
    if before.endswith(b":"):
        return before[-2:-1] not in (b'"', b"'", b"")  # the colon of a dictionary
    return token.startswith((b'"""', b"'''")) and _pattern("complete expression").search(before) is not None


def _clean_markup(data: bytes) -> bytes:
    """Without the comments of a template, and of the scripts and styles in it."""
    parts: list[bytes] = []
    at = 0
    for match in _pattern("script").finditer(data):
        parts.append(_paint(data[at : match.start(2)], "html", _without_comments))
        parts.append(clean(match[2], "css" if match[1].lower() == b"style" else "javascript"))
        at = match.end(2)
    parts.append(_paint(data[at:], "html", _without_comments))
    return b"".join(parts)


def _opaque(cleaned: bytes, language: str) -> bytes:
    """The text with every string painted over, framed."""
    if language not in _MARKUP:
        return _framed(_paint(cleaned, language, _without_strings))
    parts = [b"\n"]
    at = 0
    for match in _pattern("script").finditer(cleaned):
        parts.append(cleaned[at : match.start(2)].translate(_BLANK))
        is_script = match[1].lower() == b"script"
        parts.append(_paint(match[2], "javascript", _without_strings) if is_script else match[2].translate(_BLANK))
        at = match.end(2)
    return b"".join((*parts, cleaned[at:].translate(_BLANK), b"\n"))


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- patterns --------------------------------------------------------------------------------------------------------

_PARENS = rb"\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\)"
_NOTATION = {  # what patterns are written in, so that they can be read
    # Brackets in brackets to a fixed depth: deeper ones fail at once, so that no text is looked at many times. The
    # second kind ends with the line of a statement: such brackets hold parameters and no code.
    b"JSPARENS": _PARENS.replace(rb"[^()]++|", rb"[^();]++|;(?!\s*\n)|").replace(rb"[^()]*+", rb"[^();]*+"),
    b"PARENS": _PARENS,
    b"TARGETS": rb"\*?NAME(?:\h*+,\h*+\*?NAME)*+",
    b"NAMES": rb"NAME(?:\h*+,\s*+NAME)*+",
    b"NAME": rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+",
    b"WORD": rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+",
    rb"\h": rb"[ \t]",
}

_PATTERNS: dict[str, bytes] = {
    "digest token": rb"\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?"
    rb"|`[^`]*+`?|[()\[\]{}]|\\\r?\n\s*+|\s++",
    "word": rb"[\w$\x80-\xff]+",
    "python header": rb"(?:^|\n)\h*+(?:async\h++)?(?:def|class)\h++(NAME)\h*+(?:\[[^\n]*?\])?"
    rb"(?:PARENS)?[^\n]*?:(?!:)",
    "complete expression": rb"[\w)\]}\x80-\xff](?<!\bin)(?<!\band)(?<!\bor)(?<!\bnot)(?<!\bif)(?<!\belse)(?<!\bis)"
    rb"(?<!\breturn)(?<!\byield)(?<!\bawait)(?<!\braise)(?<!\bassert)(?<!\bfrom)(?<!\bimport)$",
    "template rest": _TEMPLATE,
    "script": rb"(?i)<(script|style)\b[^<>]*+>((?:[^<]++|<(?!/\1))*+)",
}


def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    for short, long in _NOTATION.items():
        pattern = pattern.replace(short, long)
    return re.compile(pattern, re.DOTALL)


@cache
def _pattern(name: str) -> re.Pattern[bytes]:
    return _compiled(_PATTERNS[name])


# --- walking ---------------------------------------------------------------------------------------------------------


class _Mark:
    """A definition as a walker finds it. Offsets are those of the walker's text; what is -1 is found out at the end."""

    __slots__ = ("begin", "end", "kind", "scope", "start", "stop")

    def __init__(self, begin: int, end: int, kind: str, scope: bytes, start: int = -1, stop: int = -1) -> None:
        self.begin = begin
        self.end = end
        self.kind = kind
        self.scope = scope
        self.start = start
        self.stop = stop


_Finish = Callable[[bytes, bytes, list[_Mark], str], None]


class _Walked(NamedTuple):
    """What a walker found, the text it walked on, and how to find where each definition begins and ends."""

    marks: list[_Mark]
    text: bytes
    finish: _Finish


def _join(scope: bytes, name: bytes) -> bytes:
    """The scope of what stands in a definition. One that is long already does not grow: texts may nest without end."""
    return scope + b"." + name if scope and name and len(scope) < 500 else scope or name


def _trimmed(text: bytes, begin: int, stop: int) -> int:
    """The end of a body without the blanks behind it."""
    stop = min(stop, len(text))
    while stop > begin:
        tail = text[max(begin, stop - 500) : stop]
        bare = tail.rstrip()
        if bare:
            return stop - len(tail) + len(bare)
        stop -= len(tail)
    return begin


# --- Python: by indentation ------------------------------------------------------------------------------------------

_PATTERNS |= {
    "python line": rb"\n(\h*+)(?:(?:async\h++)?(?:(def)|class)\h++(NAME)"
    rb"|(@)"
    rb"|(if|elif|else|try|except|finally|with|for|while|match|case|async)\b"
    rb"(?=[ \t:(\\\[{\"'])(?!\h*+(?::\h*+[\w\"'\[]|,|=|[-+*/|&%@^]=))"
    rb"|(?:self|cls)\.(NAME)(?:(?=(?:\h*+,\h*+(?:self|cls)\.NAME)*+\h*+=(?!=))"
    rb"|\h*+:(?=[^\n]*(?:[ ]=[ ]|(?:[^\s,(\[{}]|\w\[)[ \t\r]*+(?:\n|\Z))))"
    rb"|type\h++(NAME)\h*+(?:\[[^\n]*?\]\h*+)?=(?!=)"
    rb"|\(?(TARGETS)(?:,?\h*+\)?\h*+)(?:=(?!=)|:(?=\h*+[^\s=])))",
    "continued line": rb"\\\r?\n",
    "python chain": rb"\h*+(NAME)\h*+=(?!=)",
    "python self chain": rb"\h*+(?:,|=(?=[^=\n]*=(?!=)))\h*+(?:self|cls)\.(NAME)"
    rb"(?=\h*+(?:=(?!=)|,))",
    "name": b"NAME",
    "class head": rb"\h*+(?:\[[^\n]*?\]\h*+)?(?:PARENS)?"
    rb"\h*+:[ \t\r]*+(?:\n[ \t\r]*+(?=\n))*+\n(\h*+)",
    "block head": rb":[ \t\r]*+(?:\n[ \t\r]*+(?=\n))*+\n(\h*+)",
    "blank lines": rb"(?:[ \t\r]*+\n)*\h++(?=\r?\n)",
}


class _Block(NamedTuple):
    """A Python statement with a body."""

    indent: int
    kind: str
    """What its body belongs to: "module", "class" or "def". A conditional is a part of what it stands in."""
    scope: bytes
    owner: bytes | None
    """The class around, if any."""
    head: int
    """Where its header goes on."""
    is_class: bool = False


_DEF, _DECORATOR, _COMPOUND, _ATTRIBUTE, _ALIAS, _TARGETS = 3, 4, 5, 6, 7, 8  # the groups of "python line"


def _walk_python(cleaned: bytes, language: str) -> _Walked:
    text = _framed(cleaned)
    if b'"""' in text or b"'''" in text or (b"\\" in text and _pattern("continued line").search(text)):
        text = _framed(_paint(cleaned, language, _without_text_blocks))
    tabs = b"\t" in text
    found: list[_Mark] = []
    top = outer = _Block(-1, "module", b"", None, 0)
    stack = [top]
    bodies: dict[int, tuple[int, int]] = {}
    decorated = (-1, 0)
    never = len(text) + 1
    local = never  # in a function: how far a line is indented that goes on its body
    for match in _pattern("python line").finditer(text):
        group = match.lastindex
        indent = match.end(1) - match.start() - 1
        if indent >= local and group in (_TARGETS, _COMPOUND):
            continue
        if tabs:
            indent = len(match[1].expandtabs(8))
        if indent <= outer.indent:
            while indent <= outer.indent:
                stack.pop()
                outer = stack[-1]
            local = never if tabs or outer.kind != "def" else outer.indent + 1
        kind = outer.kind
        if group == _DEF:
            begin, end = match.span(3)
            start = decorated[1] if decorated[0] == indent else match.end(1)
            decorated = (-1, 0)
            scope = outer.scope
            inner = _join(scope, text[begin:end])
            if match[2] is None:
                found.append(_Mark(begin, end, "class", scope, start))
                outer = _Block(indent, "class", inner, inner, end, True)
            else:
                found.append(_Mark(begin, end, "method" if kind == "class" else "function", scope, start))
                outer = _Block(indent, "def", inner, outer.owner, end)
            stack.append(outer)
            local = never if tabs or outer.is_class else indent + 1
        elif group == _DECORATOR:
            if decorated[0] != indent:
                decorated = (indent, match.start(4))
        elif group == _ATTRIBUTE:
            if kind == "def" and outer.owner is not None:
                _add_attributes(text, match, found, outer.owner)
        elif kind == "def":
            continue
        elif group == _COMPOUND:
            outer = _Block(indent, kind, outer.scope, outer.owner, match.end())
            stack.append(outer)
        elif (indent == 0) if outer is top else _is_in_body(text, outer, indent, match.start(), bodies, tabs=tabs):
            decorated = (-1, 0)
            if group == _ALIAS:
                found.append(_Mark(*match.span(7), "type", outer.scope, match.end(1)))
            else:
                _add_targets(text, match, found, outer.scope, is_field=kind == "class")
    return _Walked(found, text, _finish_python)


def _is_in_body(
    text: bytes, block: _Block, indent: int, at: int, bodies: dict[int, tuple[int, int]], *, tabs: bool
) -> bool:
    """Whether a line is a statement of a block, and not one that goes on another or stands behind the block.

    Only lines that may define something are matched, so one of the others may have ended the block.
    """
    if block.head not in bodies:
        if block.is_class:
            head = _pattern("class head").match(text, block.head)
        else:
            head = _pattern("block head").search(text, block.head, block.head + 2000)
        bodies[block.head] = (-1, 0) if head is None else (_width(head[1], tabs=tabs), head.end())
    expected, seen = bodies[block.head]
    if indent != expected or (seen < at and not tabs and _dedent(block.indent).search(text, seen, at)):
        return False
    bodies[block.head] = (expected, max(seen, at))
    return True


def _width(blanks: bytes, *, tabs: bool) -> int:
    return len(blanks.expandtabs(8)) if tabs else len(blanks)


def _add_attributes(text: bytes, match: re.Match[bytes], found: list[_Mark], owner: bytes) -> None:
    """What a method sets of `self`."""
    start = match.end(1)
    found.append(_Mark(*match.span(6), "field", owner, start))
    at = match.end(6)
    while more := _pattern("python self chain").match(text, at):
        found.append(_Mark(*more.span(1), "field", owner, start))
        at = more.end()


def _add_targets(text: bytes, match: re.Match[bytes], found: list[_Mark], scope: bytes, *, is_field: bool) -> None:
    """The names on the left of an assignment."""
    names = match[8]
    begin, end = match.span(8)
    start, at = match.end(1), match.end()
    spans = [(begin, end)]
    if b"," in names or b"*" in names:
        if text[at - 1] != _EQUALS:
            return
        spans = [name.span() for name in _pattern("name").finditer(text, begin, end)]
    if text[at - 1] == _EQUALS:
        if text[end] == _EQUALS and text[at : at + 300].partition(b"\n")[0].rstrip().endswith(b","):
            return  # name=value, without blanks: an argument of a call that began on a line before
        while more := _pattern("python chain").match(text, at):
            spans.append(more.span(1))
            at = more.end()
    for begin, end in spans:
        kind = "field" if is_field else "constant" if text[begin:end].isupper() else "variable"
        found.append(_Mark(begin, end, kind, scope, start))


def _without_text_blocks(text: bytes, odd: _Odd) -> _Paint:  # noqa: ARG001
    """Blanks strings of several lines: what stands at the start of a line in them is no code."""

    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup == "open":
            odd.append(match)
        return match[0].translate(_BLANK) if b"\n" in match[0].lstrip() else match[0]

    return paint


def _without_tokens(text: bytes, odd: _Odd) -> _Paint:  # noqa: ARG001
    """Blanks everything, line breaks as well; not the break before a string on lines of its own."""

    def paint(match: re.Match[bytes]) -> bytes:
        if match.lastgroup == "open":
            odd.append(match)
        token = match[0]
        return b"\n" + b" " * (len(token) - 1) if token[0] == _NEWLINE else b" " * len(token)

    return paint


def _finish_python(cleaned: bytes, text: bytes, marks: list[_Mark], language: str) -> None:
    """Bodies end where a line is indented less. Lines inside of brackets and strings do not count."""
    layout = _without_continuations(_framed(_paint(cleaned, language, _without_tokens)))
    text = _framed(cleaned)
    around: list[tuple[int, _Mark]] = []  # the bodies that this one stands in
    for mark in marks:
        limit = end = layout.find(b"\n", mark.end)
        blank = None
        if mark.kind in ("function", "method", "class") and layout[mark.end : end].rstrip().endswith(b":"):
            line = layout.rfind(b"\n", 0, mark.begin) + 1
            dedent = _dedent(_indent(layout, line, mark.begin)).search(layout, end)
            limit = dedent.start() if dedent else len(layout)
            if _trimmed(text, end, limit) == end:  # nothing but a docstring: it is blank, but its lines are not empty
                blank = _pattern("blank lines").match(text, end + 1, limit + 1)
        mark.stop = blank.end() if blank else _trimmed(text, mark.end, limit)
        while around and around[-1][0] <= mark.begin:
            around.pop()
        for _, outer in around:
            outer.stop = max(outer.stop, mark.stop)
        if limit > end:
            around.append((limit, mark))


def _indent(text: bytes, line: int, end: int) -> int:
    return len(text[line:end]) - len(text[line:end].lstrip(b" \t"))


@cache
def _dedent(indent: int) -> re.Pattern[bytes]:
    return _compiled(rb"\n\h{0,%d}[^ \t\r\n]" % min(indent, 1000))


def _without_continuations(text: bytes) -> bytes:
    """The text with every statement on one line: a line break inside of brackets is a blank."""
    parts: list[bytes] = []
    depth = at = opened = 0
    for match in re.finditer(rb"[()\[\]{}]", text):
        if match[0] in b"([{":
            if not depth:
                opened = match.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                parts += (text[at:opened], text[opened : match.end()].replace(b"\n", b" "))
                at = match.end()
    parts.append(text[at:])
    return b"".join(parts).replace(b"\\\n", b"  ").replace(b"\\\r\n", b"   ")


# --- braces: what these languages share -------------------------------------------------------------------------------

_OPEN = "open"  # the file, a class, a module: everything counts that a keyword introduces
_CODE = "code"  # the body of a function or a block: only named functions and types count
_PAIRS = {_PAREN: "()", _BRACKET: "[]", _BRACE: "{}"}


class _Frame:
    """An open brace: how to read what stands in it, what that belongs to, and the definition that ends with it."""

    __slots__ = ("first", "mark", "mode", "scope", "start")

    def __init__(self, mode: str, scope: bytes, mark: _Mark | None, first: int) -> None:
        self.mode = mode
        self.scope = scope
        self.mark = mark
        self.first = first  # how many definitions were found before it
        self.start = -1  # where the next member begins, when it has decorators


class _Braces:
    """A text with braces, and a stack of those that are open.

    Looking for a closing bracket costs fuel. Without fuel all are taken for missing, so that no text takes long.
    """

    __slots__ = ("entered", "found", "fuel", "nested", "stack", "text")

    def __init__(self, text: bytes, nested: re.Pattern[bytes], mode: str = _OPEN) -> None:
        self.text = text
        self.nested = nested
        self.found: list[_Mark] = []
        self.stack = [_Frame(mode, b"", None, 0)]
        self.entered = -1  # a brace that is on the stack and is read again for what stands behind it
        self.fuel = len(text) // 4 + 2000

    def add(self, begin: int, end: int, kind: str, start: int = -1, scope: bytes | None = None) -> _Mark:
        mark = _Mark(begin, end, kind, self.stack[-1].scope if scope is None else scope, start)
        self.found.append(mark)
        return mark

    def push(self, mode: str, mark: _Mark | None = None, scope: bytes | None = None) -> None:
        """Go into a brace. What stands in it belongs to the definition, if it has one, or to the given scope."""
        if scope is None:
            scope = self.stack[-1].scope if mark is None else _join(mark.scope, self.text[mark.begin : mark.end])
        self.stack.append(_Frame(mode, scope, mark, len(self.found)))

    def pop(self, at: int) -> None:
        if len(self.stack) > 1:
            mark = self.stack.pop().mark
            if mark is not None:
                mark.stop = at

    def enter(self, opened: int, mark: _Mark | None = None, scope: bytes | None = None) -> int:
        """Go into the body of a function, or over it when it defines nothing."""
        end = self.leaf(opened)
        if end < 0:
            self.push(_CODE, mark, scope)
            self.entered = opened
            return opened
        if mark is not None:
            mark.stop = end
        return end

    def leaf(self, opened: int) -> int:
        """The offset behind a block that is laid out as usual and in which nothing is defined, or -1.

        This is a short cut. Such a block ends with the first line that is not indented more than its own.
        """
        text = self.text
        if self.fuel < 0 or (line := _pattern("end of line").match(text, opened + 1)) is None:
            return -1
        begin = text.rfind(b"\n", max(0, opened - 300), opened) + 1
        close = _dedent(_indent(text, begin, opened)).search(text, line.end() - 1) if begin else None
        end = close.end() if close else len(text)
        self.fuel -= 1 + (end - opened) // 100
        if (
            close is None
            or text[end - 1] != _CLOSING
            or text.count(b"{", opened, end) != text.count(b"}", opened, end)
            or self.nested.search(text, opened, close.start())
        ):
            return -1
        return end

    def close(self, at: int) -> int:
        """The offset behind the bracket that closes this one; just behind this one when none does."""
        text, fuel = self.text, self.fuel
        opener = text[at]
        depth = 0
        for match in _pattern(_PAIRS[opener]).finditer(text, at) if fuel > 0 else ():
            fuel -= 1
            if text[match.start()] == opener:
                depth += 1
                if fuel < 0:
                    break
            elif depth == 1:
                self.fuel = fuel
                return match.end()
            else:
                depth -= 1
        self.fuel = fuel - (len(text) - at) // 100
        return at + 1

    def angles(self, at: int) -> int:
        """The offset behind the angle bracket of a type that closes this one, or where it cannot be a type."""
        text = self.text
        limit = at + 3000
        depth = 0
        while match := _pattern("angle").search(text, at, limit):
            at = match.end()
            byte = text[match.start()]
            if byte == _ANGLE:
                depth += 1
            elif match[0] == b">":
                depth -= 1
                if not depth:
                    break
            elif byte in b"([{":
                at = self.close(match.start())
            elif byte in b";}":
                break
        return at

    def hop(self, at: int, stops: bytes) -> int:
        """The offset of the next of these bytes that is not inside of brackets."""
        text = self.text
        search = _stops(stops).search
        while match := search(text, at):
            if text[match.start()] not in b"([{":
                return match.start()
            at = self.close(match.start())
        return len(text)

    def skip(self, at: int) -> int:
        """The offset of the next byte that is not blank."""
        match = _pattern("blanks").match(self.text, at)
        return match.end() if match else at

    def is_at(self, at: int, byte: int) -> bool:
        return at < len(self.text) and self.text[at] == byte


@cache
def _stops(stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[(\[{" + re.escape(stops) + rb"]")


_SEMICOLONS = frozenset(("java", "csharp", "c", "cpp", "rust", "dart", "php", "protobuf"))


def _finish_braces(cleaned: bytes, text: bytes, marks: list[_Mark], language: str) -> None:
    """What has no body ends with its statement; attributes and modifiers belong to what stands behind them."""
    source = b"\n" + cleaned
    ends = _Statements(text, semicolons=language in _SEMICOLONS)
    for mark in marks:
        if mark.start < 0:
            mark.start = _statement_start(text, mark.begin)
        mark.stop = _trimmed(source, mark.end, mark.stop if mark.stop >= 0 else ends.end(mark.end))


class _Statements:
    """Finds where statements end. This costs fuel as well; without it a statement ends with its line."""

    def __init__(self, text: bytes, *, semicolons: bool) -> None:
        self.text = text
        self.semicolons = semicolons
        self.pairs: dict[int, int] | None = None
        self.fuel = len(text) + 1000

    def end(self, at: int) -> int:
        text = self.text
        search = _pattern("statement end").search
        if self.pairs is None:
            self.pairs = _pairs(text)
        while match := search(text, at):
            at = match.end()
            byte = text[match.start()]
            self.fuel -= 1
            if self.fuel < 0:
                return match.start()
            if byte in b"([{":
                at = self.pairs.get(match.start(), at)
            elif byte == _SEMICOLON:
                return at if self.semicolons else match.start()
            elif byte != _NEWLINE or not (self.semicolons or _goes_on(text, match.start())):
                return match.start()
        return len(text)


def _pairs(text: bytes) -> dict[int, int]:
    """Every bracket that is closed, with the offset behind what closes it."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    opener = {41: 40, 93: 91, 125: 123}
    for match in re.finditer(rb"[()\[\]{}]", text):
        at = match.start()
        if text[at] in b"([{":
            stack.append(at)
        elif stack and text[stack[-1]] == opener[text[at]]:
            pairs[stack.pop()] = at + 1
    return pairs


def _goes_on(text: bytes, at: int) -> bool:
    """Whether a statement goes on behind this line break."""
    before = text[max(0, at - 80) : at].rstrip()[-2:]
    if before[-1:] in (b"=", b"+", b"|", b"&", b"?", b":", b"(", b"*", b".", b"\\", b"<") or before == b"=>":
        return True
    return _pattern("goes on").match(text, at) is not None


def _statement_start(text: bytes, at: int) -> int:
    """The beginning of a line, behind what ends on it, with the attributes on the lines before."""
    line = text.rfind(b"\n", max(0, at - 2000), at) + 1
    if not line:
        return at
    start = max(line, *(text.rfind(mark, line, at) + 1 for mark in (b";", b"{", b"}")))
    if start == line:
        for _ in range(20):
            above = text.rfind(b"\n", max(0, line - 2000), line - 1) + 1
            if above and _pattern("attribute line").match(text, above):
                start = line = above
            else:
                break
    return start + len(text[start:at]) - len(text[start:at].lstrip())


_PATTERNS |= {
    "()": rb"[()]",
    "[]": rb"[\[\]]",
    "{}": rb"[{}]",
    "blanks": rb"\s*+",
    "end of line": rb"[ \t\r]*+\n",
    "angle": rb"=>|->|[<>(\[{;}]",
    "statement end": rb"[(\[{)\]};\n]",
    "goes on": rb"\s*+(?:[.?:|&=+*/<>)]|-(?!-)|where\b|extends\b|implements\b|with\b)",
    "attribute line": rb"\h*+(?:@\w|#!?\[|\[[A-Z]\w*+[\](])",
}


# --- JavaScript and TypeScript ----------------------------------------------------------------------------------------

_JSFUNCTION = (  # what makes a value a function: up to its parameters, or up to its body
    rb"(?:async\b\s*+)?(?:function\b\s*+\*?\s*+(?:WORD\s*+)?(?P<params>)(?=[(<])"
    rb"|(?:WORD|(?:<[^;(){}]*?>\s*+)?JSPARENS(?:\s*+:(?:[^=;{}()]|=(?!>)){0,200}?)?)\s*+=>\s*+(?P<brace>\{)?)"
)
_JSSETS = rb"=\s*+(?=(?:async\b\s*+)?(?:function\b|\([^()]*+\)\s*+=>|class\b))"
_JSMETHOD = (  # a name with parameters and a body, which no keyword stands before
    rb"WORD(?<!\bif)(?<!\bfor)(?<!\bwhile)(?<!\bswitch)(?<!\bcatch)(?<!\bfunction)(?<!\bwith)(?<!\breturn)"
)
_JSBODY = rb"(?=\h*+JSPARENS\h*+(?::[^;{}=\n]++)?\{)"
_PATTERNS |= {
    "js": rb"[\n;{}](?:\h*+(?:"
    rb"(?:(?:export|default|declare|abstract|async)\h++)*+(?:"
    rb"function\b\s*+\*?\s*+(?P<function>WORD)"
    rb"|(?:return\h++)?class(?:\s++(?!extends\b|implements\b)(?P<class>WORD)(?=\s*+[{<]|\s++(?:extends|implements)\b)"
    rb"|(?P<unnamed>)(?=\s*+\{|\s++extends\b))"
    rb"|(?P<keyword>const|let|var)\s++(?:enum\s++(?P<constenum>WORD)|(?P<variable>WORD|[{\[]))"
    rb"|interface\s++(?P<interface>WORD)(?=\s*+[{<]|\s++extends\b)"
    rb"|enum\s++(?P<enum>WORD)(?=\s*+\{)"
    rb"|(?:namespace|module)\s++(?P<module>WORD(?:\.[\w$]++)*+|\"++)(?=\s*+\{)|global(?P<global>)(?=\s*+\{)"
    rb"|type\s++(?P<type>WORD)(?=\s*+[=<])"
    rb"|(?<=export )(?:type\h++)?(?P<exports>\{)|(?<=export )\*\s*+as\s++(?P<star>WORD)"
    rb"|(?<=export )(?P<equals>=\s*+\{)|(?<=default )(?P<default>(?:[\w$.]++\s*+\(\s*+)?\{))"
    rb"|(?:module\.)?exports(?:\.(?P<exported>WORD))?\s*+=(?![=>])\s*+(?P<value>)"
    rb"|(?P<holder>WORD(?:\.[\w$]++)*?)\.(?:prototype\.(?P<prototype>WORD)\s*+=(?![=>])\s*+"
    rb"|(?P<property>WORD)\s*+" + _JSSETS + rb")"
    rb"|(?:(?:async|get|set|static)\h++)*+\*?\h*+(?P<method>#?" + _JSMETHOD + rb")" + _JSBODY + rb")"
    rb"|(?<=[{}]))",
    "js nested": rb"\n\h*+(?:(?:async|export)\h++)*+(?:function\b|(?:return\h++)?class\b|(?:interface|enum|type)\h"
    rb"|(?:const|let|var)\s++WORD\s*+(?::[^=;\n]*+)?=\s*+"
    + _JSFUNCTION
    + rb"|WORD[.\w$]*+\s*+"
    + _JSSETS
    + rb"|(?:(?:get|set|static)\h++)*+\*?\h*+"
    + _JSMETHOD
    + _JSBODY
    + rb")",
    "js function": rb"\s*+" + _JSFUNCTION,
    "js object": rb"\s*+\{",
    "js class": rb"\s*+class\b",
    "js import": rb"\s*+(?:require\s*+\(|await\s++import\s*+\()",
    "js type": rb"\s*+(?:(?P<more>=>|[|&?:]|extends\b)"
    rb"|(?P<prefix>(?:is|keyof|typeof|infer|readonly|asserts|unique|new|abstract|in)\b)"
    rb"|(?P<open>[(\[{<])|(?P<word>[\w$.\x80-\xff]++|\"++|-)|(?P<stop>[^\s]))",
    "js member": rb"(?:(?:public|private|protected|static|readonly|abstract|override|declare|async|get|set|accessor)"
    rb"\s++(?=[\w$#\[*\"\x80-\xff]))*+\*?\s*+(?P<name>#?WORD|\"++)(?:\s*+[?!])?(?=\s*+[(<:=;,}]|[ \t\r]*+\n)",
    "js key": rb"(?:(?:async|get|set)\h++(?=[\w$#\[*\"]))?\*?\s*+(?P<name>WORD|\"++)(?=\s*+[(:,}<])",
    "js variant": rb"(?P<name>WORD|\"++)(?=\s*+[=,}])",
    "js static": rb"static\s*+\{",
    "js decorator": rb"@[\w$.]++",
    "js parameter": rb"(?:(?:public|private|protected|readonly|override)\s++)++(WORD)(?=\s*+[?:,=)])",
    "js bound": rb"(?:[{,\[]|\.\.\.)\s*+(?:(?:WORD|\"++)\s*+:\s*+)?(WORD)(?=\s*+[,}\]=])",
    "js next": rb"\s*+(WORD)(?=\s*+[,;:=]|[ \t\r]*+\n)",
    "js export": rb"(?P<from>WORD)(?:\s++as\s++(?P<alias>WORD))?\s*+(?=[,}])",
    "js from": rb"\s*+from\b",
    "js wrapper": rb"[;!]?\(*+(?:async\s*+)?(?:function\b|[^\n]*=>)",
    "js head": rb"[{<(;}]",
    "js alias": rb"\s*+(?:[^{};()=\n]|\n\s*+[|&])*?\{",
    "separators": rb"[\s;,]*+",
    "quoted name": rb"([\"'])[\w$.@/:+*-]{1,80}+\1",
}


def _walk_javascript(cleaned: bytes, language: str) -> _Walked:
    script = _Script(_opaque(cleaned, language), cleaned)
    script.walk()
    return _Walked(script.found, script.text, _finish_braces)


class _Script(_Braces):
    """Walks JavaScript. Other than the common ones, modes are: class, type, object, variant (of an enum)."""

    __slots__ = ("source",)

    def __init__(self, text: bytes, cleaned: bytes) -> None:
        super().__init__(text, _pattern("js nested"))
        self.source = b"\n" + cleaned

    def walk(self) -> None:
        search = _pattern("js").search
        at = 0
        while at < len(self.text):
            frame = self.stack[-1]
            if frame.mode in (_CODE, _OPEN):
                match = search(self.text, at)
                if match is None:
                    break
                at = self.event(match)
            else:
                at = self.member(at, frame)

    def event(self, match: re.Match[bytes]) -> int:
        """A brace, or a declaration at the beginning of a line or behind a brace."""
        start, at = match.span()
        byte = self.text[start]
        kind = match.lastgroup
        if byte == _CLOSING:
            self.pop(start + 1)
            if self.stack[-1].mode not in (_CODE, _OPEN):
                return start + 1
        elif byte == _BRACE and start != self.entered:
            if kind is None and (end := self.leaf(start)) >= 0:
                return end
            self.push(_OPEN if self.stack[-1].mode == _OPEN and self.is_bare(start) else _CODE)
        return at if kind is None else self.declaration(match, kind)

    def is_bare(self, opened: int) -> bool:
        """Whether a brace is a mere block, or the function around a whole file."""
        before = self.text[max(0, opened - 200) : opened].rstrip()
        if before[-1:] in (b";", b"}", b""):
            return True
        line = before[before.rfind(b"\n") + 1 :]
        return line.startswith((b"(", b";(", b"!")) and _pattern("js wrapper").match(line) is not None

    def declaration(self, match: re.Match[bytes], kind: str) -> int:
        text = self.text
        at = match.end()
        is_open = self.stack[-1].mode == _OPEN
        if kind == "function":
            return self.function(self.add(*match.span(kind), kind))
        if kind == "variable":
            return self.variable(*match.span(kind), match["keyword"], is_open=is_open)
        if kind == "method":
            return self.function(self.add(*match.span(kind), kind))
        if kind == "class":
            return self.block(at, "class", self.add(*match.span(kind), kind))
        if kind == "unnamed":
            return self.block(at, "class", None)
        if kind == "interface":
            return self.block(at, "type", self.add(*match.span(kind), kind))
        if kind in ("enum", "constenum"):
            return self.block(at, "variant", self.add(*match.span(kind), "enum"))
        if kind in ("module", "global"):
            named = kind == "module" and text[match.start(kind)] != _QUOTE
            return self.block(at, _OPEN, self.add(*match.span(kind), kind) if named else None)
        if kind == "type":
            return self.alias(self.add(*match.span(kind), kind))
        if kind == "exports":
            return self.exports(match.start(kind))
        if kind == "star":
            self.add(*match.span(kind), "export")
        elif kind in ("default", "equals"):
            self.push("object", None, b"")
        elif kind == "value":
            if match["exported"]:
                return self.value(at, self.add(*match.span("exported"), "variable", scope=b""))
            if opened := _pattern("js object").match(text, at):
                self.push("object", None, b"")
                return opened.end()
        elif kind in ("prototype", "property"):
            holder = match["holder"].removeprefix(b"this").removeprefix(b"exports").strip(b".")
            return self.value(at, self.add(*match.span(kind), "method", scope=holder))
        return at

    def function(self, mark: _Mark, at: int = -1) -> int:
        """Into a body; behind the parameters and the type of a function without one."""
        at = self.skip(mark.end if at < 0 else at)
        if self.text[mark.begin : mark.end] == b"constructor" and self.is_at(at, _PAREN):
            end = self.close(at)
            if end - at < 5000:
                for field in _pattern("js parameter").finditer(self.text, at, end):
                    self.add(*field.span(1), "field", scope=mark.scope)
        return self.parameters(at, mark)

    def parameters(self, at: int, mark: _Mark | None, scope: bytes | None = None) -> int:
        """From the parameters of a function into its body."""
        if self.is_at(at, _ANGLE):
            at = self.skip(self.angles(at))
        if not self.is_at(at, _PAREN):
            return at
        end = self.close(at)
        at = self.skip(end)
        if self.is_at(at, _COLON):
            end = self.type_end(at + 1)
            at = self.skip(end)
        if self.is_at(at, _BRACE):
            return self.enter(at, mark, scope)
        if mark is not None:
            mark.stop = end
        return end

    def block(self, at: int, mode: str, mark: _Mark | None, scope: bytes | None = None) -> int:
        """Into a class or the like, whatever stands before its brace."""
        limit = at + 5000
        while match := _pattern("js head").search(self.text, at, limit):
            byte = self.text[match.start()]
            if byte == _BRACE:
                self.push(mode, mark, scope)
                self.entered = match.start()
                return match.start() if mode == _OPEN else match.end()
            if byte == _ANGLE:
                at = self.angles(match.start())
            elif byte == _PAREN:
                at = self.close(match.start())
            else:
                break
        return at

    def alias(self, mark: _Mark) -> int:
        """A type: the first object in it lists its members."""
        at = self.skip(mark.end)
        if self.is_at(at, _ANGLE):
            at = self.skip(self.angles(at))
        if not self.is_at(at, _EQUALS):
            return mark.end
        if opened := _pattern("js alias").match(self.text, at + 1, at + 2000):
            self.push("type", None, _join(mark.scope, self.text[mark.begin : mark.end]))
            return opened.end()
        return at + 1

    def type_end(self, at: int) -> int:
        """Behind a type: where a body, a value or the next statement begins."""
        text = self.text
        wants = True  # whether the type is not yet complete
        while match := _pattern("js type").match(text, at):
            kind = match.lastgroup or ""
            start = match.start(kind)
            if not wants and kind != "more" and b"\n" in text[at:start]:
                break
            if kind == "open":
                byte = text[start]
                if byte == _BRACE and not wants:
                    break
                at = self.angles(start) if byte == _ANGLE else self.close(start)
                wants = False
            elif kind == "stop":
                return start
            else:
                at = match.end()
                wants = kind != "word"
        return at

    def variable(self, begin: int, end: int, keyword: bytes, *, is_open: bool) -> int:
        text = self.text
        if text[begin] in b"{[":
            return self.destructuring(begin, is_open=is_open)
        behind = end  # what is returned must not lie behind the line break that the next declaration begins with
        at = self.skip(end)
        if text[at : at + 1] == b"!":
            at = self.skip(at + 1)
        if self.is_at(at, _COLON):
            behind = self.type_end(at + 1)
            at = self.skip(behind)
        has_value = self.is_at(at, _EQUALS)
        if has_value and _pattern("js import").match(text, at + 1):
            return at + 1
        is_function = has_value and _pattern("js function").match(text, at + 1) is not None
        if not is_open and not is_function:
            return behind
        label = "function" if is_function else "constant" if keyword == b"const" else "variable"
        mark = self.add(begin, end, label)
        if has_value:
            behind = at + 1
            if is_function or _pattern("js object").match(text, behind) or _pattern("js class").match(text, behind):
                return self.value(behind, mark)
        return self.further(behind, mark)

    def further(self, at: int, mark: _Mark) -> int:
        """The other names of `let a = 1, b`, when there are some."""
        behind = at
        while True:
            behind = self.hop(behind, b",;\n)}")
            if not self.is_at(behind, _COMMA):
                return at
            more = _pattern("js next").match(self.text, behind + 1)
            if more is None:
                return at
            mark.stop = behind
            mark = self.add(*more.span(1), mark.kind)
            at = behind = more.end()

    def destructuring(self, opened: int, *, is_open: bool) -> int:
        end = self.close(opened)
        at = self.skip(end)
        if self.is_at(at, _COLON):
            at = self.skip(self.type_end(at + 1))
        is_value = self.is_at(at, _EQUALS) and not _pattern("js import").match(self.text, at + 1)
        if is_open and is_value and end - opened < 5000:
            for bound in _pattern("js bound").finditer(self.text, opened, end):
                self.add(*bound.span(1), "variable")
        return end

    def value(self, at: int, mark: _Mark) -> int:
        """Into the function, object or class that a name is set to."""
        text = self.text
        scope = _join(mark.scope, text[mark.begin : mark.end])
        if function := _pattern("js function").match(text, at):
            if mark.kind != "method":
                mark.kind = "function"
            at = function.end()
            if function["params"] is None:
                return self.enter(at - 1, None, scope) if function["brace"] else at
            return self.parameters(at, None, scope)
        if opened := _pattern("js object").match(text, at):
            self.push("object", None, scope)
            return opened.end()
        if word := _pattern("js class").match(text, at):
            mark.kind = "class"
            return self.block(word.end(), "class", None, scope)
        return at

    def exports(self, opened: int) -> int:
        """`export { a as b }`: a name is defined by `as`, or by coming from another module."""
        end = self.close(opened)
        foreign = _pattern("js from").match(self.text, end) is not None
        for match in _pattern("js export").finditer(self.text, opened, end):
            group = "alias" if match["alias"] else "from"
            if (foreign or group == "alias") and match[group] != b"default":
                self.add(*match.span(group), "export")
        return end

    def member(self, at: int, frame: _Frame) -> int:
        """One member of a class, a type, an object or an enum; the offset behind it."""
        text, mode = self.text, frame.mode
        separators = _pattern("separators").match(text, at)
        at = separators.end() if separators else at
        if at >= len(text) or text[at] == _CLOSING:
            self.pop(at + 1)
            return at + 1
        if decorator := _pattern("js decorator").match(text, at):
            frame.start = at if frame.start < 0 else frame.start
            at = decorator.end()
            return self.close(at) if self.is_at(at, _PAREN) else at
        start = at if frame.start < 0 else frame.start
        frame.start = -1
        if static := _pattern("js static").match(text, at):
            return self.enter(static.end() - 1)
        match = _pattern(_JSMEMBERS[mode]).match(text, at)
        if match is None:
            return self.rest(at, mode)
        begin, end = match.span("name")
        if text[begin] == _QUOTE:
            quoted = _pattern("quoted name").match(self.source, begin)
            if quoted is None or quoted.end() != end:
                return self.rest(match.end(), mode)
            begin, end = begin + 1, end - 1
        elif mode == "type" and match["name"] == b"new":
            return self.rest(match.end(), mode)
        mark = self.add(begin, end, {"object": "key", "variant": "variant"}.get(mode, "field"), start)
        return self.member_rest(mark, match.end(), mode)

    def member_rest(self, mark: _Mark, end: int, mode: str) -> int:
        text = self.text
        at = self.skip(end)
        byte = text[at] if at < len(text) else _CLOSING
        if byte in b"(<" and mode != "variant":
            mark.kind = "method"
            depth = len(self.stack)
            at = self.function(mark, end)
            return at if len(self.stack) > depth or text[at - 1] == _CLOSING else self.rest(at, mode)
        if byte == _COLON and mode in ("type", "class"):
            opened = self.skip(at + 1)
            if mode == "type" and self.is_at(opened, _BRACE):
                self.push("type", None, _join(mark.scope, text[mark.begin : mark.end]))
                return opened + 1
            end = self.type_end(at + 1)
            at = self.skip(end)
            byte = text[at] if at < len(text) else _CLOSING
        if (byte == _EQUALS and mode == "class") or (byte == _COLON and mode == "object"):
            value = self.value(at + 1, mark)
            if text[value - 1] in b"{}":
                return value
            end = value
        return self.rest(end, mode)

    def rest(self, at: int, mode: str) -> int:
        """The end of a member."""
        if mode in ("object", "variant"):
            return self.hop(at, b",}")
        stops = b";,\n}" if mode == "type" else b";\n}"
        at = self.hop(at, stops)
        while self.is_at(at, _NEWLINE) and _goes_on(self.text, at):
            at = self.hop(at + 1, stops)
        return at


_JSMEMBERS = {"class": "js member", "type": "js member", "object": "js key", "variant": "js variant"}


# --- keywords and braces: Rust, Kotlin, Swift, Scala, PHP ... ---------------------------------------------------------


class _Keywords(NamedTuple):
    """How a language is walked in which keywords tell what is defined."""

    modifiers: bytes
    """What may stand before a keyword on its line."""
    declarations: bytes
    """What is declared: the group that matches is its kind."""
    modes: dict[str, str]
    """How to read the body of each kind that has one."""
    nested: bytes = rb"(?!)"
    """How a declaration begins that counts inside of functions. It may match too often."""
    local: frozenset[str] = frozenset()
    """The kinds that count outside of functions only."""
    members: dict[str, bytes] = {}  # noqa: RUF012 - a NamedTuple has no mutable state
    """For modes that list members: one of them."""
    separators: bytes = b",}"
    """What ends a member."""
    newline: bool = False
    """Whether a header ends with its line."""
    scopes: frozenset[str] = frozenset()
    """The kinds that define nothing themselves and only say what their members belong to."""


_FIELDS, _CASES, _ENUM = "fields", "cases", "enum"


@cache
def _keywords(language: str) -> _Keywords:
    return _KEYWORDS[language]()


def _rust() -> _Keywords:
    return _Keywords(
        rb"(?:#!?\[[^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+)*+\]\h*+)*+(?:(?:pub(?:\h*+\([^()\n]*+\))?|default|unsafe"
        rb"|async|extern(?:\h++\"++)?|const(?=\h++(?:fn|unsafe|async|extern)\b))\h++)*+",
        rb"fn\s++(?:r#)?(?P<function>NAME)(?=\s*+[(<])"
        rb"|struct\s++(?P<struct>NAME)"
        rb"|static\s++(?:(?:mut|ref)\s++)?(?P<static>NAME)(?=\s*+:)"
        rb"|enum\s++(?P<enum>NAME)(?=\s*+[{<])"
        rb"|union\s++(?P<union>NAME)(?=\s*+[{<])"
        rb"|trait\s++(?P<trait>NAME)"
        rb"|type\s++(?:r#)?(?P<type>NAME)(?=\s*+[:;=<]|\s++where\b)"
        rb"|mod\s++(?P<module>NAME)(?=\s*+[{;])"
        rb"|macro_rules!\s*+(?P<macro>NAME)"
        rb"|const\s++(?!_\b)(?P<const>NAME)(?=\s*+[:=])"
        rb"|impl\b(?P<impl>)(?=[\s<])",
        {
            **dict.fromkeys(("trait", "module", "impl"), _OPEN),
            **dict.fromkeys(("function", "macro"), _CODE),
            **dict.fromkeys(("struct", "union"), _FIELDS),
            "enum": _CASES,
        },
        nested=rb"(?:fn|struct|static|enum|union|trait|type|mod|macro_rules|const|impl)\b",
        members={
            _FIELDS: rb"(?:pub(?:\s*+\([^()]*+\))?\s++)?(?:r#)?(?P<field>NAME)(?=\s*+:(?!:))",
            _CASES: rb"(?P<variant>NAME)(?=\s*+[,}({=])",
        },
        scopes=frozenset(("impl",)),
    )


def _kotlin() -> _Keywords:
    return _Keywords(
        rb"(?:@[\w.:]++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|protected|internal|open|abstract|final|override"
        rb"|suspend|inline|operator|infix|tailrec|external|const|lateinit|data|sealed|annotation|inner|value|expect"
        rb"|actual|fun(?=\h++interface\b))\h++)*+",
        rb"fun\s++(?:<[^(){}]*?>\s*+)?(?:(?P<receiver>[\w.]+(?:<[^(){}]*?>)?\??)\.)?(?P<function>`[^`\n]++`|NAME)"
        rb"(?=\s*+[(<])"
        rb"|va[lr]\s++(?:<[^(){}]*?>\s*+)?(?:[\w.]+(?:<[^(){}=]*?>)?\??\.)?(?P<property>NAME)"
        rb"(?=\s*+(?:[:=;{]|by\b|get\b)|[ \t\r]*+\n)"
        rb"|enum\s++class\s++(?P<enum>NAME)"
        rb"|class\s++(?P<class>NAME)"
        rb"|interface\s++(?P<interface>NAME)"
        rb"|(?:companion\s++)?object\s++(?P<object>NAME)"
        rb"|companion\s++object\b(?P<companion>)"
        rb"|typealias\s++(?P<type>NAME)",
        {
            **dict.fromkeys(("class", "interface", "object", "companion"), _OPEN),
            **dict.fromkeys(("function", "property"), _CODE),
            "enum": _CASES,
        },
        nested=rb"(?:fun|class|interface|object|enum|typealias)\s",
        local=frozenset(("property",)),
        members={_CASES: rb"(?P<constant>NAME)(?=\s*+[,;({}])"},
        newline=True,
        scopes=frozenset(("companion",)),
    )


def _swift() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|fileprivate|internal|open|package|static|final"
        rb"|override|mutating|nonmutating|lazy|weak|unowned|required|convenience|dynamic|optional|indirect|prefix"
        rb"|postfix|infix|nonisolated|isolated|class(?=\h++(?:func|var|let)\b))(?:\(\w++\))?\h++)*+",
        rb"func\s++(?P<function>`?NAME`?|[-+*/%=<>!&|^~?.]++)(?=\s*+[(<])"
        rb"|(?P<init>init|subscript)[?!]?(?=\s*+[(<])"
        rb"|var\s++(?P<property>NAME)|let\s++(?P<constant>NAME)"
        rb"|class\s++(?P<class>NAME)|struct\s++(?P<struct>NAME)|actor\s++(?P<actor>NAME)"
        rb"|enum\s++(?P<enum>NAME)|protocol\s++(?P<protocol>NAME)"
        rb"|extension\s++(?P<extension>[\w.]++)"
        rb"|(?:typealias|associatedtype)\s++(?P<type>NAME)"
        rb"|case\h++(?P<case>NAME)"
        rb"|macro\s++(?P<macro>NAME)(?=\s*+[(<])",
        {
            **dict.fromkeys(("class", "struct", "protocol", "actor", "extension"), _OPEN),
            **dict.fromkeys(("function", "init", "property"), _CODE),
            "enum": _ENUM,
        },
        nested=rb"(?:func|class|struct|actor|enum|protocol|extension|typealias)\s",
        local=frozenset(("property", "constant", "case", "init")),
        newline=True,
        scopes=frozenset(("extension",)),
    )


def _scala() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:private|protected|final|sealed|abstract|implicit|lazy|override|inline"
        rb"|transparent|opaque|open|case(?=\h++(?:class|object)\b))(?:\[\w++\])?\h++)*+",
        rb"def\s++(?P<function>`[^`\n]++`|NAME|[-+*/%=<>!&|^~?:]++)"
        rb"|va[lr]\s++(?P<property>NAME)(?=\s*+[:=,])"
        rb"|class\s++(?P<class>NAME)|trait\s++(?P<trait>NAME)|object\s++(?P<object>NAME)"
        rb"|enum\s++(?P<enum>NAME)"
        rb"|given\s++(?P<given>NAME)(?=\s*+[:\[(])"
        rb"|type\s++(?P<type>NAME)(?=\s*+[=\[<>]|\h*+\n)"
        rb"|case\h++(?P<case>NAME)(?=\h*+[\n,(])",
        {
            **dict.fromkeys(("class", "trait", "object"), _OPEN),
            **dict.fromkeys(("function", "property"), _CODE),
            "enum": _ENUM,
        },
        nested=rb"(?:def|class|trait|object|enum)\s",
        local=frozenset(("property", "case", "type", "given")),
        newline=True,
    )


def _groovy() -> _Keywords:
    return _Keywords(
        rb"(?:@\w++(?:\([^()\n]*+\))?\h++)*+(?:(?:public|private|protected|static|final|abstract|synchronized)\h++)*+",
        rb"class\s++(?P<class>NAME)|interface\s++(?P<interface>NAME)|trait\s++(?P<trait>NAME)|enum\s++(?P<enum>NAME)"
        rb"|def\s++(?:(?P<function>NAME)(?=\h*+\()|(?P<property>NAME)(?=\h*+=))"
        rb"|(?!return\b|new\b|else\b|throw\b|def\b)[A-Z\w][\w.<>\[\]]*+\h++(?P<method>NAME)(?=\h*+JSPARENS\h*+\{)",
        {
            **dict.fromkeys(("class", "interface", "trait", "enum"), _OPEN),
            **dict.fromkeys(("function", "method"), _CODE),
        },
        nested=rb"(?:class|def)\s",
        local=frozenset(("property",)),
        newline=True,
    )


def _php() -> _Keywords:
    return _Keywords(
        rb"(?:#\[[^\n]*?\]\h*+)*+"
        rb"(?P<modifiers>(?:(?:public|protected|private|static|abstract|final|readonly|var)\b\s++)*+)",
        rb"function\s++&?\s*+(?P<function>NAME)(?=\s*+\()"
        rb"|class\s++(?P<class>NAME)(?=\s*+\{|\s++(?:extends|implements)\b)"
        rb"|interface\s++(?P<interface>NAME)(?=\s*+\{|\s++extends\b)"
        rb"|trait\s++(?P<trait>NAME)(?=\s*+\{)"
        rb"|enum\s++(?P<enum>NAME)(?=\s*+[{:]|\s++implements\b)"
        rb"|const\s++(?:[\w\\?|]++\s++)?(?P<const>NAME)(?=\s*+=)"
        rb"|\\?define\s*+\(\s*+(?P<define>\"++)(?=\s*+,)"
        rb"|(?:[\w\\?|&()]++\s++)?\$(?P<field>NAME)(?=\s*+[;=,{])"
        rb"|case\h++(?P<case>NAME)(?=\s*+[;=])",
        {"function": _CODE, **dict.fromkeys(("class", "interface", "trait", "enum"), _OPEN)},
        nested=rb"(?:function|class|interface|trait)\s|\\?define\s*+\(",
        local=frozenset(("field", "case")),
    )


def _zig() -> _Keywords:
    return _Keywords(
        rb"(?:(?:pub|export|extern(?:\h++\"++)?|inline|threadlocal|comptime)\h++)*+",
        rb"fn\s++(?P<function>NAME)(?=\s*+\()"
        rb"|(?:const|var)\s++(?P<constant>NAME)(?=\s*+[:=])"
        rb"|(?P<field>NAME)(?=\s*+:[^\n]*,[ \t\r]*+\n)",
        {"function": _CODE, "constant": _OPEN},
        nested=rb"fn\s",
        local=frozenset(("constant", "field")),
    )


def _protobuf() -> _Keywords:
    return _Keywords(
        rb"",
        rb"message\s++(?P<message>NAME)(?=\s*+\{)|enum\s++(?P<enum>NAME)(?=\s*+\{)"
        rb"|service\s++(?P<service>NAME)(?=\s*+\{)|oneof\s++(?P<oneof>NAME)(?=\s*+\{)"
        rb"|rpc\s++(?P<method>NAME)(?=\s*+\()"
        rb"|(?:(?:repeated|optional|required)\s++)?(?!option\b)(?:map\s*+<[^<>\n]*+>|[\w.]++)\s++(?P<field>NAME)"
        rb"(?=\s*+=\s*+\d)"
        rb"|(?P<constant>NAME)(?=\s*+=\s*+-?\d)",
        dict.fromkeys(("message", "enum", "service", "oneof"), _OPEN),
        local=frozenset(("field", "constant")),
    )


def _graphql() -> _Keywords:
    return _Keywords(
        rb"(?:extend\h++)?",
        rb"type\s++(?P<type>NAME)|interface\s++(?P<interface>NAME)|input\s++(?P<input>NAME)|enum\s++(?P<enum>NAME)"
        rb"|union\s++(?P<union>NAME)|scalar\s++(?P<scalar>NAME)|directive\s++@(?P<directive>NAME)"
        rb"|fragment\s++(?P<fragment>NAME)|(?:query|mutation|subscription)\s++(?P<operation>NAME)",
        {
            **dict.fromkeys(("type", "interface", "input"), _FIELDS),
            **dict.fromkeys(("fragment", "operation"), _CODE),
            "enum": _CASES,
        },
        members={_FIELDS: rb"(?P<field>NAME)(?=\s*+[(:])", _CASES: rb"(?P<constant>NAME)"},
        separators=b",\n}",
    )


_KEYWORDS: dict[str, Callable[[], _Keywords]] = {
    "rust": _rust,
    "kotlin": _kotlin,
    "swift": _swift,
    "scala": _scala,
    "groovy": _groovy,
    "php": _php,
    "zig": _zig,
    "protobuf": _protobuf,
    "graphql": _graphql,
}
_ANONYMOUS = {"php": b"class", "kotlin": b"object"}  # the word before the body of a class without a name
_LABELS = {
    "const": "constant", "static": "constant", "define": "constant", "actor": "class", "case": "variant",
    "init": "method", "message": "class", "oneof": "field", "operation": "function", "fragment": "function",
}  # fmt: skip


@cache
def _events(language: str) -> re.Pattern[bytes]:
    """Braces, and declarations at the beginning of a line or behind a brace."""
    table = _keywords(language)
    return _compiled(rb"[\n;{}](?:\h*+" + table.modifiers + rb"(?:" + table.declarations + rb")|(?<=[{}]))")


@cache
def _nested(language: str) -> re.Pattern[bytes]:
    table = _keywords(language)
    return _compiled(rb"\n\h*+" + table.modifiers + rb"(?:" + table.nested + rb")")


@cache
def _member(language: str, mode: str) -> re.Pattern[bytes]:
    return _compiled(_keywords(language).members[mode])


def _walk_keywords(cleaned: bytes, language: str) -> _Walked:
    walk = _Keyworded(_opaque(cleaned, language), cleaned, language)
    walk.walk()
    return _Walked(walk.found, walk.text, _finish_braces)


class _Keyworded(_Braces):
    """Walks a language in which a keyword stands before what is defined."""

    __slots__ = ("language", "source", "table")

    def __init__(self, text: bytes, cleaned: bytes, language: str) -> None:
        super().__init__(text, _nested(language))
        self.language = language
        self.source = b"\n" + cleaned
        self.table = _keywords(language)

    def walk(self) -> None:
        text = self.text
        search = _events(self.language).search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode in (_FIELDS, _CASES):
                at = self.member(at, mode)
                continue
            match = search(text, at)
            if match is None:
                break
            start, at = match.span()
            kind = match.lastgroup
            byte = text[start]
            if byte == _CLOSING:
                self.pop(start + 1)
                if self.stack[-1].mode in (_FIELDS, _CASES):
                    at = start + 1
                    continue
            elif byte == _BRACE and start != self.entered:
                at = self.brace(start, at, is_plain=kind is None)
            if kind is not None and (self.stack[-1].mode != _CODE or kind not in self.table.local):
                at = self.declare(match, kind)

    def brace(self, start: int, at: int, *, is_plain: bool) -> int:
        """A block without a name."""
        if is_plain:
            word = _ANONYMOUS.get(self.language)
            low = max(0, start - 300)
            if word and self.text.find(word, low, start) >= 0 and _pattern(self.language).search(self.text, low, start):
                self.push(_OPEN)
                return at
            if (end := self.leaf(start)) >= 0:
                return end
        self.push(_CODE)
        return at

    def declare(self, match: re.Match[bytes], kind: str) -> int:
        text, frame = self.text, self.stack[-1]
        begin, end = match.span(kind)
        mark: _Mark | None = None
        scope: bytes | None = None
        if kind not in self.table.scopes:
            if not self.counts(match, kind):
                return match.end()
            if text[begin] in b'"`':
                begin, end = begin + 1, end - 1
            label = "method" if kind == "function" and frame.scope and frame.mode != _CODE else _LABELS.get(kind, kind)
            mark = self.add(begin, end, label)
            if self.language == "kotlin" and kind == "function" and match["receiver"] and not frame.scope:
                mark.scope = match["receiver"].partition(b"<")[0].rstrip(b"?")
            if kind == "case" and self.language in ("swift", "scala"):
                return self.cases(end)
        elif kind == "extension":
            scope = match[kind]
        if kind not in self.table.modes:
            return match.end()
        opened = self.header_end(match.end(), mark, kind)
        if opened < 0:
            return match.end()
        mode = self.table.modes[kind]
        if kind == "impl":
            scope = _impl_type(text[match.end() : opened])
        if mode == _CODE:
            return self.enter(opened, mark, scope)
        self.push(mode, mark, scope)
        self.entered = opened
        return opened if mode in (_OPEN, _ENUM) else opened + 1

    def counts(self, match: re.Match[bytes], kind: str) -> bool:
        if kind == "case" and self.language != "php":
            return self.stack[-1].mode == _ENUM
        if kind == "field" and self.language == "php":
            return bool(match["modifiers"])
        if kind == "define":
            quoted = _pattern("quoted name").match(self.source, match.start(kind))
            return quoted is not None and quoted.end() == match.end(kind)
        return kind != "constant" or self.language != "zig" or self.stack[-1].mode != _CODE

    def cases(self, at: int) -> int:
        """The others of `case a, b(Int), c`."""
        while True:
            if self.is_at(at, _PAREN):
                at = self.close(at)
            more = _pattern("more cases").match(self.text, at)
            if more is None:
                return at
            self.add(*more.span(1), "variant")
            at = more.end()

    def header_end(self, at: int, mark: _Mark | None, kind: str) -> int:
        """The brace of a body, or -1."""
        text = self.text
        has_fields = {"kotlin": ("class", "enum"), "scala": ("class",), "php": ("function",)}.get(self.language, ())
        limit = at + 5000
        while self.fuel > 0 and (match := _pattern("header").search(text, at, limit)):
            byte = text[match.start()]
            at = match.end()
            self.fuel -= 1
            if byte == _BRACE:
                return match.start()
            if byte in b"([":
                at = self.close(match.start())
                if byte == _PAREN and kind in has_fields and mark is not None:
                    self.fields(match.start(), at, mark)
                    has_fields = ()
            elif byte == _NEWLINE:
                before = text[max(0, match.start() - 40) : match.start()].rstrip()[-1:]
                goes_on = before in (b",", b":", b"(") or _pattern("header goes on").match(text, at) is not None
                if self.table.newline and not goes_on:
                    return -1
            elif byte == _EQUALS:
                is_operator = text[match.start() - 1] in b"=<>!" or text[at] in b"=>"
                if not is_operator and self.language not in ("rust", "zig"):
                    return -1
            else:
                return -1
        return -1

    def fields(self, opened: int, end: int, mark: _Mark) -> None:
        """The parameters of a constructor that are fields as well."""
        name = self.text[mark.begin : mark.end]
        if end - opened > 10_000 or (self.language == "php" and name != b"__construct"):
            return
        scope = mark.scope if self.language == "php" else _join(mark.scope, name)
        pattern = _pattern("php parameter" if self.language == "php" else "kotlin parameter")
        for match in pattern.finditer(self.text, opened, end):
            self.add(*match.span(1), "field", scope=scope)

    def member(self, at: int, mode: str) -> int:
        """A field of a struct or a variant of an enum; the offset behind it."""
        text = self.text
        before = at
        separators = _pattern("separators").match(text, at)
        at = separators.end() if separators else at
        if at >= len(text) or text[at] == _CLOSING:
            self.pop(at + 1)
            return at + 1
        if attribute := _pattern("attribute").match(text, at):
            at = attribute.end()
            return self.close(at) if at < len(text) and text[at] in b"[(" else at
        match = _member(self.language, mode).match(text, at)
        if match is None:
            if self.language == "kotlin":  # behind the constants stand the members
                self.stack[-1].mode = _OPEN
                return max(before, text.rfind(b"\n", before, at))
            return self.hop(at, self.table.separators)
        kind = match.lastgroup or ""
        mark = self.add(*match.span(kind), kind, at)
        at = match.end()
        opened = self.skip(at)
        if self.language == "kotlin" and self.is_at(opened, _PAREN):
            opened = self.skip(self.close(opened))
        if mode == _CASES and self.is_at(opened, _BRACE):
            self.push(_OPEN if self.language == "kotlin" else _FIELDS, mark)
            self.entered = opened
            return opened if self.language == "kotlin" else opened + 1
        if self.language != "graphql" or mode == _FIELDS:
            at = self.hop(at, b",;}" if self.language == "kotlin" else self.table.separators)
        mark.stop = at
        if self.language == "kotlin" and self.is_at(at, _SEMICOLON):
            self.stack[-1].mode = _OPEN
        return at


def _impl_type(header: bytes) -> bytes:
    """The type that an `impl` is for."""
    header = header[-600:]
    for _ in range(6):
        header, count = re.subn(rb"(?<!-)<[^<>]*+>", b"", header)
        if not count:
            break
    target = re.split(rb"\bfor\b", re.split(rb"\bwhere\b", header)[0])[-1]
    words = [word for word in _pattern("name").findall(target) if word not in (b"dyn", b"mut", b"const")]
    return words[-1] if words else b""


_PATTERNS |= {
    "header": rb"[{(\[;}=\n]",
    "header goes on": rb"\s*+(?:\{|:|->|,|(?:@[\w.]++\s*+)*+(?:(?:internal|private|protected|public)\s++)?constructor\b"
    rb"|(?:where|throws|rethrows|async|extends|with|derives|implements)\b)",
    "attribute": rb"#!?(?=\[)|@[\w.:]++",
    "more cases": rb"(?:\s*+=\s*+[^\s,]++)?\s*+,\s*+(NAME)",
    "php": rb"\bnew\s++(?:readonly\s++)?class\b[^;{}]*+$",
    "kotlin": rb"\bobject\b\h*+(?::[^;{}]*+)?$",
    "php parameter": rb"(?:(?:public|protected|private|readonly)\s++)++(?:[\w\\?|&]++\s++)*?\$(NAME)",
    "kotlin parameter": rb"(?<!\w)va[lr]\s++(NAME)\s*+:",
}


# --- Go ---------------------------------------------------------------------------------------------------------------

_PATTERNS |= {
    "go": rb"[\n{}](?:(?<=\n)(?:"
    rb"func\h*+(?:\(\s*+(?:NAME\h++)?\*?\h*+(?P<receiver>NAME)[^()]*+\)\h*+)?(?P<function>NAME)(?=\h*+[(\[])"
    rb"|(?P<keyword>const|var)\h++(?:(?P<list>\()|(?P<names>NAMES))"
    rb"|\h*+type\h++(?:(?P<types>\()|(?P<type>NAME)(?=[ \t\[])))|(?<=[{}]))",
    "go nested": rb"\n\h*+type\h",
    "go shape": rb"\h*+(?:\[[^\n]*?\]\h*+)?(?:=\h*+)?(?P<shape>struct|interface)\h*+\{",
    "go field": rb"(?P<names>NAMES)(?=\h++[^\s;}\"]|\()",
    "go inner": rb"\h*+(?:\[[^\n\]]*+\]|\*|map\[[^\n\]]*+\])*+(?P<shape>struct|interface)\h*+\{",
    "go item": rb"[\s;]*+(?P<names>NAMES)",
}


def _walk_go(cleaned: bytes, language: str) -> _Walked:
    go = _Go(_opaque(cleaned, language), _pattern("go nested"))
    go.walk()
    return _Walked(go.found, go.text, _finish_braces)


class _Go(_Braces):
    """Walks Go. Other than the common ones, modes are: struct, interface."""

    __slots__ = ()

    def walk(self) -> None:
        text = self.text
        search = _pattern("go").search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode in ("struct", "interface"):
                at = self.member(at, mode)
                continue
            match = search(text, at)
            if match is None:
                break
            start, at = match.span()
            kind = match.lastgroup
            if text[start] == _CLOSING:
                self.pop(at)
            elif text[start] == _BRACE:
                at = self.enter(start) if start != self.entered else at
            elif kind == "function":
                receiver = match["receiver"]
                label = "method" if receiver else "function"
                at = self.function(self.add(*match.span(kind), label, start + 1, receiver or b""))
            elif kind == "type":
                at = self.type(self.add(*match.span(kind), "type", self.skip(start)))
            elif kind == "types":
                at = self.listed(match.start(kind), "type")
            elif kind is not None:
                label = "constant" if match["keyword"] == b"const" else "variable"
                if kind == "list":
                    at = self.listed(match.start(kind), label)
                else:
                    self.add_all(*match.span(kind), label, start + 1)

    def add_all(self, begin: int, end: int, kind: str, start: int) -> list[_Mark]:
        spans = (name.span() for name in _pattern("name").finditer(self.text, begin, end))
        return [self.add(first, last, kind, start) for first, last in spans if self.text[first:last] != b"_"]

    def function(self, mark: _Mark) -> int:
        """Into a body: the first brace that does not belong to a type."""
        text = self.text
        at = mark.end
        limit = at + 5000
        while match := _pattern("header").search(text, at, limit):
            place = match.start()
            if text[place] in b"([":
                at = self.close(place)
            elif text[place] != _BRACE:
                mark.stop = place
                return place
            elif text[max(0, place - 12) : place].rstrip().endswith((b"struct", b"interface")):
                at = self.close(place)
            else:
                return self.enter(place, mark)
        return at

    def type(self, mark: _Mark) -> int:
        match = _pattern("go shape").match(self.text, mark.end)
        if match is None:
            return mark.end
        mark.kind = match["shape"].decode()
        self.push(mark.kind, mark)
        return match.end()

    def listed(self, opened: int, kind: str) -> int:
        """The items of `const (`, `var (` or `type (`."""
        close = self.close(opened)
        at = opened + 1
        while (item := _pattern("go item").match(self.text, at, close)) is not None:
            marks = self.add_all(*item.span("names"), kind, item.start("names"))
            at = item.end()
            if kind == "type" and marks:
                depth = len(self.stack)
                at = self.type(marks[0])
                while len(self.stack) > depth and at < close:
                    at = self.member(at, self.stack[-1].mode)
            at = self.hop(at, b"\n;)")
            for mark in marks:
                mark.stop = at if mark.stop < 0 else mark.stop
        return max(close, at)

    def member(self, at: int, mode: str) -> int:
        text = self.text
        separators = _pattern("separators").match(text, at)
        at = separators.end() if separators else at
        if at >= len(text) or text[at] == _CLOSING:
            self.pop(at + 1)
            return at + 1
        match = _pattern("go field").match(text, at)
        if match is None or (mode == "interface") != (text[match.end()] == _PAREN):
            return self.hop(at, b"\n;}")
        marks = self.add_all(*match.span("names"), "field" if mode == "struct" else "method", at)
        at = match.end()
        if mode == "struct" and marks and (inner := _pattern("go inner").match(text, at)):
            self.push(inner["shape"].decode(), marks[0])
            return inner.end()
        at = self.hop(at, b"\n;}")
        for mark in marks:
            mark.stop = at
        return at


# --- words before a bracket: Java, C#, Dart, C, C++ -------------------------------------------------------------------
# These languages have no keyword before a function or a field. What is defined follows from the words that stand before
# the bracket, the `=` or the `;` which comes first.

_TYPE_WORDS = (
    rb"enum(?:\s++(?:class|struct))?|@interface|class|struct|union|interface|record(?:\s++(?:class|struct))?|namespace"
    rb"|extension|mixin|trait|module"
)
_PATTERNS |= {
    "terminator": rb"::|[({}\[;=,:]",
    "last word": rb"((?:WORD(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>)?\s*+::\s*+)*+)(~?WORD)$",
    "operator": rb"\boperator\b\s*+"
    rb"(?:\(\s*+\)|\[\s*+\]|\"++\s*+\w*+|[^\s\w(]++|(?:new|delete)\b(?:\s*+\[\])?|[\w:<>\s*&]++)\s*+$",
    "declarator": rb"[\s*&^]*+(?:const\s++)?(WORD)\s*+(?:\[[^\[\]]*+\]\s*+)*+(?::(?!:)[^,;]*+)?$",
    "next declarator": rb"\s*+[\s*&^]*+WORD\s*+(?:\[[^\[\]]*+\]\s*+)*+[=,;]",
    "pointer": rb"\s*+(?:[\w:]++\s*+)*?[*^&]++\s*+(?:(?:const|volatile|_Nullable|_Nonnull)\s++)*+(WORD)",
    "enclosed name": rb"\s*+(WORD)\s*+\)\s*+\(",
    "type word": rb"(?<![\w.@$])(" + _TYPE_WORDS + rb")\b\s*+(?![,>=)])",
    "type name": rb"(?:(?:final|alignas|__attribute__|__declspec|sealed)\b\s*+|\[\[[^\]]*+\]\]\s*+"
    rb"|[A-Z][A-Z0-9_]*+\s++(?=[A-Za-z_]))*+"
    rb"((?:WORD(?:\s*+(?:::|\.)\s*+)?)++)",
    "enum item": rb"(?:[\s,]|@[\w.]++(?:\s*+\([^()]*+\))?|\[[^\[\]]*+\])*+(WORD)"
    rb"(?=\s*+(?:[,;}(={]|[A-Z_]++\b|__attribute__|\[\[))",
    "access": rb"(?:public|private|protected|signals|Q_SIGNALS)(?:\s++(?:slots|Q_SLOTS))?+",
    "component": rb"(WORD)\s*+(?:=[^,()]*+)?(?=[,)])",
    "bit field": rb"(?<!:):(?!:)",
    "value": rb"\s*+=(?![=>])",
    "call behind": rb"\s*+WORD\s*+\(",
    "local name": rb"[\s*&]*+(WORD)\s*+[;,=\[]",
    "word behind": rb"\s*+(WORD)",
    "directive": rb"\n\h*+#[^\n]*+(?:(?<=\\)\n[^\n]*+|(?<=\\\r)\n[^\n]*+)*+",
    "define": rb"\n\h*+#\h*+define\h++([A-Za-z_]\w*+)",
    "condition": rb"\n\h*+#\h*+(if|elif|else|endif)",
    "local type": rb"[\n;{}](?:(?:\s*+(?:final|static|abstract|typedef|const)\b)*+\s*+"
    rb"(?P<type>(?:(?:class|enum|interface|struct|union)\b[^;{}=()]*+"
    rb"|record\s++WORD[^;{}=()]*+\([^;{}]*+\)[^;{}=()]*+)\{)|(?<=[{}]))",
    "nested type": rb"\n\h*+(?:(?:final|static|abstract|typedef)\h++)*+"
    rb"(?:@\w|(?:public|protected|private|class|enum|interface|record|struct|union)\b)",
    "anonymous": rb"new\s++[\w.$]++\s*+(?:<[^;{}()]*>)?\s*+\([^;{}]*\)\s*+$",
}
_CALLS = frozenset(  # words before a parenthesis that are neither a name nor a part of a declaration
    b"if for while switch return catch sizeof alignof asm __asm__ static_assert _Static_assert new case assert do else"
    b" using try".split()
)
_BEFORE_CALLS = frozenset(b"return new throw else case await goto".split())
_OWN_CALLS = {
    "java": frozenset(b"this super synchronized".split()),
    "csharp": frozenset(b"this base lock fixed checked unchecked foreach when await yield nameof typeof".split()),
    "dart": frozenset(b"this super await".split()),
}
_ATTRIBUTES = frozenset(
    b"__attribute__ __declspec alignas _Alignas decltype noexcept throw typeof __typeof__ requires explicit".split()
)
_RESERVED = frozenset(
    b"if for while switch return else case default do break continue goto void int char bool float double long short"
    b" unsigned signed const static extern auto new delete this".split()
)
_BEHIND = frozenset(  # words that may stand between parameters and a body
    b"const noexcept override final throw throws volatile try requires where default async sync mutable restrict"
    b" __attribute__ abstract external native on".split()
)
_STATEMENTS = frozenset(  # words that begin what defines nothing
    b"import package using return goto friend export part library throw delete break continue yield await module if"
    b" else case default do while for requires exports opens provides uses".split()
)
_TYPE = "type"
_NATIVE = frozenset(("c", "cpp"))


def _walk_headers(cleaned: bytes, language: str) -> _Walked:
    text = _opaque(cleaned, language)
    macros: list[_Mark] = []
    if language in ("c", "cpp", "csharp"):
        text = _without_directives(text, macros)
    headed = _Headed(text, language, macros)
    headed.walk()
    return _Walked(headed.found, text, _finish_braces)


def _without_directives(text: bytes, macros: list[_Mark]) -> bytes:
    """The text without lines of the preprocessor, and without branches that would unbalance its braces."""
    parts: list[bytes] = []
    branches: list[tuple[int, int, bool]] = []  # braces opened and closed before a branch, whether others are left out
    opened = closed = at = dropped = 0
    for match in _pattern("directive").finditer(text):
        code = text[at : match.start()]
        at = match.end()
        if dropped:
            code = code.translate(_BLANK)
        else:
            opened += code.count(b"{")
            closed += code.count(b"}")
        parts += (code, match[0].translate(_BLANK))
        if name := _pattern("define").match(match[0]):
            begin = match.start() + name.start(1)
            macros.append(_Mark(begin, begin + len(name[1]), "macro", b"", match.start() + 1, match.end()))
        condition = _pattern("condition").match(match[0])
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


class _Item:
    """What has been read of one declaration."""

    __slots__ = ("anonymous", "head", "is_type", "kind", "listed", "name", "record", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.head = start  # where its words begin, behind annotations
        self.name: tuple[int, int, bytes] | None = None  # of a function, once its parameters were seen
        self.kind = ""
        self.listed = False  # whether what follows is a further name
        self.is_type = False  # whether it is the header of a type
        self.record = -1  # where the fields of a record begin, which may have no body
        self.anonymous: tuple[int, int] | None = None  # the members of a type that gets its name behind its body


class _Headed(_Braces):
    """Walks a language by the words before brackets. Other than code, modes are: type (a file as well), enum."""

    __slots__ = ("item", "language", "types")

    def __init__(self, text: bytes, language: str, macros: list[_Mark]) -> None:
        super().__init__(text, _pattern("nested type"), _TYPE)
        self.found = macros
        self.language = language
        self.item = _Item(0)
        self.types = [b""]  # the names of the types around

    def walk(self) -> None:
        text = self.text
        search = _pattern("terminator").search
        at = 0
        while at < len(text):
            mode = self.stack[-1].mode
            if mode == _CODE:
                at = self.local(at)
                continue
            if mode == _ENUM:
                at = self.constant(at)
                continue
            match = search(text, at)
            if match is None:
                break
            place, at = match.span()
            byte = text[place]
            if byte == _PAREN:
                at = self.parenthesis(place)
            elif byte == _BRACE:
                at = self.brace(place)
            elif byte == _CLOSING:
                at = self.closing(place)
            elif byte == _SEMICOLON:
                self.statement(place)
                self.item = _Item(at)
            elif byte == _EQUALS:
                at = self.equals(place)
            elif byte == _COMMA:
                self.comma(place)
            elif byte == _BRACKET:
                at = self.close(place)
                if not text[self.item.head : place].strip():
                    self.item.head = at  # an attribute
            elif at - place == 1 and _pattern("access").fullmatch(text[self.item.head : place].strip()):
                self.item = _Item(at)

    def words(self, place: int, limit: int = 400) -> bytes:
        """The words before a bracket, as far as they matter."""
        return self.text[max(self.item.head, place - limit) : place]

    def last_name(self, header: bytes, place: int) -> tuple[int, int, bytes] | None:
        """The last word of a header that ends here, and what it is qualified with."""
        if b"operator" in header and (match := _pattern("operator").search(header)):
            start = place - len(header) + match.start()
            return start, start + len(match[0].rstrip()), b""
        bare = header.rstrip()
        while bare.endswith((b"]", b">")):
            opener = bare.rfind(b"[") if bare.endswith(b"]") else _angle_start(bare)
            if opener < 0:
                return None
            bare = bare[:opener].rstrip()
        match = _pattern("last word").search(bare, max(0, len(bare) - 120) if b"::" in bare else _last_break(bare))
        if match is None:
            return None
        start = place - len(header) + match.start(2)
        return start, start + len(match[2]), match[1]

    # Brackets

    def parenthesis(self, place: int) -> int:
        """Parameters of a function, when a name stands before them."""
        item, text = self.item, self.text
        end = self.close(place)
        if item.name is not None or end == place + 1:
            return end
        header = self.words(place)
        if _is_in_angles(header):
            return end
        found = self.last_name(header, place)
        if self.language in _NATIVE and header.strip():
            inner = _pattern("pointer").match(text, place + 1, end)
            if inner is None:
                inner = _pattern("enclosed name").match(text, place + 1, end + 40)
            if inner is not None and text[end : end + 80].lstrip().startswith(b"("):
                is_function = inner.end() > end
                variable = "field" if self.stack[-1].scope else "variable"
                item.kind = "type" if b"typedef" in header.split() else "function" if is_function else variable
                item.name = (*inner.span(1), b"")
                return self.close(text.index(b"(", end))
        if found is None:
            return end
        begin, stop, qualifier = found
        name = text[begin:stop]
        before = header[: len(header) - (place - begin)].rstrip()
        if before.endswith(b"@") or (before.endswith(b".") and b"@" in before.split()[-1]):
            item.head = end  # an annotation
            return end
        words = [word for word in before.split() if not word.startswith(b"@")]
        if name in _ATTRIBUTES:
            return end
        is_type = words and words[-1] in (b"class", b"struct", b"union", b"enum")
        if name == b"new" or (is_type if self.language in _NATIVE else name in _OWN_CALLS.get(self.language, ())):
            return end
        if b"typedef" in words and _pattern("word behind").match(text, end):
            return end  # a macro that stands for a type
        if name in _CALLS or (words and words[-1] in _BEFORE_CALLS):
            item.head = end
            return end
        if words and words[-1] in (b"record", b"class", b"struct") and self.language not in _NATIVE:
            return self.components(place, end, name)
        if not self.is_function(name, words, qualifier, end):
            item.head = end  # a macro, or an attribute that looks like one
            return end
        item.name = found
        item.kind = "type" if b"typedef" in words else "function"
        return end

    def is_function(self, name: bytes, words: list[bytes], qualifier: bytes, end: int) -> bool:
        """Whether a name before parameters is declared here, by what stands before the name and behind them."""
        behind = _pattern("word behind").match(self.text, end)
        goes_on = behind is not None and behind[1] not in _BEHIND
        follows = self.text[end : end + 200].lstrip()[:1]
        if words or qualifier:
            if not goes_on or self.language not in _NATIVE or not name.isupper():
                return True
            return len(words) > 1 and _pattern("call behind").match(self.text, end) is None
        if name.lstrip(b"~") == self.types[-1] or (self.types[-1] and name.startswith(self.types[-1] + b".")):
            return True
        if goes_on or name.isupper():
            return False
        return follows == b"{" or (self.language == "dart" and follows == b"=")

    def components(self, place: int, end: int, name: bytes) -> int:
        """The fields of a record."""
        scope = _join(self.stack[-1].scope, name)
        if end - place < 5000:
            for match in _pattern("component").finditer(self.text, place, end):
                self.add(*match.span(1), "field", scope=scope)
        self.item.record = place
        return end

    def brace(self, place: int) -> int:
        item = self.item
        if item.name is not None:
            if self.language == "cpp" and self.is_initializer(place):
                return self.close(place)
            mark = self.add_named()
            self.item = _Item(place + 1)
            end = self.enter(place, mark)
            self.item = _Item(end)
            return end
        header = self.words(place, 20_000)
        bare = _without_brackets(header)
        words = bare.split()
        kind = _pattern("type word").search(bare)
        if kind is not None and b"=" not in bare:
            return self.open_type(place, bare, kind)
        if words and words[0] == b"extern" and words[-1].startswith(b'"'):
            self.push(_TYPE)
            self.types.append(b"")
            self.item = _Item(place + 1)
            return place + 1
        found = self.last_name(header, place)
        if found is None or len(words) < 2 or words[0] in _STATEMENTS or self.language not in ("csharp", "c", "cpp"):
            end = self.enter(place)
            self.item = _Item(end)
            return end
        end = self.close(place)
        if self.text[found[0] : found[1]] not in _RESERVED:
            mark = self.add(*found[:2], "property" if self.language == "csharp" else "variable", self.begin())
            mark.stop = end
        if value := _pattern("value").match(self.text, end):
            end = self.hop(value.end(), b";}")
        self.item = _Item(end)
        return end

    def open_type(self, place: int, bare: bytes, kind: re.Match[bytes]) -> int:
        """Into a class or the like."""
        word = kind[1].split()[0].lstrip(b"@").decode()
        found = _pattern("type name").match(bare, kind.end())
        name = b"".join(found[1].split()).strip(b":.") if found else b""
        if name in (b"final", b"on", b"extends", b"implements", b"where"):
            name = b""
        mark = None
        if found is not None and name and word != "extension":
            begin = place - len(bare) + found.start(1)
            end = begin + len(found[1].rstrip())
            if word != "namespace":
                begin = max(begin, self.text.rfind(b"::", begin, end) + 2)
                begin += len(self.text[begin:end]) - len(self.text[begin:end].lstrip())
            else:
                begin = max(begin, self.text.rfind(b".", begin, end) + 1, self.text.rfind(b":", begin, end) + 1)
            if begin < end:
                mark = self.add(begin, end, word, self.begin())
        scope = _join(self.stack[-1].scope, name.replace(b"::", b".")) if name else None
        self.push(_ENUM if word == "enum" else _TYPE, mark, scope)
        if self.language in _NATIVE and word in ("struct", "union", "enum", "class"):
            self.stack[-1].start = self.item.start
        self.types.append(name.rpartition(b"::")[2])
        self.item = _Item(place + 1)
        return place + 1

    def closing(self, place: int) -> int:
        """The end of a type. In C, names may follow."""
        frame = self.stack[-1]
        self.pop(place + 1)
        if len(self.types) > 1:
            self.types.pop()
        self.item = item = _Item(place + 1)
        if frame.start >= 0:
            item.listed = True
            item.start = frame.start
            if self.text[frame.start : frame.start + 200].lstrip().startswith(b"typedef"):
                item.kind = "type"
            if frame.mark is None:
                item.anonymous = (frame.first, len(self.found))
            if self.stack[-1].mode == _CODE and (match := _pattern("local name").match(self.text, place + 1)):
                if item.kind == "type":
                    self.further(match.end(1), self.text[place + 1 : match.end(1)])
                return match.end(1)
        return place + 1

    def local(self, at: int) -> int:
        """Inside of a function only types count, those without a name too."""
        frame = self.stack[-1]
        match = _pattern("local type").search(self.text, at)
        if match is None:
            return len(self.text)
        place = match.start()
        byte = self.text[place]
        if 0 <= frame.start <= place:  # the end of a value
            self.stack.pop()
            return frame.start
        if byte == _CLOSING:
            self.pop(place + 1)
            if self.stack[-1].mode != _CODE:
                self.item = _Item(place + 1)
        elif byte == _BRACE and place != self.entered:
            if self.language == "java" and self.is_anonymous(place):
                self.push(_TYPE)
                self.types.append(b"")
                self.item = _Item(place + 1)
                return place + 1
            if match["type"] is None and (end := self.leaf(place)) >= 0:
                return end
            self.push(_CODE)
        if match["type"] is None:
            return match.end()
        self.item = _Item(place + 1)
        opened = self.text.find(b"(", match.start("type"), match.end())
        if opened >= 0:
            self.components(opened, match.end(), match["type"].split()[1].partition(b"(")[0])
        bare = _without_brackets(self.words(match.end() - 1, 20_000))
        kind = _pattern("type word").search(bare)
        if kind is None:
            return place + 1
        return self.open_type(match.end() - 1, bare, kind)

    def is_anonymous(self, place: int) -> bool:
        """Whether a class without a name begins here."""
        low = max(0, place - 300)
        new = self.text.rfind(b"new ", low, place)
        match = _pattern("anonymous").match(self.text, new, place) if new >= 0 else None
        return match is not None and match[0].count(b"(") == match[0].count(b")")

    # Statements

    def statement(self, place: int) -> None:
        """A declaration that ends with a semicolon."""
        item = self.item
        if item.name is not None:
            self.add_named().stop = place + 1
            return
        if item.record >= 0 and (found := self.last_name(self.words(item.record), item.record)):
            self.add(*found[:2], "record", self.begin()).stop = place + 1
            return
        header = self.words(place)
        if item.listed:
            self.further(place, header)
            return
        words = [word for word in header.split() if not word.startswith(b"@")]
        if len(words) < 2 or words[0] in _STATEMENTS:
            return
        if words[0] in (b"class", b"struct", b"union", b"enum", b"interface", b"namespace") and len(words) == 2:
            return  # announced, not defined
        if words[0].startswith(b"template") and words[-2] in (b"class", b"struct"):
            return
        if cut := _pattern("bit field").search(header):
            place -= len(header) - cut.start()
            header = header[: cut.start()]
        self.variable(header, place, words)

    def variable(self, header: bytes, place: int, words: list[bytes]) -> _Mark | None:
        """A field or a variable, when a type stands before its name."""
        found = self.last_name(header, place)
        if found is None or not header[: found[0] - place].strip() or self.text[found[0] : found[1]] in _RESERVED:
            return None
        return self.add(*found[:2], self.item.kind or self.variable_kind(words), self.begin())

    def variable_kind(self, words: list[bytes]) -> str:
        if words[0] == b"typedef":
            return "type"
        if b"const" in words or b"constexpr" in words or (b"final" in words and b"static" in words):
            return "constant"
        return "field" if self.stack[-1].scope else "variable"

    def further(self, place: int, header: bytes) -> None:
        """One more name, behind a comma or the body of a type."""
        match = _pattern("declarator").match(header)
        if match is None or match[1] in _RESERVED:
            return
        item = self.item
        begin = place - len(header) + match.start(1)
        kind = item.kind or ("field" if self.stack[-1].scope else "variable")
        mark = self.add(begin, begin + len(match[1]), kind, self.begin())
        mark.stop = place + 1
        if item.anonymous is not None:
            outer = self.stack[-1].scope
            for member in self.found[slice(*item.anonymous)]:
                member.scope = _join(_join(outer, match[1]), member.scope[len(outer) :].lstrip(b"."))
            item.anonymous = None

    def equals(self, place: int) -> int:
        """A value, or a body that is an expression."""
        item = self.item
        header = self.words(place)
        if b"operator" in header and _pattern("operator head").search(header):
            return place + 1
        if item.name is not None:
            function = self.add_named()
            end = self.hop(place + 1, b";}")
            function.stop = end + 1
            self.item = _Item(end + 1 if self.is_at(end, _SEMICOLON) else end)
            return self.item.start
        if _is_in_angles(header):
            return place + 1
        words = [word for word in header.split() if not word.startswith(b"@")]
        mark: _Mark | None = None
        if item.listed and (match := _pattern("declarator").match(header)):
            begin = place - len(header) + match.start(1)
            mark = self.add(begin, begin + len(match[1]), item.kind or self.variable_kind([b"", *words]), self.begin())
        elif words and words[0] == b"using":
            if self.language == "cpp" and len(words) == 2:
                begin = place - len(header) + header.rfind(words[1])
                mark = self.add(begin, begin + len(words[1]), "type", self.begin())
        elif words and words[0] not in _STATEMENTS:
            mark = self.variable(header, place, words)
        return self.initializer(place, mark)

    def initializer(self, place: int, mark: _Mark | None) -> int:
        """Over a value, or into it when classes may stand in it."""
        text, item = self.text, self.item
        at = place + 1
        while True:
            end = self.hop(at, b";,}")
            if not self.is_at(end, _COMMA) or _pattern("next declarator").match(text, end + 1):
                break
            at = end + 1  # the comma of a generic type
        if mark is not None:
            mark.stop = end + 1 if self.is_at(end, _SEMICOLON) else end
        if self.is_at(end, _COMMA):
            item.listed = True
            item.head = end + 1
            return end + 1
        self.item = _Item(end + 1 if self.is_at(end, _SEMICOLON) else end)
        if self.language not in _NATIVE and text.find(b"{", place, end) >= 0:
            self.push(_CODE, None, _join(mark.scope, text[mark.begin : mark.end]) if mark is not None else None)
            self.stack[-1].start = self.item.start
            return place + 1
        return self.item.start

    def comma(self, place: int) -> None:
        item = self.item
        if item.name is not None or item.is_type:
            return
        header = self.words(place)
        if _is_in_angles(header):
            return
        words = [word for word in header.split() if not word.startswith(b"@")]
        if item.listed:
            self.further(place, header)
        elif len(words) < 2 or words[0] in _STATEMENTS:
            return
        elif self.is_type_header(header):
            item.is_type = True
            return
        else:
            item.kind = "type" if words[0] == b"typedef" else ""
            mark = self.variable(header, place, words)
            if mark is None:
                return
            mark.stop = place
            item.listed = True
        item.head = place + 1

    def is_type_header(self, header: bytes) -> bool:
        """Whether a comma behind this stands in a list of base types."""
        bare = _without_brackets(header)
        kind = _pattern("type word").search(bare)
        return kind is not None and (
            self.language not in _NATIVE or _pattern("bit field").search(bare, kind.end()) is not None
        )

    def constant(self, at: int) -> int:
        """One constant of an enum."""
        text = self.text
        match = _pattern("enum item").match(text, at)
        mark: _Mark | None = None
        if match is not None:
            mark = self.add(*match.span(1), "constant", match.start(1))
            at = self.skip(match.end())
            if self.is_at(at, _PAREN):
                at = self.skip(self.close(at))
            if self.is_at(at, _BRACE) and self.language not in _NATIVE:
                self.push(_TYPE, mark)
                self.types.append(b"")
                self.item = _Item(at + 1)
                return at + 1
        end = self.hop(at, b",;}")
        if mark is not None:
            mark.stop = end
        if end >= len(text):
            return end
        if text[end] == _CLOSING:
            return self.closing(end)
        if text[end] == _SEMICOLON:
            self.stack[-1].mode = _TYPE
            self.item = _Item(end + 1)
        return end + 1

    def add_named(self) -> _Mark:
        """The function whose parameters were seen."""
        assert self.item.name is not None
        begin, end, qualifier = self.item.name
        frame = self.stack[-1]
        scope = _join(frame.scope, _unqualified(qualifier)) if qualifier else frame.scope
        kind = self.item.kind
        if kind == "function" and len(self.stack) > 1:
            is_class = frame.mark is None or frame.mark.kind != "namespace"
            kind = "method" if is_class and (self.language not in _NATIVE or frame.scope) else kind
        if kind == "function" and qualifier:
            kind = "method"
        return self.add(begin, end, kind, self.begin(), scope)

    def begin(self) -> int:
        return self.skip(self.item.start)

    def is_initializer(self, place: int) -> bool:
        """Whether this brace sets a member, in the list before the body of a constructor."""
        before = self.text[max(0, place - 60) : place].rstrip()[-1:]
        if not before.isalnum() and before not in (b"_", b">"):
            return False
        end = self.close(place)
        return self.text[end : end + 40].lstrip()[:1] in (b",", b"{")


_PATTERNS |= {
    "operator head": rb"\boperator\s*+[-+*/%^&|!<>=~]*+\s*+$",
}


def _last_break(header: bytes) -> int:
    """Where the last word of a header can begin at the earliest."""
    return max(0, header.rfind(b" "), header.rfind(b"\n"), header.rfind(b"\t"), len(header) - 120)


def _angle_start(header: bytes) -> int:
    """Where the type parameters at the end of a header begin."""
    depth = 0
    for at in range(len(header) - 1, -1, -1):
        if header[at] == 62:
            depth += 1
        elif header[at] == _ANGLE:
            depth -= 1
            if not depth:
                return at
    return -1


def _unqualified(qualifier: bytes) -> bytes:
    bare = re.sub(rb"<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>|\s", b"", qualifier)
    return bare.strip(b":").replace(b"::", b".")


def _is_in_angles(header: bytes) -> bool:
    """Whether a bracket behind this stands inside of type parameters."""
    if b"<" not in header or b"operator" in header:
        return False
    if b"(" in header:
        header = re.sub(rb"\((?:[^()]++|\([^()]*+\))*+\)", b"", header)
    return header.count(b"<") - 2 * header.count(b"<<") > header.count(b">") - header.count(b"->") - header.count(b"=>")


def _without_brackets(header: bytes) -> bytes:
    """A header without type parameters, annotations and attributes, of the same length."""
    if b"<" in header:
        for _ in range(5):
            header, count = re.subn(rb"<[^<>]*+>", lambda match: b" " * len(match[0]), header)
            if not count:
                break
    if b"(" in header:
        for _ in range(5):
            header, count = re.subn(rb"\([^()]*+\)", lambda match: b" " * len(match[0]), header)
            if not count:
                break
    return header


# --- lines: Ruby, shell, SQL ... --------------------------------------------------------------------------------------


class _Lines(NamedTuple):
    """How a language is walked in which a definition begins with its line. Group 1 is the indent."""

    pattern: bytes
    ends: str
    """How a body ends: with an "end", a "brace", a "dedent", a "semicolon" or with its "line"."""
    scopes: tuple[str, ...] = ()
    """The kinds in which others stand."""
    opaque: bool = True
    """Whether strings hide what stands in them."""


_LINES: dict[str, _Lines] = {
    "ruby": _Lines(
        rb"\n(\h*+)(?:(?:private|protected|public|module_function|private_class_method|memoize|helper_method)\h++)?+(?:"
        rb"def\h++(?:self\.|[\w:]++\.)?+(?P<function>[\w\x80-\xff]++[?!]?+(?:=(?=\h*+[\w(]))?|[-+*/%=<>!~^&|\[\]]++@?)"
        rb"|class\h*+<<\h*+(?P<singleton>self)\b|class\h++(?P<class>[\w:]++)|module\h++(?P<module>[\w:]++)"
        rb"|[cm]?attr_(?:accessor|reader|writer)\b[ \t(]*+(?P<fields>:\w[^\n]*+)"
        rb"|(?:alias_method|define_method|scope|has_many|has_one|belongs_to|has_and_belongs_to_many|attribute)[ \t(]++"
        rb":(?P<generated>\w++[?!]?+)"
        rb"|alias\h++:?(?P<alias>\w++[?!]?+)"
        rb"|(?P<constant>[A-Z]\w*+)\h*+(?:\|\|)?=(?![=~>]))",
        "end",
        ("class", "module"),
    ),
    "lua": _Lines(
        rb"\n(\h*+)(?:local\h++)?+(?:function\h++(?P<function>[\w.:]++)"
        rb"|(?P<assigned>[A-Za-z_][\w.]*+)\h*+=\h*+function\b"
        rb"|(?<=\n)(?P<variable>[A-Za-z_][\w.]*+)\h*+=(?!=)"
        rb"|(?<=\nlocal )(?P<local>[A-Za-z_]\w*+)\h*+=(?!=)(?!\h*+require\b))",
        "end",
    ),
    "elixir": _Lines(
        rb"\n(\h*+)(?:(?:defp?|defmacrop?|defguardp?|defdelegate)\h++(?P<function>[a-z_]\w*+[?!]?+)"
        rb"|def(?:module|protocol)\h++(?P<module>[\w.]++)|@(?:typep?|opaque|callback|macrocallback)\h++(?P<type>\w++)"
        rb"|@(?P<constant>(?!(?:doc|moduledoc|spec|impl|typep?|opaque|callback|behaviour|typedoc|tag|describetag)\b)"
        rb"[a-z_]\w*+)\h++[^\s|=,)])",
        "end",
        ("module",),
    ),
    "perl": _Lines(
        rb"\n(\h*+)(?:sub\h++(?P<function>\w++)|package\h++(?P<module>[\w:]++)|our\h++[$@%](?P<variable>\w++)"
        rb"|use\h++constant\h++(?P<constant>[A-Za-z_]\w*+)|(?<=\n)my\h++[$@%](?P<local>\w++)\h*+=(?![=~]))",
        "brace",
    ),
    "shell": _Lines(
        rb"\n(\h*+)(?:function\h++(?P<function>[\w:.-]++)|(?P<plain>[\w:.-]++)\h*+\(\h*+\)(?=[ \t\r]*+[\n{(])"
        rb"|(?:(?:export|readonly|declare|typeset)\h++(?:-\w++\h++)*+)?+(?P<variable>[A-Za-z_]\w*+)(?:\[[^\]\n]*+\])?"
        rb"\+?=(?![=~])"
        rb"|alias\h++(?P<alias>[\w.-]++)=)",
        "brace",
    ),
    "haskell": _Lines(
        rb"\n()(?:(?:data|newtype|class|type)\h++(?:(?:family|instance)\h++)?(?:[^\n=]*?=>\h*+)?(?P<type>[A-Z][\w']*+)"
        rb"|(?P<function>[a-z_][\w']*+)(?=(?:\h*+,\h*+[\w']++)*+\h*+(?:\n\h++)?::)|module\h++(?P<module>[\w.]++))",
        "dedent",
    ),
    "ocaml": _Lines(
        rb"\n(\h*+)(?:let\h++(?:rec\h++)?(?P<function>(?!_\b)[a-z_][\w']*+)"
        rb"|type\h++(?:nonrec\h++)?(?:'\w++\h++|\([^()\n]*+\)\h++)?(?P<type>[a-z_][\w']*+)"
        rb"|module\h++(?:type\h++)?(?P<module>[A-Z]\w*+)|(?:val|external)\h++(?P<value>[a-z_][\w']*+)"
        rb"|exception\h++(?P<exception>[A-Z]\w*+))",
        "dedent",
    ),
    "nim": _Lines(
        rb"\n(\h*+)(?:(?:proc|func|method|iterator|template|macro|converter)\h++`?(?P<function>\w++)"
        rb"|(?<=\n)(?:const|let|var)\h++(?P<variable>\w++)|type\h++(?P<type>\w++)"
        rb"|(?P<inner>[A-Z]\w*+)\*?\h*+(?:\[[^\]\n]*+\])?\h*+=\h*+(?:ref|object|enum|distinct|tuple|ptr)\b)",
        "dedent",
    ),
    "sql": _Lines(
        rb"(?i)\n(\h*+)create\h++(?:or\h++replace\h++)?(?:(?:global|local|temp|temporary|unique|materialized|unlogged"
        rb"|external|recursive|virtual)\h++)*+(?P<what>table|view|function|procedure|index|trigger|type|schema|sequence"
        rb"|database|extension|role|policy|domain)\h++(?:concurrently\h++)?(?:if\h++not\h++exists\h++)?"
        rb"(?:[\w\"`\[\]]++\.)*+[\"`\[]?(?P<created>\w++)",
        "semicolon",
    ),
    "make": _Lines(
        rb"\n()(?:(?:(?:export|override)\h++)*+(?P<variable>[A-Za-z_][\w.-]*+)\h*+(?:\?|\+|!|:{1,3}+)?="
        rb"|define\h++(?P<local>[\w.-]++)"
        rb"|(?P<targets>[A-Za-z0-9_%./$(){}-][^\n:=#\t]*+)\h*+::?+(?!=)(?![^\n=#]*+=))",
        "recipe",
    ),
    "dockerfile": _Lines(
        rb"(?i)\n(\h*+)(?:(?:env|arg)\h++(?P<settings>[A-Za-z_]\w*+[^\n]*+(?:(?:(?<=\\)|(?<=\\\r))\n[^\n]*+)*+)"
        rb"|from\h++[^\n]*?\has\h++(?P<stage>[\w.-]++))",
        "line",
        opaque=False,
    ),
    "terraform": _Lines(
        rb"\n(\h*+)(?:(?:resource|data)\h++\"[\w.-]++\"\h++\"(?P<resource>[\w.-]++)\""
        rb"|(?:variable|output|module|provider)\h++\"(?P<variable>[\w.-]++)\"|(?P<locals>locals)\h*+\{"
        rb"|(?P<setting>[A-Za-z_][\w-]*+)\h*+=(?![=>]))",
        "brace",
        opaque=False,
    ),
    "css": _Lines(
        rb"\n(\h*+)(?:(?P<variable>--[\w-]++|\$[\w-]++|@[\w-]++)\h*+:|@mixin\h++(?P<function>[\w-]++)"
        rb"|\.(?P<rule>[A-Za-z_][\w-]*+)(?=[^\n;:{}]*+(?:::?[\w-]++[^\n;:{}]*+)*+[,{\n]))",
        "brace",
    ),
}
_LINE_LABELS = {"assigned": "function", "plain": "function", "local": "variable", "inner": "type", "value": "function",
                "generated": "alias", "rule": "class", "setting": "variable"}  # fmt: skip
_LINE_LISTS = {  # the names in what lists several
    "fields": ("field", rb":(\w++[?!]?+)"),
    "targets": ("target", rb"(?:^|(?<=\s))(?!\.[A-Z])([^\s$(){}]++)(?=\s|$)"),
    "settings": ("variable", rb"(?:^|(?<=\s))([A-Za-z_]\w*+)(?:=(?:\"[^\"]*+\"|'[^']*+')?|(?=\h|$))"),
}
_PATTERNS |= {kind: pattern for kind, (_, pattern) in _LINE_LISTS.items()}


@cache
def _line_pattern(language: str) -> re.Pattern[bytes]:
    return _compiled(_LINES[language].pattern)


def _walk_lines(cleaned: bytes, language: str) -> _Walked:
    table = _LINES[language]
    text = _opaque(cleaned, language) if table.opaque else _framed(cleaned)
    found: list[_Mark] = []
    scopes: list[tuple[int, bytes]] = []
    local_block = False
    for match in _line_pattern(language).finditer(text):
        kind = match.lastgroup or ""
        indent, start = len(match[1].expandtabs(8)), match.end(1)
        while scopes and indent <= scopes[-1][0]:
            scopes.pop()
        scope = scopes[-1][1] if scopes else b""
        begin, end = match.span(kind)
        if kind == "singleton":
            scopes.append((indent, scope))
        elif kind in _LINE_LISTS:
            names = _pattern(kind).finditer(text, begin, end)
            if kind == "settings" and b"=" not in match[kind]:
                names = iter(list(names)[:1])  # ENV name value
            found += (_Mark(*name.span(1), _LINE_LISTS[kind][0], scope, start) for name in names)
        elif language == "terraform" and kind in ("locals", "setting"):
            local_block = kind == "locals" or (local_block and indent > 0)
            if kind == "setting" and (local_block or not indent):
                found.append(_Mark(begin, end, "variable", b"", start))
        else:
            local_block = False
            for separator in _SEPARATORS.get(language, ()):
                if (cut := text.rfind(separator, begin, end)) >= 0:
                    scope = _join(scope, text[begin:cut].replace(separator, b"."))
                    begin = cut + len(separator)
            if begin < end:
                label = match["what"].lower().decode() if kind == "created" else _LINE_LABELS.get(kind, kind)
                label = "method" if label == "function" and scope else label
                found.append(_Mark(begin, end, label, scope, start))
                if kind in table.scopes:
                    scopes.append((indent, _join(scope, text[begin:end])))
                elif language == "perl" and kind == "module":
                    scopes = [(-1, _join(scope, text[begin:end]))]
    return _Walked(found, text, _finish_lines)


_SEPARATORS = {"ruby": (b"::",), "lua": (b".", b":"), "perl": (b"::",), "elixir": (b".",)}


def _finish_lines(cleaned: bytes, text: bytes, marks: list[_Mark], language: str) -> None:
    source = b"\n" + cleaned
    style = _LINES[language].ends
    ends = _Statements(text, semicolons=False)
    pairs = _pairs(text) if style == "brace" else {}
    fuel = 20 * len(text)
    for mark in marks:
        stop = line = text.find(b"\n", mark.end)
        is_plain = mark.kind in ("field", "constant", "variable", "alias", "type")
        while is_plain and text[line - 2 : line].rstrip(b"\r").endswith(b"\\"):
            stop = line = text.find(b"\n", line + 1) if line + 1 < len(text) else len(text)
        close: re.Match[bytes] | None = None
        if fuel < 0:
            pass
        elif style == "brace" and (opened := _pattern("body").match(text, mark.end)):
            stop = pairs.get(opened.end() - 1, line)
        elif is_plain and style in ("end", "brace"):
            stop = ends.end(mark.end)
        elif style == "end" and not is_plain and not _pattern("one line").search(text, mark.end, line):
            close = _closing_word(_column(text, mark.start)).search(text, line)
            stop = close.end() if close else line
            fuel -= 0 if close else len(text) - line
        elif style == "dedent":
            close = _dedent(_column(text, mark.start)).search(text, line)
            stop = close.start() if close else len(text)
        elif style == "semicolon":
            stop = text.find(b";", mark.end) + 1 or len(text)
        elif style == "recipe" and mark.kind == "target" and (recipe := _pattern("recipe").match(text, line)):
            stop = recipe.end()
        fuel -= stop - line
        mark.stop = _trimmed(source, mark.end, stop)


def _column(text: bytes, at: int) -> int:
    return at - (text.rfind(b"\n", 0, at) + 1)


@cache
def _closing_word(indent: int) -> re.Pattern[bytes]:
    return _compiled(rb"\n\h{%d}end\b" % min(indent, 1000))


_PATTERNS |= {
    "body": rb"[^\n{};=]*?\s*+\{|\h*+=\h*+\{",
    "one line": rb";[^\n]*\bend\b|\bend[ \t\r]*+$|\)\h*+=\h|^\h*+=\h|,\h*+do:",
    "recipe": rb"(?:\n(?:\t[^\n]*+|\h*+(?=\n\t)))*+",
}


# --- keys: YAML, TOML, JSON ... ---------------------------------------------------------------------------------------

_PATTERNS |= {
    "yaml": rb"\n((?:\h|-\h)*+)(?P<key>[\w.$/@*<~+-][^\s:#\"'{}\[\],&!|>%]*+(?:[ ][\w./()-]++)*+|\"[^\"\n]++\""
    rb"|'[^'\n]++')\h*+:(?=\s)",
    "yaml block": rb"(\n(\h*+(?:-\h++)*+)[^\n]*?(?:(?<=:)|(?<=-))\h++(?:[&!]\S++\h++)?[|>][-+0-9]*+[ \t\r]*+(?=\n))",
    "toml": rb"\n(\h*+)(?:\[\[?\h*+(?P<table>[^\]\n]++)\]|(?P<key>(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
    rb"(?:\h*+\.\h*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+'))*+)\h*+=)",
    "ini": rb"\n(\h*+)(?:\[(?P<table>[^\]\n]++)\]|(?P<key>[A-Za-z0-9_][\w./-]*+(?:[ ][\w.-]++)*+)\h*+[=:])",
    "env": rb"\n(\h*+)(?:export\h++)?(?P<key>[A-Za-z_][\w.-]*+)\h*+=",
    "properties": rb"\n(\h*+)(?P<key>(?:[^\s=:\\#!]|\\[^\n])++)\h*+[=:]",
    "dotted": rb"\"([^\"\n]++)\"|'([^'\n]++)'|([\w-]++)",
    "json": rb"\"([^\"\\\n]{1,200}+)\"(?=\s*+:)|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|[{}\[\]]",
}


def _walk_keys(cleaned: bytes, language: str) -> _Walked:
    text = _framed(cleaned)
    if language == "toml" and (b'"""' in text or b"'''" in text):
        text = _framed(_paint(cleaned, language, _without_text_blocks))
    elif language == "yaml" and (b"|" in text or b">" in text):
        text = _without_scalars(text)
    found: list[_Mark] = []
    parents: list[tuple[int, bytes]] = []
    table = b""
    for match in _pattern(language).finditer(text):
        kind = match.lastgroup or ""
        begin, end = match.span(kind)
        if language == "yaml":
            indent = len(match[1].expandtabs(8))
            while parents and indent <= parents[-1][0]:
                parents.pop()
            scope = parents[-1][1] if parents else b""
            if text[begin] in b"\"'":
                begin, end = begin + 1, end - 1
            found.append(_Mark(begin, end, "key", scope, begin))
            if len(parents) < 50:
                parents.append((indent, _join(scope, text[begin:end])))
        elif language == "toml":
            scope = _add_dotted(text, begin, end, b"" if kind == "table" else table, found)
            table = scope if kind == "table" else table
        elif kind == "table":
            table = match[kind].strip()
            found.append(_Mark(begin, end, "key", b"", begin))
        else:
            found.append(_Mark(begin, end, "key", table, begin))
    return _Walked(found, text, _finish_keys)


def _without_scalars(text: bytes) -> bytes:
    """YAML without the lines of block scalars: they are more indented than the key before them."""
    parts: list[bytes] = []
    at = 0
    while match := _pattern("yaml block").search(text, at):
        end = _dedent(len(match[2])).search(text, match.end())
        stop = end.start() if end else len(text)
        parts += (text[at : match.end()], text[match.end() : stop].translate(_BLANK))
        at = stop
    parts.append(text[at:])
    return b"".join(parts)


def _add_dotted(text: bytes, begin: int, end: int, scope: bytes, found: list[_Mark]) -> bytes:
    """Every part of `a."b".c`; the whole of it is returned."""
    for match in _pattern("dotted").finditer(text, begin, end):
        group = match.lastindex or 0
        found.append(_Mark(*match.span(group), "key", scope, begin))
        scope = _join(scope, match[group])
    return scope


def _walk_json(cleaned: bytes, language: str) -> _Walked:  # noqa: ARG001
    text = _framed(cleaned)
    found: list[_Mark] = []
    stack: list[tuple[bytes, _Mark | None]] = [(b"", None)]
    mark: _Mark | None = None
    for match in _pattern("json").finditer(text):
        byte = text[match.start()]
        if match[1] is not None:
            mark = _Mark(*match.span(1), "key", stack[-1][0], match.start())
            found.append(mark)
        elif byte in b"{[":
            scope = stack[-1][0]
            stack.append((_join(scope, text[mark.begin : mark.end]) if mark and len(stack) < 20 else scope, mark))
            mark = None
        elif byte in b"}]" and len(stack) > 1:
            opened = stack.pop()[1]
            if opened is not None:
                opened.stop = match.end()
    return _Walked(found, text, _finish_keys)


def _finish_keys(cleaned: bytes, text: bytes, marks: list[_Mark], language: str) -> None:
    source = b"\n" + cleaned
    fuel = 20 * len(text)
    for index, mark in enumerate(marks):
        if mark.stop < 0:
            mark.stop = line = text.find(b"\n", mark.end)
            if language == "yaml" and fuel > 0:
                dedent = _dedent(_column(text, mark.begin)).search(text, line)
                mark.stop = dedent.start() if dedent else len(text)
                fuel -= mark.stop - line
            elif language == "toml" and index + 1 < len(marks):
                mark.stop = max(line, text.rfind(b"\n", line, marks[index + 1].start))
        mark.stop = _trimmed(source, mark.end, mark.stop)


_WALKS: dict[str, Callable[[bytes, str], _Walked]] = {
    "python": _walk_python,
    "go": _walk_go,
    "json": _walk_json,
    **dict.fromkeys(("javascript", "typescript", *_MARKUP), _walk_javascript),
    **dict.fromkeys(_KEYWORDS, _walk_keywords),
    **dict.fromkeys(("java", "csharp", "dart", "c", "cpp"), _walk_headers),
    **dict.fromkeys(_LINES, _walk_lines),
    **dict.fromkeys(("yaml", "toml", "ini", "env", "properties"), _walk_keys),
}
