"""What a source file defines: the text of a file goes in, names with their scope and lines come out.

Every language is lexed by one regular expression that knows its comments and strings, and then walked by one of five
walkers: by indentation (Python), by keywords and braces (JavaScript, Rust, Kotlin ...), by the headers before braces
and semicolons (Java, C ...), by lines (Ruby, shell, SQL ...) or by keys (YAML, TOML ...). This is not parsing. It reads
a repository in about a second, it takes linear time whatever a file holds, and it prefers to miss a definition over
inventing one: a name that is only called, imported or mentioned is not defined.

Everything is bytes and byte offsets. Nothing here reads a file or knows what a claim is.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
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
    """The language of a file by its name, or "" when the file is not source. The text is not looked at."""
    name = path.rpartition("/")[2]
    if found := _NAMES.get(name) or _NAMES.get(name.lower()):
        return found
    lowered = name.lower()
    if lowered.startswith(("dockerfile.", "containerfile.")) or lowered.endswith(".dockerfile"):
        return "dockerfile"
    if lowered.startswith(".env") and (len(lowered) == 4 or lowered[4] in ".-_"):
        return "env"
    stem, dot, extension = lowered.rpartition(".")
    return _EXTENSIONS.get(extension, "") if dot and stem else ""


def is_config(language: str) -> bool:
    """Whether files of this language hold keys and values; every key counts as a word of the code."""
    return language in _CONFIG


def clean(data: bytes, language: str) -> bytes:
    """The same length and the same lines, with comments and docstrings blanked. Other strings stay."""
    if language in _MARKUP:
        return _clean_markup(data)
    lexis = _lexis(language)
    if lexis is None:
        return data
    return _paint_tokens(data, lexis, _docstring_painter if language == "python" else _comment_painter)


def names(cleaned: bytes, language: str) -> list[bytes]:
    """Every name that a cleaned file defines, some of them twice. Fast: this runs over a whole repository."""
    walk = _WALKS.get(language)
    if walk is None:
        return []
    found = [cleaned[mark.begin - 1 : mark.end - 1] for mark in walk(cleaned, language)]
    return found if cleaned.isascii() else [name for name in found if _is_text(name)]


def definitions(cleaned: bytes, language: str) -> list[Definition]:
    """The same names, each with its scope, lines and offsets, in the order of the file."""
    walk = _WALKS.get(language)
    if walk is None:
        return []
    marks = [mark for mark in walk(cleaned, language) if _is_text(cleaned[mark.begin - 1 : mark.end - 1])]
    if not marks:
        return []
    _ENDS[language](cleaned, language, marks)
    breaks = [match.start() for match in re.finditer(b"\n", cleaned)]
    size = len(cleaned)
    found = []
    for mark in marks:  # a walker's text begins with a line break, so its offsets are one too high
        begin, stop = mark.begin - 1, min(mark.stop - 1, size)
        name = cleaned[begin : mark.end - 1].decode()
        line = bisect_right(breaks, begin - 1) + 1
        end = max(line, bisect_right(breaks, stop - 2) + 1)
        scope = mark.scope.decode("utf-8", "replace")
        found.append(Definition(name, scope, mark.kind, line, end, max(0, min(mark.start - 1, begin)), stop))
    found.sort(key=lambda one: (one.line, one.start))
    return found


def body_digest(cleaned: bytes, definition: Definition) -> str:
    """A short digest of a definition's code: equal when only white space, comments or docstrings differ.

    White space inside of strings is code, and so is the layout of a Python body; the layout of other bodies is not.
    """
    body = cleaned[definition.start : definition.stop]
    column = definition.start - (cleaned.rfind(b"\n", 0, definition.start) + 1)
    header = _pattern("python header").search(body)
    layout = header is not None and header[1] == definition.name.encode()
    levels = [column]
    depth = 0

    def squeeze(match: re.Match[bytes]) -> bytes:
        nonlocal depth
        token = match[0]
        if token in b"([{":
            depth += 1
        elif token in b")]}":
            depth = max(0, depth - 1)
        elif token[0] not in b"\"'`":
            if layout and not depth and token[0] != 92 and b"\n" in token:
                indent = len(token) - token.rfind(b"\n") - 1
                while len(levels) > 1 and indent < levels[-1]:
                    levels.pop()
                if indent > levels[-1]:
                    levels.append(indent)
                return b"\n%d " % len(levels)
            start, stop = match.span()
            return b" " if body[start - 1 : start].isalnum() and body[stop : stop + 1].isalnum() else b""
        return token

    return hashlib.blake2b(_pattern("digest token").sub(squeeze, body.strip()), digest_size=8).hexdigest()


# --- languages ---------------------------------------------------------------------------------------------------

_EXTENSIONS = {
    extension: language
    for language, extensions in {
        "python": "py pyi pyx pxd pyw py-tpl",
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
        "c": "c h m",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp cu cuh mm ino",
        "ruby": "rb rake gemspec ru podspec",
        "php": "php phtml php5 inc",
        "shell": "sh bash zsh ksh bats",
        "lua": "lua",
        "perl": "pl pm t",
        "elixir": "ex exs",
        "haskell": "hs",
        "ocaml": "ml mli",
        "zig": "zig",
        "nim": "nim nims",
        "sql": "sql ddl psql",
        "make": "mk mak",
        "protobuf": "proto",
        "graphql": "graphql gql graphqls",
        "terraform": "tf tfvars hcl",
        "css": "css scss sass less",
        "yaml": "yaml yml",
        "toml": "toml",
        "json": "json jsonc json5 webmanifest",
        "ini": "ini cfg conf editorconfig",
        "env": "env",
        "properties": "properties",
    }.items()
    for extension in extensions.split()
}
_NAMES = {
    "makefile": "make", "gnumakefile": "make", "justfile": "make", "dockerfile": "dockerfile",
    "containerfile": "dockerfile", "rakefile": "ruby", "gemfile": "ruby", "podfile": "ruby", "vagrantfile": "ruby",
    "brewfile": "ruby", "fastfile": "ruby", "jenkinsfile": "groovy", "pipfile": "toml", "cargo.lock": "toml",
    "poetry.lock": "toml", "uv.lock": "toml", ".bashrc": "shell", ".zshrc": "shell", ".profile": "shell",
    ".bash_profile": "shell", ".editorconfig": "ini", ".gitconfig": "ini", ".gitmodules": "ini", ".npmrc": "ini",
    ".flake8": "ini", ".pylintrc": "ini", ".coveragerc": "ini", ".babelrc": "json", ".eslintrc": "json",
    ".prettierrc": "json", ".swcrc": "json", "composer.lock": "json", ".clang-format": "yaml", ".clang-tidy": "yaml",
    "wscript": "python", "sconstruct": "python", "build.bazel": "python", "workspace": "python",
}  # fmt: skip
_CONFIG = frozenset(("yaml", "toml", "json", "ini", "env", "properties"))
_MARKUP = frozenset(("vue", "svelte", "html"))


# --- lexing ------------------------------------------------------------------------------------------------------
# A lexis is one alternation. Group 1 of it is a comment, everything else is a string. What spans lines ends at its
# closing mark or at the end of the file; a text in which the latter happens is read again from there with an
# alternation that knows single lines only, so that one stray mark does not hide the rest of a file.


class _Token(NamedTuple):
    pattern: bytes
    opens: bytes = b""
    """For what spans lines: the mark that opens it ..."""
    closes: bytes = b""
    """... the mark that closes it ..."""
    alone: bytes = b""
    """... and the pattern that takes its place when it is never closed."""


_TOKENS = {
    "//": _Token(rb"//[^\n]*+"),
    "//!url": _Token(rb"/(?<!:/)/[^\n]*+"),
    "//php": _Token(rb"//[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "#": _Token(rb"#[^\n]*+"),
    "# word": _Token(rb"#(?<![^\s;|&()\[\]{},`]#)[^\n]*+"),
    "# blank": _Token(rb"#(?<!\S#)[^\n]*+"),
    "#php": _Token(rb"#(?!\[)[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "# make": _Token(rb"#(?<!\\#)[^\n]*+"),
    "# line": _Token(rb"\n[ \t]*+[#;!][^\n]*+"),
    "# dockerfile": _Token(rb"\n[ \t]*+#[^\n]*+"),
    "--": _Token(rb"--[^\n]*+"),
    "-- haskell": _Token(rb"--(?<![!#$%&*+./<=>?@\\^|~:]--)-*+(?![!#$%&*+./<=>?@\\^|~:])[^\n]*+"),
    "/* */": _Token(rb"/\*[^*]*+(?:\*(?!/)[^*]*+)*+(?:\*/|\Z)", b"/*", b"*/", rb"/\*[^\n]*+"),
    "/* nested */": _Token(
        rb"/\*(?:[^*/]++|\*(?!/)|/(?!\*)|/\*[^*/]*+(?:(?:\*(?!/)|/(?!\*))[^*/]*+)*+\*/|/)*+(?:\*/|\Z)",
        b"/*", b"*/", rb"/\*[^\n]*+",
    ),
    "{- -}": _Token(
        rb"\{-(?:[^-{]++|-(?!\})|\{(?!-)|\{-[^-{]*+(?:(?:-(?!\})|\{(?!-))[^-{]*+)*+-\}|\{)*+(?:-\}|\Z)",
        b"{-", b"-}", rb"\{-[^\n]*+",
    ),
    "(* *)": _Token(
        rb"\(\*(?:[^*(]++|\*(?!\))|\((?!\*)|\(\*[^*(]*+(?:(?:\*(?!\))|\((?!\*))[^*(]*+)*+\*\)|\()*+(?:\*\)|\Z)",
        b"(*", b"*)", rb"\(\*[^\n]*+",
    ),
    "<!-- -->": _Token(rb"<!--(?s:.*?)(?:-->|\Z)", b"<!--", b"-->", rb"<!--[^\n]*+"),
    "--[[ ]]": _Token(rb"--\[(?P<l>=*+)\[(?s:.*?)(?:\](?P=l)\]|\Z)", b"--[", b"]", rb"--\[[^\n]*+"),
    "[[ ]]": _Token(rb"\[(?P<b>=*+)\[(?s:.*?)(?:\](?P=b)\]|\Z)", b"[", b"]", rb"\["),
    "#[ ]#": _Token(rb"#\[(?s:.*?)(?:\]#|\Z)", b"#[", b"]#", rb"#[^\n]*+"),
    "=begin": _Token(rb"\n=begin\b(?s:.*?)(?:\n=end\b[^\n]*+|\Z)", b"\n=begin", b"=end", rb"\n=begin"),
    "=pod": _Token(rb"\n=[a-z]\w*+(?s:.*?)(?:\n=cut\b[^\n]*+|\Z)", b"\n=", b"=cut", rb"\n=[a-z]\w*+"),
    "__END__": _Token(rb"\n__(?:END|DATA)__[ \t\r]*+\n(?s:.*)"),
    "@doc": _Token(
        rb"@(?:module|type)?doc[ \t]+(?:~[sS])?(?:\"\"\"[^\"\\]*+(?:(?:\\.|\"(?!\"\"))[^\"\\]*+)*+\"\"\""
        rb"|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\")"
    ),
    '"description"': _Token(
        rb'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z)|\n[ \t]*+"[^"\n]*+"(?=[ \t\r]*\n)',
        b'"""', b'"""', rb'"""',
    ),
    '"': _Token(rb'"[^"\\\n]*+(?:\\(?:\r\n|.)?[^"\\\n]*+)*+"?'),
    "'": _Token(rb"'[^'\\\n]*+(?:\\(?:\r\n|.)?[^'\\\n]*+)*+'?"),
    "' after": _Token(
        # An apostrophe inside a word is text (of JSX, of a heredoc), not the beginning of a string.
        rb"'(?:(?<!\w')|(?<=\breturn')|(?<=\bcase')|(?<=\btypeof')|(?<=\bin')|(?<=\bof'))"
        rb"[^'\\\n]*+(?:\\(?:\r\n|.)?[^'\\\n]*+)*+'?"
    ),
    "' char": _Token(rb"'(?:[^'\\\n\x80-\xff]|[\x80-\xff]{2,4}|\\(?:u\{?\w{1,8}\}?|x\w\w|[0-7]{1,3}|[^\n]))'"),
    "' digits": _Token(
        rb"'(?<![0-9a-fA-F]')[^'\\\n]*+(?:\\(?:\r\n|.)?[^'\\\n]*+)*+'?"
    ),
    '" lines': _Token(rb'"[^"\\]*+(?:\\.?[^"\\]*+)*+(?:"|\Z)', b'"', b'"', rb'"[^"\\\n]*+(?:\\.?[^"\\\n]*+)*+"?'),
    "' lines": _Token(rb"'[^'\\]*+(?:\\.?[^'\\]*+)*+(?:'|\Z)", b"'", b"'", rb"'[^'\\\n]*+(?:\\.?[^'\\\n]*+)*+'?"),
    "' plain": _Token(rb"'(?<!\w')[^']*+(?:'|\Z)", b"'", b"'", rb"'[^'\n]*+'?"),
    '" basic': _Token(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'),
    "' basic": _Token(rb"'[^'\n]*+'"),
    "''": _Token(rb"'[^']*+(?:'|\Z)", b"'", b"'", rb"'[^'\n]*+'?"),
    '"""': _Token(rb'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z)', b'"""', b'"""', rb'"""'),
    "'''": _Token(rb"'''[^'\\]*+(?:(?:\\.|'(?!''))[^'\\]*+)*+(?:'''|\Z)", b"'''", b"'''", rb"'''"),
    '""" raw': _Token(rb'"""[^"]*+(?:"(?!"")[^"]*+)*+(?:"""|\Z)', b'"""', b'"""', rb'"""'),
    "`": _Token(rb"`[^`]*+(?:`|\Z)", b"`", b"`", rb"`"),
    "` template": _Token(
        rb"`[^`\\$]*+(?:(?:\\.|\$(?!\{)|\$\{[^{}`\"'/\\]*+\})[^`\\$]*+)*+(?:`|\$\{|\\?\Z)", b"`", b"`", rb"`"
    ),
    "/re/": _Token(
        # A slash begins a regular expression where a value may stand: behind an operator, a bracket, some words.
        rb"/(?:(?<=[=(,:\[!&|?{;+*%~^\n-]/)|(?<=[=(,:\[!&|?{;+*%~^-] /)|(?<==> /)|(?<=[ \t\n][ \t]/)|(?<=\breturn /)"
        rb"|(?<=\bcase /)|(?<=\btypeof /)|(?<=\bin /)|(?<=\bof /)|(?<=\bwhen /)|(?<=\bif /)|(?<=\bunless /)|(?<=\band /))"
        rb"(?![*/> \t=])[^\\/\[\n]*+(?:(?:\\.|\[[^\]\\\n]*+(?:\\.[^\]\\\n]*+)*+\])[^\\/\[\n]*+)*+/[a-z]*+"
    ),
    'r#"': _Token(
        rb'r(?:(?<!\wr)|(?<=\bbr)|(?<=\bcr))(?P<h>#*+)"(?s:.*?)(?:"(?P=h)|\Z)', b"r", b'"', rb'r(?:(?<!\wr)|(?<=\bbr))"'
    ),
    'R"(': _Token(rb'R(?<![^\WuUL8]R)"(?P<d>[^\s()\\]{0,16})\((?s:.*?)(?:\)(?P=d)"|\Z)', b'R"', b'"', rb'R"'),
    '@"': _Token(rb'@"[^"]*+(?:""[^"]*+)*+(?:"|\Z)', b'@"', b'"', rb'@"'),
    '$@"': _Token(rb'\$@"[^"]*+(?:""[^"]*+)*+(?:"|\Z)', b'$@"', b'"', rb'\$@"'),
    "<<EOF": _Token(
        rb"<<(?<!<<<)[-~]?(?:[\"']?)(?P<e>[A-Za-z_]\w*+)[\"']?[^\n]*+\n(?:(?s:.*?)\n)?[ \t]*+(?P=e)(?=[\s;,)]|\Z)"
        rb"|<<(?<!<<<)[-~]?(?:[\"']?)(?P<f>[A-Z_][A-Z0-9_]*+)[\"']?[^\n]*+\n(?s:.*)\Z",
        b"<<", b"<<", rb"<<",
    ),
    "<<~EOF": _Token(
        rb"<<(?<![<\w]<<)[-~]?(?:[\"'`]?)(?P<e>[A-Z_]\w*+)[\"'`]?[^\n]*+\n(?:(?s:.*?)\n)?[ \t]*+(?P=e)(?=[\s;,.)]|\Z)"
        rb"|<<(?<![<\w]<<)[-~](?:[\"'`]?)(?P<f>[A-Z_][A-Z0-9_]*+)[\"'`]?[^\n]*+\n(?s:.*)\Z",
        b"<<", b"<<", rb"<<",
    ),
    "<<<EOF": _Token(
        rb"<<<[ \t]*+[\"']?(?P<e>[A-Za-z_]\w*+)[\"']?[^\n]*+\n(?:(?s:.*?)\n)?[ \t]*+(?P=e)\b"
        rb"|<<<[ \t]*+[\"']?(?P<f>[A-Za-z_]\w*+)[\"']?[^\n]*+\n(?s:.*)\Z",
        b"<<<", b"<<<", rb"<<<",
    ),
    "?>": _Token(rb"\?>(?s:.*?)(?:<\?|\Z)"),
    "\\\\": _Token(rb"\\\\[^\n]*+"),
    "\\.": _Token(rb"\\."),
    "?c": _Token(rb"\?[#\"'](?=[\s,)\]])"),
    "|": _Token(rb"[|>][-+0-9]*+[ \t]*+(?:#[^\n]*+)?\n(?P<i>[ \t]++)[^\n]*+(?:\n(?:(?P=i)[^\n]*+|[ \t\r]*+(?=\n|\Z)))*+"),
}  # fmt: skip
_C_TOKENS = (("/* */", "//"), ('"', "'"))
_LEXES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": (("#",), ('"""', "'''", '"', "'")),
    "javascript": (("/* */", "//!url"), ('"', "' after", "` template", "/re/")),
    "go": (("/* */", "//"), ('"', "`", "' char")),
    "rust": (("/* nested */", "//"), ('r#"', '" lines', "' char")),
    "java": (("/* */", "//"), ('"""', '"', "'")),
    "groovy": (("/* */", "//!url"), ('"""', "'''", '"', "'")),
    "kotlin": (("/* nested */", "//"), ('""" raw', '"', "' char")),
    "scala": (("/* nested */", "//"), ('""" raw', '"', "' char")),
    "csharp": (("/* */", "//"), ('""" raw', '$@"', '@"', '"', "'")),
    "swift": (("/* nested */", "//"), ('"""', '"')),
    "dart": (("/* */", "//"), ('"""', "'''", '"', "'")),
    "c": (("/* */", "//"), ('"', "'")),
    "cpp": (("/* */", "//"), ('R"(', '"', "' digits")),
    "ruby": (("=begin", "__END__", "# word"), ("<<~EOF", '" lines', "' lines", "/re/", "?c")),
    "php": (("/* */", "//php", "#php"), ("<<<EOF", "?>", '" lines', "' lines")),
    "shell": (("# word",), ("\\.", "<<EOF", '" lines', "' plain")),
    "lua": (("--[[ ]]", "--"), ("[[ ]]", '"', "'")),
    "perl": (("=pod", "__END__", "# word"), ("\\.", "<<~EOF", '" lines', "' after")),
    "elixir": (("@doc", "# word"), ('"""', "'''", '"', "?c")),
    "haskell": (("{- -}", "-- haskell"), ('"', "' char")),
    "ocaml": (("(* *)",), ('" lines', "' char")),
    "zig": (("//",), ("\\\\", '"', "' char")),
    "nim": (("#[ ]#", "#"), ('""" raw', '"', "' char")),
    "sql": (("/* */", "--"), ("''", '" basic')),
    "make": (("# make",), ()),
    "dockerfile": (("# dockerfile",), ()),
    "protobuf": (("/* */", "//"), ('"', "'")),
    "graphql": (('"description"', "#"), ('"',)),
    "terraform": (("/* */", "//!url", "#"), ("<<EOF", '"')),
    "css": (("/* */", "//!url"), ('"', "'")),
    "yaml": (("# blank",), ('" basic', "' basic")),
    "toml": (("#",), ('"""', "'''", '" basic', "' basic")),
    "json": (("/* */", "//"), ('"',)),
    "ini": (("# line",), ()),
    "env": (("# blank",), ('" basic', "' basic")),
    "properties": (("# line",), ()),
}
_SAME_LEXIS = {"typescript": "javascript"}
_BLANK = bytes(byte if byte in b"\n\r" else 32 for byte in range(256))
_OPAQUE = bytes(byte if byte in b"\n\r" else 34 for byte in range(256))
_Paint = Callable[[re.Match[bytes]], bytes]


class _Lexis(NamedTuple):
    tokens: re.Pattern[bytes]
    lines: re.Pattern[bytes]
    """The same for what is left of a text in which something that spans lines was never closed."""
    spans: tuple[_Token, ...]


@cache
def _lexis(language: str) -> _Lexis | None:
    language = _SAME_LEXIS.get(language, language)
    if language not in _LEXES:
        return None
    comments, strings = ([_TOKENS[name] for name in group] for group in _LEXES[language])

    def pattern(kind: Callable[[_Token], bytes]) -> re.Pattern[bytes]:
        alternatives = [b"(" + b"|".join(map(kind, comments)) + b")", *map(kind, strings)]
        return re.compile(b"|".join(alternatives), re.DOTALL)

    return _Lexis(
        pattern(lambda token: token.pattern),
        pattern(lambda token: token.alone or token.pattern),
        tuple(token for token in (*comments, *strings) if token.opens),
    )


def _paint_tokens(data: bytes, lexis: _Lexis, painter: Callable[[bytes], _Paint]) -> bytes:
    """The text with every token painted over. A comment is group 1 of a token."""
    text = b"\n" + data
    paint = painter(text)
    last: re.Match[bytes] | None = None
    nested = False

    def watch(match: re.Match[bytes]) -> bytes:
        nonlocal last, nested
        last = match
        if text[match.end() - 1] == 123 and text[match.start()] == 96:
            nested = True
        return paint(match)

    painted = lexis.tokens.sub(watch, text)
    if nested:
        painted = _paint_templates(text, lexis, painter(text))
    elif last is not None and last.end() == len(text) and _is_open(last[0], lexis.spans):
        cut = text.find(b"\n", last.start() + 1)
        cut = len(text) if cut < 0 else cut
        head, tail = text[: last.start()], text[last.start() :]
        painted = lexis.tokens.sub(painter(head), head) + lexis.lines.sub(painter(tail), tail)
    return painted[1:]


def _is_open(token: bytes, spans: tuple[_Token, ...]) -> bool:
    """Whether a token that reaches the end of its text should have been closed, and was not."""
    for span in spans:
        if token.startswith(span.opens):
            if span.opens.startswith(b"<<"):
                word = _pattern("heredoc word").search(token)
                return word is not None and token.rpartition(b"\n")[2].strip(b" \t\r;,)") != word[1]
            if span.opens == b"r" and token.startswith(b"r"):
                return not token.endswith(b'"' + b"#" * (token.find(b'"') - 1)) or token.count(b'"') < 2
            return len(token) < len(span.opens) + len(span.closes) or not token.endswith(span.closes)
    return False


def _paint_templates(text: bytes, lexis: _Lexis, paint: _Paint) -> bytes:
    """As `sub` does, for a text with template literals inside of template literals: these need a stack."""
    braces = re.compile(lexis.tokens.pattern + rb"|[{}]", re.DOTALL)
    rest = _pattern("template rest")
    depths: list[int] = []
    parts: list[bytes] = []
    at = 0
    while match := (braces if depths else lexis.tokens).search(text, at):
        token = match[0]
        parts += (text[at : match.start()], token if token in (b"{", b"}") else paint(match))
        at = match.end()
        if token == b"{":
            depths[-1] += 1
        elif token == b"}":
            depths[-1] -= 1
            if depths[-1] < 0 and (tail := rest.match(text, at)):
                parts.append(paint(tail))
                at = tail.end()
                depths.pop()
                if tail[0].endswith(b"${"):
                    depths.append(0)
        elif token.startswith(b"`") and token.endswith(b"${"):
            depths.append(0)
    parts.append(text[at:])
    return b"".join(parts)


def _comment_painter(text: bytes) -> _Paint:  # noqa: ARG001 - a painter may look at the text, this one need not
    def paint(match: re.Match[bytes]) -> bytes:
        return match[0].translate(_BLANK) if match.lastindex == 1 else match[0]

    return paint


def _opaque_painter(text: bytes) -> _Paint:  # noqa: ARG001
    def paint(match: re.Match[bytes]) -> bytes:
        return match[0].translate(_OPAQUE)

    return paint


def _docstring_painter(text: bytes) -> _Paint:
    """Blanks comments, and strings that are statements by themselves. A string that is a value stays.

    A string is a statement when it has its lines for itself and no expression can go on into it: nothing, a colon, or
    the end of a complete expression stands before it.
    """
    last = 0  # where the previous token ended
    before = b""  # the last code before that

    def paint(match: re.Match[bytes]) -> bytes:
        nonlocal last, before
        start, end = match.span()
        token = match[0]
        if token[0] == 35:
            gap = text[last:start].rstrip()
            last = end
            if gap:
                before = gap[-12:]
            return b" " * (end - start)
        if text[end : end + 1] in b"\r\n" or token[:3] in (b'"""', b"'''"):
            gap = text[last:start].rstrip(b"rRuU") if text[start - 1] not in b" \t\n" else text[last:start]
            line = gap.rpartition(b"\n")
            if line[1] and not line[2].strip(b" \t") and text[end : end + 40].lstrip(b" \t")[:1] in b"\r\n#;":
                code = line[0].rstrip()
                if _ends_statement(code[-12:] or before, triple=len(token) > 5 and token[1] == token[2] == token[0]):
                    last = end
                    if not code and not before:
                        before = b""
                    elif code:
                        before = code[-12:]
                    return token.translate(_BLANK)
        last = end
        before = b'"'
        return token

    return paint


def _ends_statement(before: bytes, *, triple: bool) -> bool:
    """Whether a string behind this code is a statement by itself."""
    if not before:
        return True
    tail = before[-1]
    if tail == 58:  # a colon: of a header, not of a dictionary
        return before[-2:-1] not in (b'"', b"'", b"")
    if not triple or not (tail in b")]}" or before[-1:].isalnum() or tail == 95):
        return False
    return _pattern("python operator word").search(before) is None


def _clean_markup(data: bytes) -> bytes:
    """Comments of a template and of the scripts and styles in it."""
    parts: list[bytes] = []
    at = 0
    for match in _pattern("script").finditer(data):
        parts.append(_blank_comments(data[at : match.start(2)]))
        language = "javascript" if match[1].lower() == b"script" else "css"
        parts.append(clean(match[2], language))
        at = match.end(2)
    parts.append(_blank_comments(data[at:]))
    return b"".join(parts)


def _blank_comments(markup: bytes) -> bytes:
    return _pattern("markup comment").sub(lambda match: match[0].translate(_BLANK), markup)


def _opaque(cleaned: bytes, language: str) -> bytes:
    """The text with every string painted over, after a line break: a walker finds line starts by the break before."""
    lexis = _lexis(language)
    return b"\n" + (_paint_tokens(cleaned, lexis, _opaque_painter) if lexis else cleaned) + b"\n"


def _is_text(name: bytes) -> bool:
    try:
        name.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- patterns ----------------------------------------------------------------------------------------------------

_NAME = rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*+"
_JSNAME = rb"[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+"
# Brackets inside of brackets to a fixed depth. A text that goes deeper fails at once, so this stays linear.
_PARENS = rb"\((?:[^();]++|;(?!\s*\n)|\((?:[^();]++|;(?!\s*\n)|\((?:[^();]++|\([^();]*+\))*+\))*+\))*+\)"

_PATTERNS: dict[str, bytes] = {
    "digest token": rb"\"\"\"(?s:.*?)\"\"\"|'''(?s:.*?)'''|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|`[^`]*+`?"
    rb"|[()\[\]{}]|\\\r?\n\s*+|\s++",
    "python header": rb"(?:^|\n)[ \t]*+(?:async[ \t]++)?(?:def|class)[ \t]++([\w\x80-\xff]++)[ \t]*+(?:\[[^\n]*?\])?"
    rb"(?:\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\))?[^\n]*?:(?!:)",
    "python operator word": rb"\b(?:in|and|or|not|if|else|is|return|yield|await|lambda|from|import|raise|assert|del)$",
    "heredoc word": rb"<<[<~-]?[ \t]*[\"'`]?(\w+)",
    "template rest": rb"[^`\\$]*+(?:(?:\\.|\$(?!\{)|\$\{[^{}`\"'/\\]*+\})[^`\\$]*+)*+(?:`|\$\{|\\?\Z)",
    "script": rb"(?i)<(script|style)\b[^>]*+>((?s:.*?))(?=</\1|\Z)",
    "markup comment": rb"<!--(?s:.*?)-->|\{#(?s:.*?)#\}|\{%[ \t]*comment\b(?s:.*?)endcomment[ \t]*%\}",
}


@cache
def _pattern(name: str) -> re.Pattern[bytes]:
    return re.compile(_PATTERNS[name], re.DOTALL)


# --- walking -----------------------------------------------------------------------------------------------------


class _Mark:
    """A definition as a walker finds it. Offsets are in the walker's text; -1 is found out when it is asked for."""

    __slots__ = ("begin", "end", "kind", "scope", "start", "stop")

    def __init__(self, begin: int, end: int, kind: str, scope: bytes, start: int = -1, stop: int = -1) -> None:
        self.begin = begin
        self.end = end
        self.kind = kind
        self.scope = scope
        self.start = start
        self.stop = stop


def _join(scope: bytes, name: bytes) -> bytes:
    return scope + b"." + name if scope and name else scope or name


# --- Python: by indentation --------------------------------------------------------------------------------------

_PATTERNS |= {
    "python line": rb"\n([ \t]*+)(?:(?:async[ \t]++)?(?:(def)|class)[ \t]++(" + _NAME + rb")"
    rb"|(@)"
    rb"|(if|elif|else|try|except|finally|with|for|while|match|case|async)\b(?=[ \t:(\\\[{\"'])(?![ \t]*+(?::[ \t]*+[\w\"'\[]|=|,|[-+*/|&]=))"
    rb"|(?:self|cls)\.(" + _NAME + rb")(?:(?=(?:[ \t]*+,[ \t]*+(?:self|cls)\." + _NAME + rb")*+[ \t]*+=(?!=))"
    rb"|[ \t]*+:(?=[^\n]*(?:[ ]=[ ]|(?:[^\s,(\[{]|\w\[)[ \t\r]*+(?:\n|\Z))))"
    rb"|type[ \t]++(" + _NAME + rb")[ \t]*+(?:\[[^\n]*?\][ \t]*+)?=(?!=)"
    rb"|\(?(\*?" + _NAME + rb"(?:[ \t]*+,[ \t]*+\*?" + _NAME + rb")*+)(,?[ \t]*+\)?[ \t]*+)(?:=(?!=)|:(?=[ \t]*+[^\s=])(?!=)))",
    "python chain": rb"[ \t]*+(" + _NAME + rb")[ \t]*+=(?!=)",
    "python self chain": rb"[ \t]*+(?:,|=(?=[^=\n]*=(?!=)))[ \t]*+(?:self|cls)\.(" + _NAME + rb")(?=[ \t]*+(?:=(?!=)|,))",
    "python names": _NAME,
    "blank lines": rb"(?:[ \t\r]*+(?:\n[ \t\r]*+)*\n[ \t]++(?=\r?\n))?",
    "class head": rb"[ \t]*+(?:\[[^\n]*?\][ \t]*+)?(?:\((?:[^()]++|\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\))*+\))?"
    rb"[ \t]*+:[ \t\r]*+(?:\n[ \t\r]*+(?=\n))*+\n([ \t]*+)",
    "block head": rb"[^\n]*:[ \t\r]*+(?=\n)",
    "first indent": rb"(?:\n[ \t\r]*+(?=\n))*+\n([ \t]*+)",
}


def _walk_python(cleaned: bytes, language: str) -> list[_Mark]:  # noqa: ARG001
    text = b"\n" + cleaned
    if b'"""' in text or b"'''" in text or b"\\\n" in text or b"\\\r" in text:
        text = _without_text_blocks(text)
    tabs = b"\t" in text
    found: list[_Mark] = []
    add = found.append
    # What a line stands in: its indent, its kind, its scope, the offset where its body is looked for, the body's indent
    stack: list[tuple[int, str, bytes, int]] = [(-1, "module", b"", 0)]
    bodies: dict[int, int] = {}
    decorated: tuple[int, int] | None = None
    for match in _pattern("python line").finditer(text):
        blanks, is_def, name, decorator, block, attribute, alias, targets, _ = match.groups()
        indent = len(blanks.expandtabs(8)) if tabs else len(blanks)
        while indent <= stack[-1][0]:
            stack.pop()
        _, kind, scope, opened = stack[-1]
        if name is not None:
            begin, end = match.span(3)
            start = match.end(1)
            if decorated is not None and decorated[0] == indent:
                start = decorated[1]
            decorated = None
            add(_Mark(begin, end, ("method" if kind.startswith("class") else "function") if is_def else "class", scope, start))
            stack.append((indent, "def" if is_def else "class", scope + b"." + name if scope else name, end))
        elif decorator is not None:
            if decorated is None or decorated[0] != indent:
                decorated = (indent, match.start(4))
        elif block is not None:
            inner = {"module": "block", "class": "class block"}.get(kind, kind)
            stack.append((indent, inner, scope, -match.end()))
        elif attribute is not None:
            owner = _owner(stack)
            if owner is not None:
                add(_Mark(*match.span(6), "field", owner, match.end(1)))
                at = match.end(6)
                chain = _pattern("python self chain")
                while more := chain.match(text, at):
                    add(_Mark(*more.span(1), "field", owner, match.end(1)))
                    at = more.end()
        elif kind != "def":
            if opened:
                body = bodies.get(opened)
                if body is None:
                    body = bodies[opened] = _body_indent(text, opened, tabs=tabs)
                if indent != body:
                    continue
            elif indent:
                continue
            decorated = None
            if alias is not None:
                add(_Mark(*match.span(7), "type", scope, match.end(1)))
                continue
            _add_targets(text, match, "field" if kind.startswith("class") else "", scope, add)
    return found


def _owner(stack: list[tuple[int, str, bytes, int]]) -> bytes | None:
    """The class whose method a line stands in."""
    for index in range(len(stack) - 1, 0, -1):
        if stack[index][1] == "class":
            return stack[index][2] if index < len(stack) - 1 else None
    return None


def _body_indent(text: bytes, opened: int, *, tabs: bool) -> int:
    """How far the body of the class (or, negative, of the other block) whose header goes on here is indented."""
    if opened > 0:
        head = _pattern("class head").match(text, opened)
    else:
        line = _pattern("block head").search(text, -opened)
        head = _pattern("first indent").match(text, line.end()) if line else None
    if head is None:
        return -1
    return len(head[1].expandtabs(8)) if tabs else len(head[1])


def _add_targets(text: bytes, match: re.Match[bytes], kind: str, scope: bytes, add: Callable[[_Mark], None]) -> None:
    begin, end = match.span(8)
    start = match.end(1)
    if text[match.end() - 1] == 61:
        if text[end] == 61 and text[match.end() : match.end() + 200].partition(b"\n")[0].rstrip().endswith(b","):
            return  # "name=value," without blanks goes on a call
    elif b"," in match[8] or match[8][0] == 42:
        return
    for name in _pattern("python names").finditer(text, begin, end):
        add(_Mark(*name.span(), kind or _kind_of(name[0]), scope, start))
    if text[match.end() - 1] == 61:
        at = match.end()
        while more := _pattern("python chain").match(text, at):
            add(_Mark(*more.span(1), kind or _kind_of(more[1]), scope, start))
            at = more.end()


def _kind_of(name: bytes) -> str:
    return "constant" if name.isupper() else "variable"


def _without_text_blocks(text: bytes) -> bytes:
    """Strings of several lines blanked: what stands at the start of a line in them is no code."""
    lexis = _lexis("python")
    assert lexis is not None

    def paint(match: re.Match[bytes]) -> bytes:
        return match[0].translate(_BLANK) if b"\n" in match[0] else match[0]

    return _paint_tokens(text, lexis, lambda _: paint)


def _end_python(cleaned: bytes, language: str, marks: list[_Mark]) -> None:
    """Bodies end where a line is indented less; lines inside of brackets do not count."""
    lexis = _lexis(language)
    assert lexis is not None
    text = b"\n" + _paint_tokens(cleaned, lexis, lambda _: lambda match: b" " * len(match[0])) + b"\n"
    layout = _without_continuations(text)
    source = b"\n" + cleaned + b"\n"
    for mark in marks:
        line_end = layout.find(b"\n", mark.end)
        line_end = len(layout) if line_end < 0 else line_end
        mark.stop = line_end
        if mark.kind in ("function", "method", "class") and layout[mark.end : line_end].rstrip().endswith(b":"):
            indent = mark.begin - (layout.rfind(b"\n", 0, mark.begin) + 1)
            head = layout[mark.begin - indent : mark.begin]
            indent = len(head) - len(head.lstrip(b" \t"))
            dedent = _dedent(indent).search(layout, line_end)
            mark.stop = dedent.start() if dedent else len(layout)
            if not source[line_end : mark.stop].strip():  # nothing but a docstring, which is blank but has its lines
                blank = _pattern("blank lines").match(source, line_end, mark.stop + 1)
                mark.stop = blank.end() if blank else line_end
                continue
        mark.stop = len(source[: mark.stop].rstrip()) if mark.stop - mark.end < 1 else mark.end + len(
            source[mark.end : mark.stop].rstrip()
        )


@cache
def _dedent(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n[ \t]{0,%d}[^ \t\r\n]" % indent)


def _without_continuations(text: bytes) -> bytes:
    """The text with every logical line on one line: line breaks inside of brackets are blanks."""
    parts: list[bytes] = []
    depth = 0
    at = opened = 0
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


# --- braces: what all of these languages share -------------------------------------------------------------------

_CODE = "code"  # the body of a function, or a block: nothing but named functions and types is looked for in it
_OPEN = "open"  # the file, a class, a module: everything counts that a keyword introduces
_OPENERS = {40: re.compile(rb"[()]"), 91: re.compile(rb"[\[\]]"), 123: re.compile(rb"[{}]")}


class _Frame:
    """An open brace."""

    __slots__ = ("mark", "mode", "scope", "start")

    def __init__(self, mode: str, scope: bytes, mark: _Mark | None = None, start: int = -1) -> None:
        self.mode = mode
        self.scope = scope
        self.mark = mark
        self.start = start


class _Braces:
    """A text with braces on which a walker moves. Looking for a closing bracket costs fuel, so that it stays linear."""

    __slots__ = ("found", "fuel", "stack", "text")

    def __init__(self, text: bytes, mode: str = _OPEN) -> None:
        self.text = text
        self.found: list[_Mark] = []
        self.stack = [_Frame(mode, b"")]
        self.fuel = 20 * len(text) + 1000

    def close(self, at: int) -> int:
        """The offset behind the bracket that closes this one; just behind this one when nothing does."""
        text = self.text
        pattern = _OPENERS[text[at]]
        opener = text[at]
        if self.fuel < 0:
            return at + 1
        depth = 0
        for match in pattern.finditer(text, at):
            if text[match.start()] == opener:
                depth += 1
            else:
                depth -= 1
                if not depth:
                    self.fuel -= match.end() - at
                    return match.end()
        self.fuel -= len(text) - at
        return at + 1

    def angles(self, at: int) -> int:
        """The offset behind the angle bracket that closes this one, in a type."""
        depth = 0
        limit = at + 2000
        while match := _pattern("angle").search(self.text, at, limit):
            at = match.end()
            token = match[0]
            if token == b"<":
                depth += 1
            elif token == b">":
                depth -= 1
                if not depth:
                    return at
            elif token in b"([{":
                at = self.close(match.start())
            elif token != b"=>" and token != b"->":
                break
        return at

    def add(self, begin: int, end: int, kind: str, start: int = -1, scope: bytes | None = None) -> _Mark:
        mark = _Mark(begin, end, kind, self.stack[-1].scope if scope is None else scope, start)
        self.found.append(mark)
        return mark

    def push(self, mode: str, mark: _Mark | None = None, scope: bytes | None = None) -> None:
        if scope is None:
            scope = self.stack[-1].scope
            if mark is not None:
                scope = _join(mark.scope, self.text[mark.begin : mark.end])
        self.stack.append(_Frame(mode, scope, mark))

    def pop(self, at: int) -> None:
        if len(self.stack) > 1:
            frame = self.stack.pop()
            if frame.mark is not None:
                frame.mark.stop = at

    def hop(self, at: int, stops: bytes) -> int:
        """The offset of the next of the stops that is not inside of brackets."""
        pattern = _hops(stops)
        text = self.text
        while match := pattern.search(text, at):
            if text[match.start()] not in b"([{":
                return match.start()
            at = self.close(match.start())
        return len(text)


@cache
def _hops(stops: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"[(\[{" + re.escape(stops) + rb"]")


def _end_braces(cleaned: bytes, language: str, marks: list[_Mark]) -> None:
    """What has no body of its own ends with its statement; what has modifiers or attributes begins with them."""
    text = _scripts(cleaned) if language in _MARKUP else _opaque(cleaned, language)
    pairs = _pairs(text)
    semicolons = language in _SEMICOLONS
    for mark in marks:
        if mark.stop < 0:
            mark.stop = _statement_end(text, mark.end, pairs, semicolons=semicolons)
        if mark.start < 0:
            mark.start = _statement_start(text, mark.begin)
        if mark.stop < mark.end:
            mark.stop = mark.end


_SEMICOLONS = frozenset(("java", "csharp", "c", "cpp", "rust", "dart", "php", "protobuf"))


def _pairs(text: bytes) -> dict[int, int]:
    """Every bracket that is closed, with the offset of what closes it."""
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for match in re.finditer(rb"[()\[\]{}]", text):
        at = match.start()
        if text[at] in b"([{":
            stack.append(at)
        elif stack and text[stack[-1]] == {41: 40, 93: 91, 125: 123}[text[at]]:
            pairs[stack.pop()] = at
    return pairs


def _statement_end(text: bytes, at: int, pairs: dict[int, int], *, semicolons: bool) -> int:
    pattern = _pattern("statement end")
    while match := pattern.search(text, at):
        byte = text[match.start()]
        if byte in b"([{":
            at = pairs.get(match.start(), match.start()) + 1
        elif byte == 10:
            if not semicolons and not _pattern("goes on").match(text, match.end()):
                before = text[max(0, match.start() - 40) : match.start()].rstrip()[-1:]
                if before not in (b"=", b",", b"+", b"|", b"&", b"?", b":", b"(", b">", b"*", b".", b"\\"):
                    return match.start()
                if before == b",":
                    return match.start()
            at = match.end()
        elif byte == 59:
            return match.end() if semicolons else match.start()
        else:
            return match.start()
    return len(text.rstrip())


def _statement_start(text: bytes, at: int) -> int:
    """The beginning of the line, behind what ends there, with the attributes on the lines before."""
    line = text.rfind(b"\n", 0, at) + 1
    cut = max(text.rfind(mark, line, at) for mark in (b";", b"{", b"}")) + 1
    start = max(line, cut)
    start += len(text[start:at]) - len(text[start:at].lstrip())
    while cut <= line and line > 1:
        above = text.rfind(b"\n", 0, line - 1) + 1
        if text[above : line - 1].lstrip()[:1] not in (b"@", b"#") or text[above : line - 1].lstrip()[:2] in (b"#i", b"#d"):
            break
        line = above
        start = line + len(text[line:at]) - len(text[line:at].lstrip())
    return start


_PATTERNS |= {
    "angle": rb"=>|->|[<>(\[{;}]",
    "statement end": rb"[(\[{)\]};\n]",
    "goes on": rb"\s*+(?:[.?:|&=+*/<>{-]|where\b|->|extends\b|implements\b|with\b)",
}


# --- JavaScript and TypeScript -----------------------------------------------------------------------------------

_PATTERNS |= {
    "js": rb"\{|\}"
    rb"|f(?<![\w$.]f)unction\b\s*+\*?\s*+(?P<function>" + _JSNAME + rb")"
    rb"|c(?<![\w$.]c)(?:lass(?:\s++(?!extends\b|implements\b)(?P<class>" + _JSNAME + rb")(?=\s*+[{<]|\s++(?:extends|implements)\b)|(?P<unnamed>)(?=\s*+\{|\s++extends\b))"
    rb"|onst\s++(?:enum\s++(?P<constenum>" + _JSNAME + rb")|(?P<const>" + _JSNAME + rb"|[{\[])))"
    rb"|l(?<![\w$.]l)et\s++(?P<let>" + _JSNAME + rb"|[{\[])"
    rb"|v(?<![\w$.]v)ar\s++(?P<var>" + _JSNAME + rb"|[{\[])"
    rb"|i(?<![\w$.]i)nterface\s++(?P<interface>" + _JSNAME + rb")(?=\s*+[{<]|\s++extends\b)"
    rb"|e(?<![\w$.]e)(?:num\s++(?P<enum>" + _JSNAME + rb")(?=\s*+\{)"
    rb"|xport(?:\s++type)?\s*+(?P<exports>\{)|xport\s*+\*\s*+as\s++(?P<star>" + _JSNAME + rb")"
    rb"|xport\s++default\s++(?P<default>(?:[\w$.]++\s*+\(\s*+)?\{)"
    rb"|xport\s*+=\s*+(?P<equals>\{)"
    rb"|xports(?:\.(?P<exported>" + _JSNAME + rb")|(?<=module\.exports)(?:\.(?P<exported2>" + _JSNAME + rb"))?)\s*+=(?!=)\s*+(?P<literal>\{)?)"
    rb"|n(?<![\w$.]n)amespace\s++(?P<namespace>" + _JSNAME + rb"(?:\.[\w$]++)*+)(?=\s*+\{)"
    rb"|m(?<![\w$.]m)odule\s++(?P<module>" + _JSNAME + rb"(?:\.[\w$]++)*+|\"++)(?=\s*+\{)"
    rb"|t(?<![\w$.]t)ype\s++(?P<type>" + _JSNAME + rb")(?=\s*+[=<])"
    rb"|\.prototype\.(?P<prototype>" + _JSNAME + rb")\s*+=(?!=)"
    rb"|\n[ \t]*+(?:(?P<holder>[A-Za-z_$][\w$.]*+)\.(?P<property>" + _JSNAME + rb")\s*+=\s*+(?=(?:async\b\s*+)?(?:function\b|\([^()]*+\)\s*+=>|class\b))"
    rb"|(?:(?:async|get|set)[ \t]++)?\*?[ \t]*+(?P<method>" + _JSNAME + rb")[ \t]*+(?=" + _PARENS + rb"[ \t]*+(?::[^;{}=\n]++)?\{))",
    "js arrow": rb"\s*+(?:async\b\s*+)?(?:function\b\s*+\*?\s*+(?:" + _JSNAME + rb")?\s*+(?P<f>)(?=[(<])|(?:" + _JSNAME + rb"|"
    rb"(?:<[^;(){}=]*+>\s*+)?" + _PARENS + rb"(?:\s*+:(?:[^=;{}()]|=(?!>)){0,200}?)?)\s*+=>\s*+(?P<brace>\{)?)",
    "js value": rb"\s*+(?P<object>\{)|\s*+(?P<import>require\s*+\(|await\s++import\s*+\()",
    "js type": rb"\s*+(?:(?P<more>=>|[|&?:]|(?:is|extends|keyof|typeof|infer|readonly|asserts|unique|new|abstract|in)\b)"
    rb"|(?P<open>[(\[{<])|(?P<word>[\w$.\x80-\xff]++|\"++|-)|(?P<stop>[^\n]))",
    "js line": rb"[ \t\r]*+(?:\n|\Z)",
    "js member": rb"(?:(?:public|private|protected|static|readonly|abstract|override|declare|async|get|set|accessor)\s++(?=[\w$#\[*\"])(?!\s*+[=:(]))*+"
    rb"\*?\s*+(?P<name>#?" + _JSNAME + rb"|\"++)(?:\s*+[?!])?(?=\s*+[(<:=;,}]|[ \t\r]*+\n)",
    "js key": rb"(?:(?:async|get|set)[ \t]++(?=[\w$#\[*\"]))?\*?\s*+(?P<name>" + _JSNAME + rb"|\"++)(?=\s*+[(:,}<])",
    "js variant": rb"(?P<name>" + _JSNAME + rb"|\"++)(?=\s*+[=,}])",
    "js item": rb"[\s;,]*+",
    "js decorator": rb"@[\w$.]++",
    "js bound": rb"(?:[{,\[]|\.\.\.)\s*+(?:" + _JSNAME + rb"\s*+:\s*+)?(" + _JSNAME + rb")(?=\s*+[,}\]=])",
    "js more": rb"\s*+,\s*+(" + _JSNAME + rb")(?=\s*+[,;:=]|[ \t\r]*+\n)",
    "js export": rb"(?:(?P<from>" + _JSNAME + rb")(?P<as>\s++as\s++(?P<alias>" + _JSNAME + rb"))?)\s*+(?=[,}])",
    "js from": rb"\s*+from\b",
    "js opens": rb"(?:^|[;}\n])\s*+$|\n[;!(]*+\(\s*+(?:async\s*+)?(?:function\b[^\n]*|\([^\n]*=>\s*)$",
    "js call": rb"(?:if|for|while|switch|catch|function|with|return|await|typeof|new|do|else|super|constructor|yield|throw|void|in|of|case|import)$",
}
_JS_KEYWORDS = frozenset(b"if for while switch catch function with return await typeof new do else super yield throw void in of case import delete instanceof".split())


def _walk_javascript(cleaned: bytes, language: str) -> list[_Mark]:
    text = _scripts(cleaned) if language in _MARKUP else _opaque(cleaned, language)
    return _Script(text, b"\n" + cleaned).walk()


def _scripts(cleaned: bytes) -> bytes:
    """The scripts of a template, all else blank."""
    parts: list[bytes] = [b"\n"]
    at = 0
    for match in _pattern("script").finditer(cleaned):
        parts.append(cleaned[at : match.start(2)].translate(_BLANK))
        if match[1].lower() == b"script":
            parts.append(_opaque(match[2], "javascript")[1:-1])
        else:
            parts.append(match[2].translate(_BLANK))
        at = match.end(2)
    parts += (cleaned[at:].translate(_BLANK), b"\n")
    return b"".join(parts)


class _Script(_Braces):
    """Walks JavaScript. Frames: code, open, class, type, object, variant (of an enum)."""

    __slots__ = ("source",)

    def __init__(self, text: bytes, source: bytes) -> None:
        super().__init__(text)
        self.source = source

    def walk(self) -> list[_Mark]:
        at = 0
        while at < len(self.text):
            frame = self.stack[-1]
            if frame.mode in (_CODE, _OPEN):
                match = _pattern("js").search(self.text, at)
                if match is None:
                    break
                at = self.declaration(match, frame)
            else:
                at = self.member(at, frame)
        return self.found

    def declaration(self, match: re.Match[bytes], frame: _Frame) -> int:
        text = self.text
        at = match.end()
        byte = text[match.start()]
        if byte == 123:
            before = text[max(0, match.start() - 120) : match.start()]
            is_open = frame.mode == _OPEN and _pattern("js opens").search(before)
            self.push(_OPEN if is_open else _CODE)
            return at
        if byte == 125:
            self.pop(at)
            return at
        kind = match.lastgroup or ""
        if kind == "function":
            return self.body(self.add(*match.span(kind), "function"))
        if kind in ("class", "unnamed"):
            mark = self.add(*match.span(kind), "class") if kind == "class" else None
            return self.block(at, "class", mark)
        if kind == "interface":
            return self.block(at, "type", self.add(*match.span(kind), "interface"))
        if kind in ("enum", "constenum"):
            return self.block(at, "variant", self.add(*match.span(kind), "enum"))
        if kind in ("namespace", "module"):
            mark = self.add(*match.span(kind), "module") if text[match.start(kind)] != 34 else None
            return self.block(at, _OPEN, mark)
        if kind == "type":
            return self.alias(self.add(*match.span(kind), "type"))
        if kind in ("const", "let", "var"):
            return self.variable(*match.span(kind), kind, is_open=frame.mode == _OPEN)
        if kind == "exports":
            return self.export_list(match.start(kind))
        if kind == "star":
            self.add(*match.span(kind), "export")
            return at
        if kind in ("default", "equals"):
            self.push("object", None, b"")
            return at
        if kind in ("exported", "exported2", "literal"):
            mark = None
            for group in ("exported", "exported2"):
                if match[group]:
                    mark = self.value_mark(*match.span(group), "function", b"")
            if kind == "literal":
                self.push("object", mark, None if mark else b"")
                return at
            return self.value(at, mark) if mark else at
        if kind == "prototype":
            owner = _pattern("js owner").search(text, max(0, match.start() - 80), match.start())
            mark = self.value_mark(*match.span(kind), "method", owner[1] if owner else b"")
            return self.value(at, mark)
        if kind == "property":
            mark = self.value_mark(*match.span(kind), "function", match["holder"].removeprefix(b"this").removeprefix(b"exports").strip(b"."))
            return self.value(at, mark)
        if match["method"] in _JS_KEYWORDS:
            return at
        return self.body(self.add(*match.span("method"), "method"))

    def value_mark(self, begin: int, end: int, kind: str, scope: bytes) -> _Mark:
        return self.add(begin, end, kind, scope=scope)

    def body(self, mark: _Mark) -> int:
        """Behind the `{` of a function's body; behind its name when it has none."""
        text = self.text
        at = mark.end
        at = self.skip(at)
        if text[at : at + 1] == b"?":
            at = self.skip(at + 1)
        if text[at : at + 1] == b"<":
            at = self.skip(self.angles(at))
        if text[at : at + 1] != b"(":
            return mark.end
        end = self.close(at)
        at = self.skip(end)
        if text[at : at + 1] == b":":
            end = self.type_end(at + 1)
            at = self.skip(end)
        if text[at : at + 1] == b"{":
            self.push(_CODE, mark)
            return at + 1
        mark.stop = end
        return end

    def skip(self, at: int) -> int:
        match = _pattern("blanks").match(self.text, at)
        return match.end() if match else at

    def block(self, at: int, mode: str, mark: _Mark | None) -> int:
        """Behind the `{` of a class or the like, whatever stands before it."""
        text = self.text
        limit = at + 4000
        while match := _pattern("js head").search(text, at, limit):
            byte = text[match.start()]
            if byte == 123:
                self.push(mode, mark)
                return match.end()
            if byte == 60:
                at = self.angles(match.start())
            elif byte == 40:
                at = self.close(match.start())
            else:
                break
        return at

    def alias(self, mark: _Mark) -> int:
        """A type alias: the first `{` of an object type opens its members."""
        text = self.text
        at = self.skip(mark.end)
        if text[at : at + 1] == b"<":
            at = self.skip(self.angles(at))
        if text[at : at + 1] != b"=":
            return mark.end
        literal = _pattern("js literal type").match(text, at + 1)
        if literal:
            self.push("type", None, _join(mark.scope, text[mark.begin : mark.end]))
            return literal.end()
        return at + 1

    def type_end(self, at: int) -> int:
        """Behind a type: where a body, a value, or the next statement begins."""
        text = self.text
        wants = True
        pattern = _pattern("js type")
        while match := pattern.match(text, at):
            kind = match.lastgroup
            if not wants and b"\n" in text[at : match.start(kind or 0)] and kind != "more":
                return at
            if kind == "more":
                wants = True
                at = match.end()
            elif kind == "open":
                byte = text[match.start("open")]
                if byte == 123 and not wants:
                    return match.start("open")
                at = self.angles(match.start("open")) if byte == 60 else self.close(match.start("open"))
                wants = False
            elif kind == "word":
                wants = False
                at = match.end()
            else:
                return match.start("stop")
        return at

    def variable(self, begin: int, end: int, keyword: str, *, is_open: bool) -> int:
        text = self.text
        if text[begin] in b"{[":
            close = self.close(begin)
            if is_open and close - begin < 5000:
                at = self.skip(close)
                if text[at : at + 1] == b":":
                    at = self.type_end(at + 1)
                if text[at : at + 1] == b"=" and not self.imports(at + 1):
                    for bound in _pattern("js bound").finditer(text, begin, close):
                        self.add(*bound.span(1), "variable")
            return close
        at = self.skip(end)
        if text[at : at + 1] == b"!":
            at = self.skip(at + 1)
        if text[at : at + 1] == b":":
            at = self.skip(self.type_end(at + 1))
        arrow = None
        if text[at : at + 1] == b"=":
            if self.imports(at + 1):
                return at + 1
            arrow = _pattern("js arrow").match(text, at + 1)
        if not is_open and arrow is None:
            return at
        name = text[begin:end]
        kind = "function" if arrow else "constant" if keyword == "const" else "variable"
        if name in (b"enum", b"of", b"in"):
            return at
        mark = self.add(begin, end, kind)
        if text[at : at + 1] != b"=":
            while more := _pattern("js more").match(text, at):
                mark = self.add(*more.span(1), "variable")
                at = more.end()
            return at
        return self.value(at + 1, mark, is_open=is_open)

    def imports(self, at: int) -> bool:
        match = _pattern("js value").match(self.text, at)
        return match is not None and match.lastgroup == "import"

    def value(self, at: int, mark: _Mark, *, is_open: bool = True) -> int:
        """Into the body of a function or an object that a name is set to."""
        text = self.text
        if arrow := _pattern("js arrow").match(text, at):
            mark.kind = mark.kind if mark.kind == "method" else "function"
            if arrow["f"] is not None:
                return self.function_value(arrow.end(), mark)
            if arrow["brace"]:
                self.push(_CODE, None, _join(mark.scope, text[mark.begin : mark.end]))
                return arrow.end()
            return arrow.end()
        match = _pattern("js value").match(text, at)
        if is_open and match and match.lastgroup == "object":
            self.push("object", None, _join(mark.scope, text[mark.begin : mark.end]))
            return match.end()
        return at

    def function_value(self, at: int, mark: _Mark) -> int:
        text = self.text
        if text[at : at + 1] == b"<":
            at = self.skip(self.angles(at))
        if text[at : at + 1] == b"(":
            at = self.skip(self.close(at))
            if text[at : at + 1] == b":":
                at = self.skip(self.type_end(at + 1))
            if text[at : at + 1] == b"{":
                self.push(_CODE, None, _join(mark.scope, text[mark.begin : mark.end]))
                return at + 1
        return at

    def export_list(self, at: int) -> int:
        """`export { a as b }`: a new name is defined by `as`, and by taking it from another module."""
        close = self.close(at)
        text = self.text
        everything = _pattern("js from").match(text, close) is not None
        for match in _pattern("js export").finditer(text, at, close):
            if match["alias"]:
                if match["alias"] != b"default":
                    self.add(*match.span("alias"), "export")
            elif everything and match["from"] != b"default":
                self.add(*match.span("from"), "export")
        return close

    def member(self, at: int, frame: _Frame) -> int:
        """One member of a class, type, object or enum; the offset of the next."""
        text = self.text
        mode = frame.mode
        item = _pattern("js item").match(text, at)
        at = item.end() if item else at
        byte = text[at : at + 1]
        if byte == b"}" or not byte:
            self.pop(at + 1)
            return at + 1
        if byte == b"@" and mode == "class":
            if frame.start < 0:
                frame.start = at
            decorator = _pattern("js decorator").match(text, at)
            at = decorator.end() if decorator else at + 1
            return self.close(at) if text[at : at + 1] == b"(" else at
        start, frame.start = frame.start, -1
        name = "js member" if mode in ("class", "type") else "js key" if mode == "object" else "js variant"
        match = _pattern(name).match(text, at)
        if match is None or match["name"] in (b"static", b"new") and text[match.end() : match.end() + 2].strip()[:1] in (b"{", b"("):
            if text[at : at + 6] == b"static" and text[self.skip(at + 6) : self.skip(at + 6) + 1] == b"{":
                self.push(_CODE)
                return self.skip(at + 6) + 1
            return self.rest(at, mode)
        begin, end = match.span("name")
        kind = {"class": "field", "type": "field", "object": "key", "variant": "variant"}[mode]
        if text[begin] == 34:
            quoted = _pattern("quoted name").match(self.source, begin)
            if quoted is None or quoted.end() != end:
                return self.rest(match.end(), mode)
            begin, end = begin + 1, end - 1
        mark = self.add(begin, end, kind, start if start >= 0 else at)
        at = self.skip(match.end())
        byte = text[at : at + 1]
        if byte not in (b"(", b"<", b":", b"="):
            return match.end()
        if byte in (b"(", b"<") and mode != "variant":
            mark.kind = "method"
            mark_end, mark.end = mark.end, match.end()
            at = self.body(mark)
            mark.end = mark_end
            return at if self.stack[-1] is not frame else self.rest(at, mode)
        if mode == "type" and byte == b":":
            opened = self.skip(at + 1)
            if text[opened : opened + 1] == b"{":
                self.push("type", None, _join(mark.scope, text[begin:end]))
                return opened + 1
            return self.rest(self.type_end(at + 1), mode)
        if mode == "class" and byte == b":":
            end = self.type_end(at + 1)
            at = self.skip(end)
            byte = text[at : at + 1]
            if byte != b"=":
                return self.rest(end, mode)
        if (mode == "class" and byte == b"=") or (mode == "object" and byte == b":"):
            depth = len(self.stack)
            at = self.value(at + 1, mark, is_open=mode == "object")
            if len(self.stack) > depth:
                return at
        return self.rest(at, mode)

    def rest(self, at: int, mode: str) -> int:
        """The end of a member."""
        if mode in ("object", "variant"):
            return self.hop(at, b",}")
        while True:
            at = self.hop(at, b";,\n}") if mode == "type" else self.hop(at, b";\n}")
            if self.text[at : at + 1] != b"\n" or not (goes := _pattern("goes on").match(self.text, at)):
                return at if at < len(self.text) else at
            at = goes.end()


_PATTERNS |= {
    "blanks": rb"\s*+",
    "quoted name": rb"([\"'])[\w$.@/:+*-]{1,80}+\1",
    "js head": rb"[{<(;}]",
    "js owner": rb"(" + _JSNAME + rb")$",
    "js literal type": rb"\s*+(?:[^{};()=\n]|\n\s*+[|&])*?\{",
}


# --- keywords and braces: Rust, Kotlin, Swift, Scala, PHP ... -------------------------------------------------------


class _Keywords(NamedTuple):
    """How one language is walked. The group that matches in `events` is the kind of what it names."""

    events: bytes
    modes: dict[str, str]
    """The mode of the body of each kind that has one; "" when a body is looked for but does not matter."""
    inner: frozenset[str]
    """Kinds that count inside of functions too."""
    members: dict[str, bytes]
    """For the modes that list their members: the pattern of one, matched where a member begins."""
    newline: bool
    """Whether a line break ends a header."""
    scopes: frozenset[str] = frozenset()
    """Kinds that only say what their members belong to."""


_FIELDS, _CASES = "fields", "cases"


def _keyword_tables() -> dict[str, _Keywords]:
    name = _NAME
    return {
        "rust": _Keywords(
            rb"\{|\}"
            rb"|f(?<![\w#$]f)n\s++(?P<function>(?:r#)?" + name + rb")(?=\s*+[(<])"
            rb"|s(?<![\w#$']s)truct\s++(?P<struct>" + name + rb")"
            rb"|s(?<![\w#$']s)tatic\s++(?:mut\s++|ref\s++)?(?P<constant>" + name + rb")(?=\s*+:)"
            rb"|e(?<![\w#$]e)num\s++(?P<enum>" + name + rb")(?=\s*+[{<])"
            rb"|u(?<![\w#$]u)nion\s++(?P<union>" + name + rb")(?=\s*+[{<])"
            rb"|t(?<![\w#$]t)rait\s++(?P<trait>" + name + rb")"
            rb"|t(?<![\w#$]t)ype\s++(?P<type>(?:r#)?" + name + rb")(?=\s*+[:;=<]|\s++where\b)"
            rb"|m(?<![\w#$]m)od\s++(?P<module>" + name + rb")(?=\s*+[{;])"
            rb"|m(?<![\w#$]m)acro_rules!\s*+(?P<macro>" + name + rb")"
            rb"|c(?<![\w#$*<]c)(?<!\* c)onst\s++(?!fn\b|unsafe\b|async\b|extern\b|_\b)(?P<const>" + name + rb")(?=\s*+[:=])"
            rb"|i(?<![\w#$:&+(]i)mpl\b(?P<impl>)(?=[\s<])",
            {"function": _CODE, "struct": _FIELDS, "enum": _CASES, "union": _FIELDS, "trait": _OPEN, "module": _OPEN,
             "macro": _CODE, "impl": _OPEN},
            frozenset(("function", "struct", "enum", "union", "trait", "type", "module", "macro", "const", "constant",
                       "impl")),
            {
                _FIELDS: rb"(?:pub(?:\s*+\([^()]*+\))?\s++)?(?P<field>(?:r#)?" + name + rb")(?=\s*+:(?!:))",
                _CASES: rb"(?P<variant>" + name + rb")(?=\s*+[,}({=])",
            },
            newline=False,
            scopes=frozenset(("impl",)),
        ),
        "kotlin": _Keywords(
            rb"\{|\}"
            rb"|f(?<![\w.]f)un\s++(?:<[^(){}]*?>\s*+)?(?:(?P<receiver>[\w.]++(?:<[^(){}]*?>)?\??)\.)?(?P<function>`[^`\n]++`|" + name + rb")(?=\s*+[(<])"
            rb"|v(?<![\w.]v)(?:al|ar)\s++(?:<[^(){}]*?>\s*+)?(?:[\w.]++(?:<[^(){}=]*?>)?\??\.)?(?P<property>" + name + rb")(?=\s*+(?:[:=;\n{]|by\b|get\b|$))"
            rb"|c(?<![\w.:]c)lass\s++(?P<class>" + name + rb")"
            rb"|i(?<![\w.]i)nterface\s++(?P<interface>" + name + rb")"
            rb"|o(?<![\w.]o)bject\s++(?P<object>" + name + rb")"
            rb"|c(?<![\w.]c)ompanion\s++object\b(?P<companion>)"
            rb"|t(?<![\w.]t)ypealias\s++(?P<type>" + name + rb")"
            rb"|e(?<![\w.]e)num\s++class\s++(?P<enum>" + name + rb")",
            {"function": _CODE, "class": _OPEN, "interface": _OPEN, "object": _OPEN, "companion": _OPEN, "enum": _CASES,
             "property": ""},
            frozenset(("function", "class", "interface", "object", "type", "enum", "companion")),
            {_CASES: rb"(?P<constant>" + name + rb")(?=\s*+[,;({}]|\s*+$)"},
            newline=True,
            scopes=frozenset(("companion",)),
        ),
        "swift": _Keywords(
            rb"\{|\}"
            rb"|f(?<![\w.]f)unc\s++(?P<function>`?" + name + rb"`?|[-+*/%=<>!&|^~?.]++)(?=\s*+[(<])"
            rb"|v(?<![\w.]v)ar\s++(?P<property>" + name + rb")"
            rb"|l(?<![\w.]l)et\s++(?P<constant>" + name + rb")"
            rb"|c(?<![\w.]c)lass\s++(?!func\b|var\b|let\b|override\b|subscript\b)(?P<class>" + name + rb")"
            rb"|s(?<![\w.]s)truct\s++(?P<struct>" + name + rb")"
            rb"|e(?<![\w.]e)num\s++(?P<enum>" + name + rb")"
            rb"|p(?<![\w.]p)rotocol\s++(?P<protocol>" + name + rb")"
            rb"|a(?<![\w.]a)(?:ctor\s++(?P<actor>" + name + rb")|ssociatedtype\s++(?P<associated>" + name + rb"))"
            rb"|e(?<![\w.]e)xtension\s++(?P<extension>[\w.]++)"
            rb"|t(?<![\w.]t)ypealias\s++(?P<type>" + name + rb")"
            rb"|\n[ \t]*+(?:indirect[ \t]++)?case[ \t]++(?P<case>" + name + rb")"
            rb"|m(?<![\w.]m)acro\s++(?P<macro>" + name + rb")(?=\s*+[(<])",
            {"function": _CODE, "class": _OPEN, "struct": _OPEN, "enum": "enum", "protocol": _OPEN, "actor": _OPEN,
             "extension": _OPEN, "property": ""},
            frozenset(("function", "class", "struct", "enum", "protocol", "actor", "extension", "type")),
            {},
            newline=True,
            scopes=frozenset(("extension",)),
        ),
        "scala": _Keywords(
            rb"\{|\}"
            rb"|d(?<![\w.]d)ef\s++(?P<function>`[^`\n]++`|" + name + rb"|[-+*/%=<>!&|^~?:]++)"
            rb"|v(?<![\w.]v)(?:al|ar)\s++(?P<property>" + name + rb")(?=\s*+[:=,])"
            rb"|c(?<![\w.]c)lass\s++(?P<class>" + name + rb")"
            rb"|t(?<![\w.]t)rait\s++(?P<trait>" + name + rb")"
            rb"|o(?<![\w.]o)bject\s++(?P<object>" + name + rb")"
            rb"|e(?<![\w.]e)num\s++(?P<enum>" + name + rb")"
            rb"|g(?<![\w.]g)iven\s++(?P<given>" + name + rb")(?=\s*+[:\[(])"
            rb"|t(?<![\w.]t)ype\s++(?P<type>" + name + rb")(?=\s*+[=\[<>]|[ \t]*+\n)"
            rb"|\n[ \t]*+case[ \t]++(?P<case>" + name + rb")(?=[ \t]*+(?:\n|,|\())",
            {"function": _CODE, "class": _OPEN, "trait": _OPEN, "object": _OPEN, "enum": "enum", "property": ""},
            frozenset(("function", "class", "trait", "object", "enum")),
            {},
            newline=True,
        ),
        "php": _Keywords(
            rb"\{|\}"
            rb"|f(?<![\w$>:\\]f)(?<!use f)unction\s++&?\s*+(?P<function>" + name + rb")(?=\s*+\()"
            rb"|c(?<![\w$>:\\]c)lass\s++(?!extends\b|implements\b)(?P<class>" + name + rb")(?=\s*+\{|\s++(?:extends|implements)\b)"
            rb"|i(?<![\w$>:\\]i)nterface\s++(?P<interface>" + name + rb")(?=\s*+\{|\s++extends\b)"
            rb"|t(?<![\w$>:\\]t)rait\s++(?P<trait>" + name + rb")(?=\s*+\{)"
            rb"|e(?<![\w$>:\\]e)num\s++(?P<enum>" + name + rb")(?=\s*+[{:]|\s++implements\b)"
            rb"|c(?<![\w$>:\\]c)onst\s++(?:[\w\\?|]++\s++)?(?P<constant>" + name + rb")(?=\s*+=)"
            rb"|d(?<![\w$>:\\]d)efine\s*+\(\s*+(?P<define>\"++)(?=\s*+,)"
            rb"|\$(?<=[\w\s?]\$)(?P<variable>" + name + rb")(?=\s*+[;=,)]|\s*+\{)"
            rb"|\n[ \t]*+case[ \t]++(?P<case>" + name + rb")(?=\s*+[;=])",
            {"function": _CODE, "class": "class", "interface": "class", "trait": "class", "enum": "class"},
            frozenset(("function", "class", "interface", "trait", "enum", "define")),
            {},
            newline=False,
        ),
    }


_TABLES: dict[str, _Keywords] = {}


def _table(language: str) -> _Keywords:
    if not _TABLES:
        _TABLES.update(_keyword_tables())
    return _TABLES[language]


@cache
def _events(language: str) -> re.Pattern[bytes]:
    return re.compile(_table(language).events, re.DOTALL)


@cache
def _members(language: str, mode: str) -> re.Pattern[bytes]:
    return re.compile(rb"\s*+(?:" + _table(language).members[mode] + rb")", re.DOTALL)


def _walk_keywords(cleaned: bytes, language: str) -> list[_Mark]:
    walk = _Keyworded(_opaque(cleaned, language), language)
    return walk.walk()


class _Keyworded(_Braces):
    """Walks a language in which a keyword stands before what is defined."""

    __slots__ = ("language", "table")

    def __init__(self, text: bytes, language: str) -> None:
        super().__init__(text)
        self.language = language
        self.table = _table(language)

    def walk(self) -> list[_Mark]:
        text = self.text
        events = _events(self.language)
        at = 0
        while at < len(text):
            frame = self.stack[-1]
            if frame.mode in (_FIELDS, _CASES):
                at = self.member(at, frame)
                continue
            match = events.search(text, at)
            if match is None:
                break
            at = match.end()
            byte = text[match.start()]
            if byte == 123:
                self.push(_CODE)
            elif byte == 125:
                self.pop(at)
            elif frame.mode != _CODE or match.lastgroup in self.table.inner:
                at = self.declare(match, frame)
        return self.found

    def declare(self, match: re.Match[bytes], frame: _Frame) -> int:
        kind = match.lastgroup or ""
        text = self.text
        begin, end = match.span(kind)
        scope: bytes | None = None
        mark: _Mark | None = None
        if kind in self.table.scopes:
            if kind == "extension":
                scope = match[kind]
        elif not self.counts(match, kind, frame):
            return match.end()
        else:
            if text[begin] in b'"`' and end - begin > 2:
                begin, end = begin + 1, end - 1
            label = "method" if kind == "function" and frame.mode in (_OPEN, "class", "enum") and frame.scope else _LABELS.get(kind, kind)
            mark = self.add(begin, end, label)
            if self.language == "kotlin" and kind == "function" and match["receiver"] and not frame.scope:
                mark.scope = match["receiver"].partition(b"<")[0].rstrip(b"?")
            if kind == "case" and self.language == "swift":
                return self.cases(end)
        if kind not in self.table.modes:
            return match.end()
        body = self.header_end(match.end(), kind)
        if body < 0:
            return match.end()
        if kind == "impl":
            scope = _impl_type(text[match.end() : body])
        mode = self.table.modes[kind] or _CODE
        if kind == "class" and self.language == "kotlin" and mark and text[max(0, match.start() - 12) : match.start()].rstrip().endswith(b"enum"):
            mode = _CASES
        self.push(mode, mark, scope)
        return body + 1

    def counts(self, match: re.Match[bytes], kind: str, frame: _Frame) -> bool:
        if self.language == "swift" and kind == "case":
            return frame.mode == "enum"
        if self.language == "scala" and kind == "case":
            return frame.mode == "enum"
        if self.language == "php":
            if kind == "variable":
                return frame.mode == "class" and _pattern("php modifier").search(self.text, max(0, match.start() - 60), match.start()) is not None
            if kind == "case":
                return frame.mode == "class"
        return True

    def cases(self, at: int) -> int:
        """The other cases of `case a, b(Int), c`."""
        text = self.text
        while True:
            if text[at : at + 1] == b"(":
                at = self.close(at)
            more = _pattern("more cases").match(text, at)
            if more is None:
                return at
            self.add(*more.span(1), "case")
            at = more.end()

    def header_end(self, at: int, kind: str) -> int:
        """The `{` of the body, or -1."""
        text = self.text
        pattern = _pattern("header")
        properties = self.language == "kotlin" and kind in ("class", "enum")
        first = True
        while match := pattern.search(text, at):
            byte = text[match.start()]
            if byte == 123:
                return match.start()
            if byte in b"([":
                at = self.close(match.start())
                if byte == 40 and first:
                    first = False
                    if properties or (self.language == "php" and kind == "function") or (self.language == "scala" and kind == "class"):
                        self.parameters(match.start(), at)
            elif byte == 10:
                if self.table.newline and not _pattern("header goes on").match(text, match.end()) and text[max(0, match.start() - 20) : match.start()].rstrip()[-1:] not in (b",", b":", b"("):
                    return -1
                at = match.end()
            elif byte == 61:
                if text[match.start() - 1] in b"=<>!" or text[match.end()] in b"=>" or not self.table.newline:
                    at = match.end()
                    if self.language != "rust" and not self.table.newline:
                        return -1
                    continue
                return -1
            else:
                return -1
        return -1

    def parameters(self, at: int, close: int) -> None:
        """Parameters of a constructor that are fields as well."""
        mark = self.found[-1]
        name = self.text[mark.begin : mark.end]
        if self.language == "php":
            if name != b"__construct":
                return
            scope = mark.scope
        else:
            scope = _join(mark.scope, name)
        for match in _pattern(f"{self.language} parameter").finditer(self.text, at, close):
            self.add(*match.span(1), "field", scope=scope)

    def member(self, at: int, frame: _Frame) -> int:
        text = self.text
        item = _pattern("js item").match(text, at)
        at = item.end() if item else at
        byte = text[at : at + 1]
        if byte == b"}" or not byte:
            self.pop(at + 1)
            return at + 1
        if byte in (b"#", b"@"):
            decorator = _pattern("attribute").match(text, at)
            at = decorator.end() if decorator else at + 1
            return self.close(at) if text[at : at + 1] in (b"[", b"(") else at
        match = _members(self.language, frame.mode).match(text, at)
        if match is None:
            if self.language == "kotlin":
                frame.mode = _OPEN
                return at
            return self.hop(at, b",}")
        kind = match.lastgroup or ""
        mark = self.add(*match.span(kind), kind, at)
        at = match.end()
        if frame.mode == _CASES and self.language == "rust":
            blank = _pattern("blanks").match(text, at)
            at = blank.end() if blank else at
            if text[at : at + 1] == b"{":
                self.push(_FIELDS, mark)
                return at + 1
        if self.language == "kotlin":
            at = self.hop(at, b",;}")
            if text[at : at + 1] == b";":
                frame.mode = _OPEN
            mark.stop = len(text[mark.end:at].rstrip()) + mark.end
            return at
        at = self.hop(at, b",}")
        mark.stop = len(text[mark.end:at].rstrip()) + mark.end
        return at


_LABELS = {"const": "constant", "define": "constant", "actor": "class", "associated": "type", "case": "variant"}


def _impl_type(header: bytes) -> bytes:
    """The type that an `impl` is for."""
    bare = header
    for _ in range(6):
        shorter = re.sub(rb"(?<!-)<[^<>]*+>", b"", bare)
        if shorter == bare:
            break
        bare = shorter
    bare = re.split(rb"\bwhere\b", bare)[0]
    target = re.split(rb"\bfor\b", bare)[-1]
    words = re.findall(rb"[A-Za-z_\x80-\xff][\w\x80-\xff]*", target.replace(b"dyn ", b"").replace(b"mut ", b""))
    return words[-1] if words else b""


_PATTERNS |= {
    "header": rb"[{(\[;}=\n]",
    "header goes on": rb"\s*+(?:\{|:|->|where\b|throws\b|rethrows\b|async\b|extends\b|with\b|derives\b|implements\b|,)",
    "attribute": rb"#!?|@[\w.:]++",
    "more cases": rb"(?:\s*+=\s*+[^\s,]++)?\s*+,\s*+(" + _NAME + rb")",
    "php modifier": rb"(?:public|protected|private|static|readonly|var)(?:\s++\??[\w\\|]++)?\s++$",
    "php parameter": rb"(?:public|protected|private|readonly)\s++(?:[\w\\?|&]++\s++)*?\$(" + _NAME + rb")",
    "kotlin parameter": rb"(?<!\w)va[lr]\s++(" + _NAME + rb")\s*+:",
    "scala parameter": rb"(?<!\w)va[lr]\s++(" + _NAME + rb")\s*+:",
}


# --- Go ----------------------------------------------------------------------------------------------------------

_PATTERNS |= {
    "go": rb"\{|\}"
    rb"|\nfunc[ \t]*+(?:\(\s*+(?:" + _NAME + rb"[ \t]++)?\*?[ \t]*+(?P<receiver>" + _NAME + rb")[^()]*+\)[ \t]*+)?(?P<function>" + _NAME + rb")(?=[ \t]*+[(\[])"
    rb"|\n[ \t]*+type[ \t]++(?:(?P<types>\()|(?P<type>" + _NAME + rb")(?=[ \t\[]))"
    rb"|\n(?:const|var)[ \t]++(?P<list>\(|" + _NAME + rb"(?:[ \t]*+,[ \t]*+" + _NAME + rb")*+)",
    "go shape": rb"(?:\[[^\n]*?\][ \t]*+)?[^\n{}()]*?(?P<shape>struct|interface)[ \t]*+\{(?![ \t]*+\})",
    "go field": rb"[\s;]*+(?P<names>" + _NAME + rb"(?:[ \t]*+,[ \t]*+" + _NAME + rb")*+)(?=[ \t]++[^\s;}]|\()",
    "go inner": rb"[^\n{}\"]*?(?:struct|interface)[ \t]*+\{(?![ \t]*+\})",
    "go item": rb"[\s;]*+(?P<names>" + _NAME + rb"(?:[ \t]*+,[ \t]*+" + _NAME + rb")*+)",
    "go name": _NAME,
}


def _walk_go(cleaned: bytes, language: str) -> list[_Mark]:
    return _Go(_opaque(cleaned, language)).walk()


class _Go(_Braces):
    """Walks Go. Frames: code, struct, interface."""

    __slots__ = ()

    def walk(self) -> list[_Mark]:
        text = self.text
        pattern = _pattern("go")
        at = 0
        while at < len(text):
            frame = self.stack[-1]
            if frame.mode in ("struct", "interface"):
                at = self.member(at, frame)
                continue
            match = pattern.search(text, at)
            if match is None:
                break
            at = match.end()
            byte = text[match.start()]
            kind = match.lastgroup
            if byte == 123:
                self.push(_CODE)
            elif byte == 125:
                self.pop(at)
            elif kind == "function":
                receiver = match["receiver"]
                mark = self.add(*match.span(kind), "method" if receiver else "function", match.start() + 1, receiver or b"")
                at = self.function(mark)
            elif kind == "type":
                at = self.type(self.add(*match.span(kind), "type", match.start() + 1))
            elif kind == "types":
                at = self.listed(match.start(kind), "type")
            elif kind == "list":
                label = "constant" if text[match.start() + 1] == 99 else "variable"
                if text[match.start(kind)] == 40:
                    at = self.listed(match.start(kind), label)
                else:
                    for name in _pattern("go name").finditer(text, *match.span(kind)):
                        self.add(*name.span(), label)
        return self.found

    def function(self, mark: _Mark) -> int:
        """Into the body: the first brace that does not belong to a type."""
        text = self.text
        at = mark.end
        while match := _pattern("header").search(text, at):
            byte = text[match.start()]
            if byte in b"([":
                at = self.close(match.start())
            elif byte == 123:
                if text[max(0, match.start() - 12) : match.start()].rstrip().endswith((b"struct", b"interface")):
                    at = self.close(match.start())
                    continue
                self.push(_CODE, mark)
                return match.end()
            else:
                mark.stop = match.start()
                return match.start()
        return at

    def type(self, mark: _Mark) -> int:
        match = _pattern("go shape").match(self.text, self.blank(mark.end))
        if match is None:
            return mark.end
        mark.kind = match["shape"].decode()
        self.push(mark.kind, mark)
        return match.end()

    def blank(self, at: int) -> int:
        while self.text[at : at + 1] in (b" ", b"\t"):
            at += 1
        return at

    def listed(self, opened: int, label: str) -> int:
        """The items of `const (`, `var (`, `type (`."""
        close = self.close(opened)
        text = self.text
        at = opened + 1
        while at < close:
            item = _pattern("go item").match(text, at)
            if item is None or item.end() >= close:
                break
            marks = [self.add(*name.span(), label, item.start("names")) for name in _pattern("go name").finditer(text, *item.span("names"))]
            at = item.end()
            if label == "type":
                inner = self.type(marks[0])
                if inner != marks[0].end:
                    depth = len(self.stack)
                    at = inner
                    while len(self.stack) >= depth and at < close:
                        at = self.member(at, self.stack[-1])
                    continue
            at = self.hop(at, b"\n;)")
            for mark in marks:
                mark.stop = len(text[mark.end:at].rstrip()) + mark.end
        return close

    def member(self, at: int, frame: _Frame) -> int:
        text = self.text
        item = _pattern("js item").match(text, at)
        at = item.end() if item else at
        byte = text[at : at + 1]
        if byte == b"}" or not byte:
            self.pop(at + 1)
            return at + 1
        match = _pattern("go field").match(text, at)
        if match is None:
            return max(self.hop(at, b"\n;}"), at)
        end = match.end()
        label = "field" if frame.mode == "struct" else "method"
        if (label == "method") != (text[end] == 40):
            return max(self.hop(at, b"\n;}"), at)
        marks = [self.add(*name.span(), label, at) for name in _pattern("go name").finditer(text, *match.span("names"))]
        if label == "field" and (inner := _pattern("go inner").match(text, end)):
            self.push("struct", marks[0])
            return inner.end()
        at = self.hop(end, b"\n;}")
        for mark in marks:
            mark.stop = len(text[mark.end:at].rstrip()) + mark.end
        return at


# --- headers: Java, C#, Dart, C, C++ ------------------------------------------------------------------------------

_TYPE, _ENUM = "type", "enum"
_PATTERNS |= {
    "terminator": rb"::|[(){}\[\];=,:]",
    "last name": rb"(?P<scope>(?:[\w$\x80-\xff]++(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>)?\s*+::\s*+)*+)"
    rb"(?P<name>operator\s*+(?:[^\s\w(]++|\(\s*+\)|new\b|delete\b)|(?:~\s*+)?[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+)"
    rb"\s*+(?:<[^<>]*+(?:<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>[^<>]*+)*+>\s*+)?(?:\[[^\[\]]*+\]\s*+)*+$",
    "declarator": rb"[\s*&^]*+(?:const\s++)?(?P<name>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+)\s*+(?:\[[^\[\]]*+\]\s*+)*+(?::[^:].*)?$",
    "pointer": rb"\s*+(?:[\w:]++\s*+)*?[*^&]++\s*+(?:const\s++|volatile\s++|_Nullable\s++|_Nonnull\s++)*+(?P<name>[A-Za-z_]\w*+)",
    "type word": rb"(?<![\w.@$])(@interface|class|struct|union|enum|interface|record|namespace|extension|mixin|trait|module)\b\s*+(?![,>=)])",
    "type name": rb"(?:(?:class|struct)\b\s*+)?(?:(?:alignas|__attribute__|__declspec)\s*+|\[\[[^\]]*+\]\]\s*+|[A-Z][A-Z0-9_]*+\s++(?=[A-Za-z_]))*+"
    rb"(?P<name>[A-Za-z_$\x80-\xff][\w$\x80-\xff.]*+(?:\s*+::\s*+\w++)*+)",
    "enum item": rb"(?:[\s,]|@[\w.]++(?:\s*+\([^()]*+\))?|\[[^\[\]]*+\])*+(?P<name>[A-Za-z_$\x80-\xff][\w$\x80-\xff]*+)",
    "after parameters": rb"\s*+([\w\x80-\xff]++)",
    "component": rb"([A-Za-z_$\x80-\xff][\w$\x80-\xff]*+)\s*+(?:=[^,()]*+)?(?=[,)])",
    "directive": rb"\n[ \t]*+#[^\n]*+(?:(?<=\\)\n[^\n]*+|(?<=\\\r)\n[^\n]*+)*+",
    "define": rb"\n[ \t]*+#[ \t]*+define[ \t]++([A-Za-z_]\w*+)",
    "condition": rb"\n[ \t]*+#[ \t]*+(if|elif|else|endif)",
}
_NOT_NAMES = frozenset(
    b"if for while switch return catch sizeof alignof alignas __attribute__ __declspec decltype noexcept throw requires"
    b" explicit _Alignas asm __asm__ static_assert _Static_assert typeof __typeof__ new when lock case assert do else"
    b" using try synchronized super this await yield foreach fixed checked unchecked default delete void int char bool"
    b" float double long short unsigned signed const static extern auto in is as where base throws".split()
)
_ATTRIBUTES = frozenset(b"__attribute__ __declspec alignas _Alignas decltype noexcept throw typeof __typeof__ requires explicit".split())
_AFTER = frozenset(
    b"const noexcept override final throw throws volatile try requires where default async sync mutable restrict"
    b" __attribute__ abstract external native on NOEXCEPT".split()
)
_NO_FIELD = frozenset(
    b"import package using return goto friend export part library throw delete break continue yield await module if"
    b" else case default do while for requires exports opens provides uses".split()
)


def _walk_headers(cleaned: bytes, language: str) -> list[_Mark]:
    text = _opaque(cleaned, language)
    macros: list[_Mark] = []
    if language in ("c", "cpp", "csharp"):
        text = _without_directives(text, macros)
    walk = _Headed(text, language)
    walk.found = macros
    return walk.walk()


def _without_directives(text: bytes, macros: list[_Mark]) -> bytes:
    """The text without preprocessor lines, and without branches that would unbalance its braces."""
    parts: list[bytes] = []
    at = 0
    open_branches: list[tuple[int, bool]] = []  # where the part before an #else begins in parts; whether to drop others
    drop = 0
    for match in _pattern("directive").finditer(text):
        line = match[0]
        before = text[at : match.start()]
        parts.append(before.translate(_BLANK) if drop else before)
        parts.append(line.translate(_BLANK))
        at = match.end()
        if name := _pattern("define").match(line):
            start = match.start() + name.start(1)
            macros.append(_Mark(start, start + len(name[1]), "macro", b"", match.start() + 1, match.end()))
        condition = _pattern("condition").match(line)
        if condition is None:
            continue
        word = condition[1]
        if word == b"if":
            open_branches.append((len(parts), False))
        elif open_branches and word == b"endif":
            if open_branches.pop()[1]:
                drop -= 1
        elif open_branches:
            begin, dropped = open_branches[-1]
            if not dropped:
                branch = b"".join(parts[begin:]) if len(parts) - begin < 400 else b""
                if branch.count(b"{") != branch.count(b"}"):
                    open_branches[-1] = (begin, True)
                    drop += 1
                else:
                    open_branches[-1] = (len(parts), False)
    parts.append(text[at:])
    return b"".join(parts)


class _Item:
    """What has been read of one declaration."""

    __slots__ = ("head", "kind", "listed", "name", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.head = start  # where the words of its header begin, behind annotations
        self.name: tuple[int, int, bytes] | None = None  # of a function, once its parameters were seen
        self.listed = False  # whether further names may follow behind commas
        self.kind = ""


class _Headed(_Braces):
    """Walks a language in which the words before a bracket tell what is defined. Bodies of functions are skipped."""

    __slots__ = ("item", "language", "names")

    def __init__(self, text: bytes, language: str) -> None:
        super().__init__(text, _TYPE)
        self.language = language
        self.item = _Item(0)
        self.names: list[bytes] = [b""]  # of the types around

    def walk(self) -> list[_Mark]:
        text = self.text
        search = _pattern("terminator").search
        at = 0
        while at < len(text):
            if self.stack[-1].mode == _ENUM:
                at = self.constant(at)
                continue
            match = search(text, at)
            if match is None:
                break
            place, at = match.start(), match.end()
            if at - place == 2:
                continue
            byte = text[place]
            if byte == 40:
                at = self.parenthesis(place)
            elif byte == 123:
                at = self.brace(place)
            elif byte == 125:
                at = self.close_block(place)
            elif byte == 59:
                self.statement(place)
                self.item = _Item(at)
            elif byte == 61:
                at = self.equals(place)
            elif byte == 44:
                self.comma(place)
            elif byte == 91:
                at = self.close(place)
                if not text[self.item.head : place].strip():
                    self.item.head = at
            elif byte == 58:
                self.label(place)
        return self.found

    def header(self, place: int) -> bytes:
        return self.text[max(self.item.head, place - 400) : place]

    def parenthesis(self, place: int) -> int:
        item = self.item
        close = self.close(place)
        header = self.header(place)
        if item.name is not None or _is_in_angles(header):
            return close
        text = self.text
        ident = _pattern("last name").search(header)
        native = self.language in ("c", "cpp")
        if native and (pointer := _pattern("pointer").match(text, place + 1, close)) and header.strip():
            after = text[close : close + 80].lstrip()[:1]
            if after == b"(":
                item.kind = "type" if b"typedef" in header.split() else "variable"
                item.name = (*pointer.span("name"), b"")
                return self.close(text.index(b"(", close))
        if ident is None:
            return close
        name = ident["name"]
        offset = place - len(header)
        words = header[: ident.start()].split()
        if text[offset + ident.start() - 1 : offset + ident.start()] == b"@" or header[: ident.start()].rstrip().endswith((b"@", b".")) and b"@" in header:
            item.head = close
            return close
        if name in _NOT_NAMES:
            if name not in _ATTRIBUTES and not words:
                item.head = close
            return close
        if words and words[-1] in (b"record", b"class", b"struct", b"interface", b"enum") and self.language not in ("c", "cpp"):
            return self.components(place, close, name)
        follow = _pattern("after parameters").match(text, close)
        next_byte = text[close : close + 200].lstrip()[:1]
        if not words and not ident["scope"]:
            own = name.lstrip(b"~").strip() == self.names[-1]
            if not own and (follow and follow[1] not in _AFTER or next_byte != b"{" or name.isupper()):
                if not (self.language == "dart" and next_byte in (b"{", b"=")) and not (self.language == "dart" and name.startswith(self.names[-1] + b".")):
                    item.head = close
                    return close
        elif words and words[-1] in (b"return", b"new", b"throw", b"else", b"case", b"await", b"yield", b"goto"):
            item.head = close
            return close
        elif native and follow and follow[1] not in _AFTER and name.isupper() and len(words) < 2 and next_byte != b"{":
            item.head = close
            return close
        item.name = (offset + ident.start("name"), offset + ident.end("name"), ident["scope"])
        item.kind = "type" if b"typedef" in words else "function"
        return close

    def components(self, place: int, close: int, name: bytes) -> int:
        """The fields of a record."""
        scope = _join(self.stack[-1].scope, name)
        if close - place < 5000:
            for match in _pattern("component").finditer(self.text, place, close):
                self.add(*match.span(1), "field", scope=scope)
        return close

    def brace(self, place: int) -> int:
        text = self.text
        item = self.item
        if item.name is not None:
            if self.language == "cpp" and self.is_initializer(place):
                return self.close(place)
            mark = self.record_name()
            mark.stop = at = self.close(place)
            self.item = _Item(at)
            return at
        header = _without_brackets(self.header(place))
        words = header.split()
        kind = None
        for kind in _pattern("type word").finditer(header):
            pass
        if kind is not None and b"=" not in header:
            return self.open_type(place, header, kind)
        if words and words[0] == b"extern" and words[-1].startswith(b'"'):
            self.push(_TYPE)
            self.names.append(b"")
            self.item = _Item(place + 1)
            return place + 1
        at = self.close(place)
        ident = _pattern("last name").search(self.header(place))
        if ident is not None and len(words) > 1 and ident["name"] not in _NOT_NAMES and words[0] not in _NO_FIELD and self.language in ("csharp", "cpp", "c"):
            offset = place - len(self.header(place))
            mark = self.add(offset + ident.start("name"), offset + ident.end("name"), "property" if self.language == "csharp" else "variable", self.begin())
            mark.stop = at
            if self.language == "csharp" and (more := _pattern("initializer").match(text, at)):
                at = self.hop(more.end(), b";}")
        self.item = _Item(at)
        return at

    def open_type(self, place: int, header: bytes, kind: re.Match[bytes]) -> int:
        """Into a class or the like."""
        word = kind[1].lstrip(b"@").decode()
        rest = header[kind.end() :]
        found = _pattern("type name").match(rest)
        name = found["name"].replace(b" ", b"") if found else b""
        if name in (b"final", b"on", b"extends", b"implements"):
            name = b""
        mark = None
        if name and word != "namespace" or name:
            last = name.rpartition(b"::")[2].rpartition(b".")[2] if word in ("namespace",) else name.rpartition(b"::")[2]
            begin = self.text.find(last, max(self.item.head, place - 400) if False else self.item.start, place)
            begin = self.find_word(last, place)
            mark = self.add(begin, begin + len(last), "enum" if word == "enum" else word if word != "module" else "module", self.begin())
            if word == "extension":
                self.found.pop()
        mode = _ENUM if word == "enum" else _TYPE
        scope = _join(self.stack[-1].scope, name.replace(b"::", b"."))
        self.push(mode, mark, scope if name else None)
        self.stack[-1].start = self.item.start if self.language in ("c", "cpp") and word in ("struct", "union", "enum", "class") else -1
        self.names.append(name.rpartition(b"::")[2])
        self.item = _Item(place + 1)
        return place + 1

    def find_word(self, word: bytes, place: int) -> int:
        """Where the name of a type stands in its header: the last of its kind before a base class is named."""
        low = max(self.item.start, place - 2000)
        for match in re.finditer(rb"(?:class|struct|union|enum|interface|record|namespace|extension|mixin|trait|module)\b[^;{}]*?(?<![\w.])(" + re.escape(word) + rb")(?!\w)", self.text[low:place]):
            return low + match.start(1)
        return max(low, self.text.rfind(word, low, place))

    def close_block(self, place: int) -> int:
        frame = self.stack[-1]
        self.pop(place + 1)
        if len(self.names) > 1:
            self.names.pop()
        self.item = _Item(place + 1)
        if frame.start >= 0:
            self.item.listed = True
            self.item.start = frame.start
            self.item.kind = "type" if self.text[frame.start : frame.start + 400].lstrip().startswith(b"typedef") else ""
        return place + 1

    def statement(self, place: int) -> None:
        item = self.item
        if item.name is not None:
            mark = self.record_name()
            mark.stop = place + 1
            return
        header = self.header(place)
        if item.listed:
            self.declare_more(place, header)
            return
        words = header.split()
        if len(words) < 2 or words[0] in _NO_FIELD:
            return
        if words[0] in (b"class", b"struct", b"union", b"enum", b"interface", b"namespace") and len(words) == 2:
            return  # announced, not defined
        cut = _pattern("bit field").search(header)
        if cut:
            header = header[: cut.start()]
        ident = _pattern("last name").search(header)
        if ident is None or ident["scope"] and False or ident["name"] in _NOT_NAMES or not header[: ident.start()].strip():
            return
        if words[0] == b"template" and words[-2] in (b"class", b"struct"):
            return
        offset = place - len(self.header(place))
        kind = "type" if words[0] == b"typedef" else self.variable_kind(words)
        mark = self.add(offset + ident.start("name"), offset + ident.end("name"), kind, self.begin())
        mark.stop = place + 1

    def declare_more(self, place: int, header: bytes) -> None:
        ident = _pattern("declarator").match(header)
        if ident is not None and ident["name"] not in _NOT_NAMES:
            offset = place - len(header)
            kind = self.item.kind or ("field" if self.stack[-1].scope else "variable")
            mark = self.add(offset + ident.start("name"), offset + ident.end("name"), kind, self.begin())
            mark.stop = place + 1

    def variable_kind(self, words: list[bytes]) -> str:
        constant = b"const" in words or b"constexpr" in words or b"final" in words and b"static" in words
        return "constant" if constant else "field" if self.stack[-1].scope else "variable"

    def equals(self, place: int) -> int:
        item = self.item
        header = self.header(place)
        if header.rstrip().endswith(b"operator") or header.endswith((b"operator=", b"operator!", b"operator<", b"operator>", b"operator+", b"operator-", b"operator*", b"operator/", b"operator|", b"operator&", b"operator^", b"operator%")):
            return place + 1
        if item.name is None and _is_in_angles(header):
            return place + 1
        if item.name is not None:
            mark = self.record_name()
            at = self.hop(place + 1, b";}")
            mark.stop = at + 1
            self.item = _Item(at + 1 if self.text[at : at + 1] == b";" else at)
            return self.item.start
        words = header.split()
        ident = (_pattern("declarator").match(header) if item.listed else None) or _pattern("last name").search(header)
        mark = None
        if ident is not None and (item.listed or header[: ident.start()].strip() or self.language == "dart") and words[0] not in _NO_FIELD | {b"using"} and ident["name"] not in _NOT_NAMES:
            offset = place - len(header)
            mark = self.add(offset + ident.start("name"), offset + ident.end("name"), item.kind or self.variable_kind(words), self.begin())
        elif words and words[0] == b"using" and len(words) == 2 and self.language == "cpp":
            begin = place - len(header) + header.rfind(words[1])
            mark = self.add(begin, begin + len(words[1]), "type", self.begin())
        at = self.hop(place + 1, b";,}")
        if mark is not None:
            mark.stop = at + 1 if self.text[at : at + 1] == b";" else at
        if self.text[at : at + 1] == b",":
            item.listed = True
            item.head = at + 1
            return at + 1
        if self.text[at : at + 1] == b";":
            self.item = _Item(at + 1)
            return at + 1
        return at

    def comma(self, place: int) -> None:
        item = self.item
        header = self.header(place)
        if item.name is not None or _is_in_angles(header):
            return
        words = header.split()
        if item.listed:
            self.declare_more(place, header)
        elif len(words) > 1 and words[0] not in _NO_FIELD and _pattern("type word").search(header) is None:
            ident = _pattern("last name").search(header)
            if ident is None or ident["name"] in _NOT_NAMES or not header[: ident.start()].strip():
                return
            offset = place - len(header)
            item.kind = "type" if words[0] == b"typedef" else ""
            mark = self.add(offset + ident.start("name"), offset + ident.end("name"), item.kind or self.variable_kind(words), self.begin())
            mark.stop = place
            item.listed = True
        else:
            return
        item.head = place + 1

    def label(self, place: int) -> None:
        if self.language == "cpp" and self.text[self.item.head : place].strip() in (
            b"public", b"private", b"protected", b"signals", b"Q_SIGNALS", b"public slots", b"private slots",
            b"protected slots", b"public Q_SLOTS", b"private Q_SLOTS",
        ):  # fmt: skip
            self.item = _Item(place + 1)

    def constant(self, at: int) -> int:
        """One constant of an enum."""
        text = self.text
        item = _pattern("enum item").match(text, at)
        stop = _pattern("enum end").search(text, item.end() if item else at)
        if item is not None and (stop is None or item.end() <= stop.start()):
            mark = self.add(*item.span("name"), "constant", item.start("name"))
            at = self.hop(item.end(), b",;}")
            mark.stop = mark.end + len(text[mark.end : at].rstrip())
        else:
            at = self.hop(at, b",;}")
        byte = text[at : at + 1]
        if byte == b"}":
            return self.close_block(at)
        if byte == b";":
            self.stack[-1].mode = _TYPE
            self.item = _Item(at + 1)
        return at + 1

    def record_name(self) -> _Mark:
        assert self.item.name is not None
        begin, end, qualifier = self.item.name
        outer = self.stack[-1].scope
        scope = _join(outer, _unqualified(qualifier)) if qualifier else outer
        kind = self.item.kind or "function"
        if kind == "function" and (qualifier or self.names[-1]) and scope:
            kind = "method" if qualifier or self.stack[-1].mark is None or self.stack[-1].mark.kind != "namespace" else "function"
        return self.add(begin, end, kind, self.begin(), scope)

    def begin(self) -> int:
        start = self.item.start
        match = _pattern("blanks").match(self.text, start)
        return match.end() if match else start

    def is_initializer(self, place: int) -> bool:
        """Whether this brace sets a member in the list before a constructor's body."""
        before = self.text[max(0, place - 60) : place].rstrip()
        if not before[-1:].isalnum() and before[-1:] not in (b"_", b">"):
            return False
        at = self.close(place)
        return self.text[at : at + 40].lstrip()[:1] in (b",", b"{")


def _unqualified(qualifier: bytes) -> bytes:
    bare = re.sub(rb"<[^<>]*+(?:<[^<>]*+>[^<>]*+)*+>|\s", b"", qualifier)
    return bare.strip(b":").replace(b"::", b".")


def _is_in_angles(header: bytes) -> bool:
    opened = header.count(b"<") - header.count(b"<<") * 2 - header.count(b"<=")
    return opened > header.count(b">") - header.count(b"->") - header.count(b"=>") and b"operator" not in header


def _without_brackets(header: bytes) -> bytes:
    """A header without type parameters and attributes, of the same length."""
    for pattern in (rb"<[^<>]*+>", rb"\([^()]*+\)"):
        for _ in range(5):
            bare = re.sub(pattern, lambda match: b" " * len(match[0]), header)
            if bare == header:
                break
            header = bare
    return header


_PATTERNS |= {
    "initializer": rb"\s*+=(?!=)",
    "bit field": rb"(?<!:):(?!:)",
    "enum end": rb"[,;}({=]",
}


# --- lines: Ruby, shell, SQL ... -----------------------------------------------------------------------------------

_RUBY_END = "end"
_LINES: dict[str, tuple[bytes, str]] = {
    # the patterns of definitions at the start of a line, and how a body ends: "end", "indent", "brace", "line"
    "ruby": (
        rb"\n([ \t]*+)(?:(?:private|protected|public|module_function|private_class_method|memoize|helper_method)[ \t]++)?(?:"
        rb"def[ \t]++(?:self\.|[\w:]++\.)?(?P<function>[\w\x80-\xff]++[?!=]?(?![\w.])|[-+*/%=<>!~^&|\[\]]++@?)"
        rb"|class[ \t]++(?P<class>[\w:]++)|class[ \t]*+<<[ \t]*+(?P<singleton>self)|module[ \t]++(?P<module>[\w:]++)"
        rb"|(?:attr_(?:accessor|reader|writer)|cattr_accessor|mattr_accessor|attribute|alias_method|define_method|delegate|scope|has_many|has_one|belongs_to)\b[ \t(]*+(?P<attrs>:\w[^\n]*+)"
        rb"|alias[ \t]++:?(?P<alias>[\w?!]++)"
        rb"|(?P<constant>[A-Z]\w*+)[ \t]*+(?:\|\|)?=(?![=~>]))",
        "end",
    ),
    "lua": (
        rb"\n([ \t]*+)(?:local[ \t]++)?(?:function[ \t]++(?P<function>[\w.:]++)|(?P<assigned>[A-Za-z_][\w.]*+)[ \t]*+=[ \t]*+(?:function\b)"
        rb"|(?P<variable>(?<=\n)[A-Za-z_][\w.]*+)[ \t]*+=(?!=)|(?<=\nlocal )(?P<local>[A-Za-z_]\w*+)[ \t]*+=(?!=))",
        "end",
    ),
    "elixir": (
        rb"\n([ \t]*+)(?:(?:defp?|defmacrop?|defguardp?|defdelegate)[ \t]++(?P<function>[a-z_]\w*+[?!]?)"
        rb"|defmodule[ \t]++(?P<class>[\w.]++)|defprotocol[ \t]++(?P<protocol>[\w.]++)|@(?:type|typep|opaque|callback)[ \t]++(?P<type>\w++)"
        rb"|@(?P<constant>(?!doc\b|moduledoc\b|spec\b|impl\b|type\b|callback\b|behaviour\b|typedoc\b)[a-z_]\w*+)[ \t]++[^\s|=,)])",
        "end",
    ),
    "perl": (
        rb"\n([ \t]*+)(?:sub[ \t]++(?P<function>\w++)|package[ \t]++(?P<module>[\w:]++)|our[ \t]++[$@%](?P<variable>\w++)"
        rb"|use[ \t]++constant[ \t]++(?P<constant>\w++)|(?<=\n)my[ \t]++[$@%](?P<local>\w++)[ \t]*+=(?![=~]))",
        "brace",
    ),
    "shell": (
        rb"\n([ \t]*+)(?:(?:function[ \t]++)(?P<function>[\w:.-]++)|(?P<plain>[\w:.-]++)[ \t]*+\([ \t]*+\)(?=[ \t]*+[\n{(])"
        rb"|(?:(?:export|readonly|declare|typeset)[ \t]++(?:-\w++[ \t]++)*+)?(?P<variable>[A-Za-z_]\w*+)(?:\[[^\]\n]*+\])?\+?=(?![=~])"
        rb"|alias[ \t]++(?P<alias>[\w.-]++)=)",
        "brace",
    ),
    "haskell": (
        rb"\n()(?:(?:data|newtype|class|type(?:[ \t]++family)?)[ \t]++(?:[^\n=]*?=>[ \t]*+)?(?P<type>[A-Z][\w']*+)|(?P<function>[a-z_][\w']*+)(?:[ \t]*+,[ \t]*+[\w']++)*+[ \t]*+(?:\n[ \t]++)?::"
        rb"|module[ \t]++(?P<module>[\w.]++))",
        "indent",
    ),
    "ocaml": (
        rb"\n([ \t]*+)(?:let[ \t]++(?:rec[ \t]++)?(?P<function>(?!_\b)[a-z_][\w']*+)|(?:and|type(?:[ \t]++nonrec)?)[ \t]++(?:'\w++[ \t]++|\([^()\n]*+\)[ \t]++)?(?P<type>[a-z_][\w']*+)"
        rb"|module[ \t]++(?:type[ \t]++)?(?P<module>[A-Z]\w*+)|val[ \t]++(?P<value>[a-z_][\w']*+)|exception[ \t]++(?P<exception>[A-Z]\w*+)|external[ \t]++(?P<external>\w++))",
        "indent",
    ),
    "nim": (
        rb"\n([ \t]*+)(?:(?:proc|func|method|iterator|template|macro|converter)[ \t]++(?P<function>`[^`\n]++`|\w++)"
        rb"|(?:const|let|var)[ \t]++(?P<variable>(?<=\n... )\w++|(?<=\n..... )\w++)|type[ \t]++(?P<type>\w++)|[ \t]++(?P<inner>[A-Z]\w*+)\*?[ \t]*+(?:\[[^\]\n]*+\])?[ \t]*+=[ \t]*+(?:ref|object|enum|distinct|tuple|ptr)\b)",
        "indent",
    ),
    "sql": (
        rb"(?i)\n([ \t]*+)create[ \t]++(?:or[ \t]++replace[ \t]++)?(?:(?:global|local|temp|temporary|unique|materialized|unlogged|external|clustered|nonclustered|recursive|virtual)[ \t]++)*+"
        rb"(?P<kind>table|view|function|procedure|index|trigger|type|schema|sequence|database|extension|role|policy|domain)[ \t]++(?:concurrently[ \t]++)?(?:if[ \t]++not[ \t]++exists[ \t]++)?"
        rb"(?:[\w\"`\[\]]++\.)*+[\"`\[]?(?P<sql>\w++)",
        "semicolon",
    ),
    "make": (
        rb"\n()(?:(?:export|override)[ \t]++)*+(?:(?P<variable>[A-Za-z_][\w.-]*+)[ \t]*+(?:[:?+!]?:?=)|define[ \t]++(?P<define>[\w.-]++)"
        rb"|(?P<targets>[A-Za-z0-9_%./$(){}-][^\n:=#]*?)[ \t]*+::?(?!=)(?!\s*+\w++[ \t]*+[:?]?=))",
        "recipe",
    ),
    "dockerfile": (
        rb"(?i)\n[ \t]*+()(?:(?:env|arg)[ \t]++(?P<variable>[A-Za-z_]\w*+)(?P<more>(?:[ \t]*+=[^\n]*+(?:(?<=\\)\n[^\n]*+)*+)?)|from[ \t]++[^\n]*?[ \t]as[ \t]++(?P<stage>[\w.-]++))",
        "line",
    ),
    "css": (rb"\n([ \t]*+)(?:(?P<variable>--[\w-]++|\$[\w-]++|@[\w-]++(?=[ \t]*+:))[ \t]*+:|@mixin[ \t]++(?P<mixin>[\w-]++)|(?P<rule>[.][\w-]++)(?=[^\n;:]*[,{\n]))", "line"),
}  # fmt: skip


def _walk_lines(cleaned: bytes, language: str) -> list[_Mark]:
    text = _opaque(cleaned, language)
    found: list[_Mark] = []
    scopes: list[tuple[int, bytes]] = []
    for match in _line_pattern(language).finditer(text):
        kind = match.lastgroup or ""
        indent = len(match[1].expandtabs(8))
        while scopes and indent <= scopes[-1][0]:
            scopes.pop()
        scope = scopes[-1][1] if scopes else b""
        start = match.end(1)
        if kind == "singleton":
            scopes.append((indent, scope))
            continue
        if kind == "sql":
            found.append(_Mark(*match.span("sql"), match["kind"].decode().lower(), scope, start))
        elif kind in ("attrs", "targets", "more"):
            if kind == "more":
                found.append(_Mark(*match.span("variable"), "variable", scope, start))
            begin, end = match.span(kind)
            for name in _pattern(f"{language} {kind}").finditer(text, begin, end):
                found.append(_Mark(*name.span(1), "target" if kind == "targets" else "variable" if kind == "more" else "field", scope, start))
        else:
            begin, end = match.span(kind)
            separators = (b"::",) if language == "ruby" else (b".", b":") if language == "lua" else ()
            for separator in separators:
                cut = text.rfind(separator, begin, end)
                if cut >= 0:
                    scope = _join(scope, text[begin:cut].replace(b"::", b".").replace(b":", b"."))
                    begin = cut + len(separator)
            if begin == end:
                continue
            label = {"class": "class", "assigned": "function", "plain": "function", "local": "variable", "inner": "type", "value": "function", "define": "variable", "external": "function"}.get(kind, kind)
            if language == "ruby" and label == "function" and scope:
                label = "method"
            found.append(_Mark(begin, end, label, scope, start))
            if kind in ("class", "module", "protocol") and language in ("ruby", "elixir"):
                scopes.append((indent, _join(scope, text[begin:end])))
    return found


@cache
def _line_pattern(language: str) -> re.Pattern[bytes]:
    return re.compile(_LINES[language][0])


def _end_lines(cleaned: bytes, language: str, marks: list[_Mark]) -> None:
    text = _opaque(cleaned, language)
    style = _LINES[language][1]
    pairs = _pairs(text) if style == "brace" else {}
    for mark in marks:
        line_end = text.find(b"\n", mark.end)
        mark.stop = line_end
        indent = mark.start - (text.rfind(b"\n", 0, mark.start) + 1)
        if mark.kind in ("field", "constant", "variable", "alias", "stage"):
            mark.stop = _statement_end(text, mark.end, pairs or {}, semicolons=False) if style in ("end", "brace") and mark.kind == "constant" else line_end
        elif style == "end":
            head = text[mark.begin : line_end]
            if _pattern("one line body").search(head) is None and (end := _block_end(indent).search(text, line_end - 1)):
                mark.stop = end.end()
        elif style == "brace":
            opened = _pattern("shell body").match(text, mark.end)
            if opened:
                mark.stop = pairs.get(opened.end() - 1, line_end - 1) + 1
        elif style == "indent":
            dedent = _dedent(indent).search(text, line_end)
            mark.stop = dedent.start() if dedent else len(text)
        elif style == "semicolon":
            end = text.find(b";", mark.end)
            mark.stop = end + 1 if end >= 0 else len(text)
        elif style == "recipe" and mark.kind == "target":
            recipe = _pattern("recipe").match(text, line_end)
            mark.stop = recipe.end() if recipe else line_end
        mark.stop = max(mark.end, mark.end + len(text[mark.end : mark.stop].rstrip()))


@cache
def _block_end(indent: int) -> re.Pattern[bytes]:
    return re.compile(rb"\n[ \t]{%d}end\b" % indent)


_PATTERNS |= {
    "ruby attrs": rb":(\w++[?!]?)",
    "make targets": rb"([^\s$()]++)(?=\s|$)",
    "dockerfile more": rb"(?<=\s)([A-Za-z_]\w*+)=",
    "one line body": rb";[ \t]*+end\b|\)[ \t]*+=[ \t]|,[ \t]*+do:",
    "shell body": rb"[^\n{};]*?\s*+[({](?<!\()",
    "recipe": rb"(?:\n(?:\t[^\n]*+|[ \t]*+(?=\n\t)))*+",
}


# --- keys: YAML, TOML ... -------------------------------------------------------------------------------------------

_KEYS: dict[str, bytes] = {
    "yaml": rb"\n((?:[ \t]|-[ \t])*+)(?P<key>[\w.$/@*<~+-][^\s:#\"'{}\[\],&!|>%]*+(?:[ ][\w./()-]++)*+|\"[^\"\n]++\"|'[^'\n]++')[ \t]*+:(?=\s)",
    "toml": rb"\n([ \t]*+)(?:\[\[?[ \t]*+(?P<table>[^\]\n]++)\]|(?P<key>(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')(?:[ \t]*+\.[ \t]*+(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+'))*+)[ \t]*+=)",
    "ini": rb"\n([ \t]*+)(?:\[(?P<table>[^\]\n]++)\]|(?P<key>[A-Za-z0-9_][\w.:-]*+(?:[ ][\w.-]++)*+)[ \t]*+[=:])",
    "env": rb"\n([ \t]*+)(?:export[ \t]++)?(?P<key>[A-Za-z_][\w.-]*+)[ \t]*+=",
    "properties": rb"\n([ \t]*+)(?P<key>(?:[^\s=:\\#!]|\\.)++)[ \t]*+[=:]",
}


def _walk_keys(cleaned: bytes, language: str) -> list[_Mark]:
    text = b"\n" + cleaned
    if language == "toml" and (b'"""' in text or b"'''" in text):
        lexis = _lexis("toml")
        assert lexis is not None
        text = _paint_tokens(text, lexis, lambda _: lambda match: match[0].translate(_BLANK) if b"\n" in match[0] else match[0])
    if language == "yaml" and (b"|" in text or b">" in text):
        text = _pattern("yaml block").sub(lambda match: match[1] + match[3].translate(_BLANK), text)
    found: list[_Mark] = []
    scopes: list[tuple[int, bytes]] = []
    table = b""
    for match in _key_pattern(language).finditer(text):
        kind = match.lastgroup or ""
        begin, end = match.span(kind)
        if kind == "table":
            table = b""
            table = _add_dotted(text, begin, end, table, found)
            continue
        if language == "yaml":
            indent = len(match[1].expandtabs(8))
            while scopes and indent <= scopes[-1][0]:
                scopes.pop()
            scope = scopes[-1][1] if scopes else b""
            if text[begin] in b"\"'":
                begin, end = begin + 1, end - 1
            found.append(_Mark(begin, end, "key", scope, begin))
            scopes.append((indent, _join(scope, text[begin:end])))
        elif language == "toml":
            _add_dotted(text, begin, end, table, found)
        else:
            found.append(_Mark(begin, end, "key", table, begin))
    return found


def _add_dotted(text: bytes, begin: int, end: int, scope: bytes, found: list[_Mark]) -> bytes:
    """Every part of `a."b".c`; the whole of it."""
    for match in _pattern("dotted").finditer(text, begin, end):
        group = match.lastindex or 1
        if match.start(group) == match.end(group):
            continue
        found.append(_Mark(*match.span(group), "key", scope, begin))
        scope = _join(scope, match[group])
    return scope


def _walk_json(cleaned: bytes, language: str) -> list[_Mark]:
    text = b"\n" + cleaned
    found: list[_Mark] = []
    scopes: list[bytes] = [b""]
    key = b""
    for match in _pattern("json").finditer(text):
        if match[1] is not None:
            key = match[1]
            found.append(_Mark(*match.span(1), "key", scopes[-1], match.start()))
        else:
            byte = text[match.start()]
            if byte in b"{[":
                scopes.append(_join(scopes[-1], key) if len(scopes) < 20 else scopes[-1])
                key = b""
            elif byte in b"}]" and len(scopes) > 1:
                scopes.pop()
                key = b""
    return found


@cache
def _key_pattern(language: str) -> re.Pattern[bytes]:
    return re.compile(_KEYS[language])


def _end_keys(cleaned: bytes, language: str, marks: list[_Mark]) -> None:
    text = b"\n" + cleaned + b"\n"
    for index, mark in enumerate(marks):
        stop = text.find(b"\n", mark.end)
        if language == "yaml":
            indent = mark.begin - (text.rfind(b"\n", 0, mark.begin) + 1)
            dedent = _dedent(indent).search(text, stop)
            stop = dedent.start() if dedent else len(text)
        elif index + 1 < len(marks) and language != "json":
            limit = text.rfind(b"\n", 0, marks[index + 1].begin)
            stop = max(stop, limit)
        mark.stop = max(mark.end, mark.end + len(text[mark.end:stop].rstrip()))


_PATTERNS |= {
    "dotted": rb"\"([^\"\n]*+)\"|'([^'\n]*+)'|([\w-]++)",
    "json": rb"\"([^\"\\\n]{1,200}+(?:\\.[^\"\\\n]*+)*+)\"(?=\s*+:)|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|[{}\[\]]",
    "yaml block": rb"(\n([ \t]*+)[^\n]*?(?::|-)[ \t]++(?:[&!][^\s]++[ \t]++)?[|>][-+0-9]*+[ \t]*+(?=\n))((?:\n(?:\2[ \t]++[^\n]*+|[ \t\r]*+(?=\n|\Z)))++)",
}

_Walk = Callable[[bytes, str], list[_Mark]]
_End = Callable[[bytes, str, list[_Mark]], None]
_WALKS: dict[str, _Walk] = {
    "python": _walk_python,
    **dict.fromkeys(("javascript", "typescript", "vue", "svelte", "html"), _walk_javascript),
    **dict.fromkeys(("rust", "kotlin", "swift", "scala", "php"), _walk_keywords),
    "go": _walk_go,
    **dict.fromkeys(("java", "csharp", "dart", "c", "cpp", "groovy"), _walk_headers),
    **dict.fromkeys(_LINES, _walk_lines),
    **dict.fromkeys(_KEYS, _walk_keys),
    "json": _walk_json,
}
_ENDS: dict[str, _End] = {
    "python": _end_python,
    **dict.fromkeys(("javascript", "typescript", "vue", "svelte", "html", "rust", "kotlin", "swift", "scala", "php", "go"), _end_braces),
    **dict.fromkeys(("java", "csharp", "dart", "c", "cpp", "groovy"), _end_braces),
    **dict.fromkeys(_LINES, _end_lines),
    **dict.fromkeys((*_KEYS, "json"), _end_keys),
}
