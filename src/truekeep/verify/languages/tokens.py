"""Patterns of comments and strings, and which of them each language has."""

from __future__ import annotations

import re
from typing import NamedTuple


class Token(NamedTuple):
    """A comment or a string: its pattern, and a single-line pattern for use after an unclosed multi-line token."""

    pattern: bytes
    single: bytes = b""


def _span(opens: bytes, closes: bytes, single: bytes) -> Token:
    """Return a token between two marks of two bytes each."""
    first, second = (re.escape(closes[at : at + 1]) for at in (0, 1))
    inner = rb"[^%b]*+(?:%b(?!%b)[^%b]*+)*+" % (first, first, second, first)
    return Token(re.escape(opens) + inner + rb"(?:%b%b|\Z)" % (first, second), single)


def _nesting(opens: bytes, closes: bytes) -> Token:
    """Return a token between two marks that may be nested."""
    head, tail = re.escape(opens), re.escape(closes)
    a, b, c, d = (re.escape(bytes((byte,))) for byte in opens + closes)
    plain = rb"[^%b%b]++|%b(?!%b)|%b(?!%b)" % (a, c, c, d, a, b)
    inner = rb"(?:%b|%b(?:%b)*+%b|%b)*+" % (plain, head, plain, tail, a)
    return Token(head + inner + rb"(?:%b|\Z)" % tail, head + rb"[^\n]*+")


def _string(mark: bytes, *, lines: bool = False, behind: bytes = b"") -> Token:
    """Return a string token with escapes. It ends with its line unless `lines` is set."""
    single = rb"%b%b[^%b\\\n]*+(?:\\(?:\r\n|.)?[^%b\\\n]*+)*+%b?" % (mark, behind, mark, mark, mark)
    if not lines:
        return Token(single)
    return Token(rb"%b%b[^%b\\]*+(?:\\.?[^%b\\]*+)*+(?:%b|\Z)" % (mark, behind, mark, mark, mark), single)


def _tripled(mark: bytes, *, raw: bool = False) -> Token:
    stops = mark if raw else mark + rb"\\"
    step = (b"" if raw else rb"\\.|") + rb"%b(?!%b%b)" % (mark, mark, mark)
    return Token(rb"%b[^%b]*+(?:(?:%b)[^%b]*+)*+(?:%b|\\?\Z)" % (mark * 3, stops, step, stops, mark * 3), mark * 3)


def _raw(prefix: bytes, hashes: int) -> bytes:
    """Return a raw string of Rust. It is found by its quote, because searching for a letter is slow."""
    fence = b"#" * hashes
    inner = rb'[^"]*+(?:"(?!%b)[^"]*+)*+' % fence if hashes else rb'[^"]*+'
    return rb'"(?<=\b%b%b")%b(?:"%b|\Z)' % (prefix, fence, inner, fence)


def _heredoc(opens: bytes, word: bytes) -> Token:
    head = opens + rb"[\"'`]?(?P<%b>" + word + rb")[\"'`]?[^\n]*+\n"
    closed = head.replace(b"%b", b"here") + rb"(?:(?s:.*?)\n)?\h*+(?P=here)(?!\w)"
    return Token(closed + b"|" + head.replace(b"%b", b"unclosed") + rb"(?s:.*)", opens)


def _statement(*strings: Token) -> bytes:
    """Return a pattern for a Python string on lines of its own."""
    return rb"\n\h*+[rRuU]?+(?:" + b"|".join(one.pattern for one in strings) + rb")(?=\h*+[\r\n#;])(?P<statement>)"


TEMPLATE = rb"[^`\\$]*+(?:(?:\\.|\$(?!\{)|\$\{[^{}`\"'/\\]*+\})[^`\\$]*+)*+(?:`|(?P<nested>\$\{)|\\?\Z)"
_PYTHON = (_tripled(b'"'), _tripled(b"'"), _string(b'"'), _string(b"'"))
TOKENS = {
    "//": Token(rb"//[^\n]*+"),
    "// no url": Token(rb"/(?<!:/)/[^\n]*+"),
    "// php": Token(rb"//[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "#": Token(rb"#[^\n]*+"),
    "# php": Token(rb"#(?!\[)[^\n?]*+(?:\?(?!>)[^\n?]*+)*+"),
    "# word": Token(rb"#(?<![^\s;|&()\[\]{},`]#)(?!\{)[^\n]*+"),
    "# blank": Token(rb"#(?<!\S#)[^\n]*+"),
    "# escape": Token(rb"#(?<!\\#)[^\n]*+"),
    "# line": Token(rb"\n\h*+[#;!][^\n]*+"),
    "--": Token(rb"--[^\n]*+"),
    "-- word": Token(rb"--(?<![!#$%&*+./<=>?@\\^|~:]--)-*+(?![!#$%&*+./<=>?@\\^|~:])[^\n]*+"),
    "/* */": _span(b"/*", b"*/", rb"/\*[^\n]*+"),
    "/* nesting */": _nesting(b"/*", b"*/"),
    "{- -}": _nesting(b"{-", b"-}"),
    "(* *)": _nesting(b"(*", b"*)"),
    "#[ ]#": _span(b"#[", b"]#", rb"#[^\n]*+"),
    "<!-- -->": Token(rb"<!--[^-]*+(?:-(?!->)[^-]*+)*+(?:-->|\Z)", b"<!--"),
    "--[[ ]]": Token(rb"--\[(?P<level>=*+)\[(?s:.*?)(?:\](?P=level)\]|\Z)", rb"--\[[^\n]*+"),
    "[[ ]]": Token(rb"\[(?P<long>=*+)\[(?s:.*?)(?:\](?P=long)\]|\Z)", rb"\[\["),
    "=begin": Token(rb"\n=begin\b(?s:.*?)(?:\n=end\b[^\n]*+|\Z)", rb"\n=begin"),
    "=pod": Token(rb"\n=[a-z]\w*+(?s:.*?)(?:\n=cut\b[^\n]*+|\Z)", rb"\n=[a-z]\w*+"),
    "__END__": Token(rb"\n__(?:END|DATA)__[ \t\r]*+\n(?s:.*)"),
    "@doc": Token(
        rb"@(?:module|type)?doc\h++(?:~[sS])?(?:" + _tripled(b'"').pattern + b"|" + _string(b'"').pattern + b")",
        rb"@(?:module|type)?doc\h++" + _string(b'"').pattern,
    ),
    "description": Token(_tripled(b'"').pattern + rb'|\n\h*+"[^"\n]*+"(?=[ \t\r]*+\n)', b'"""'),
    '"': _string(b'"'),
    "'": _string(b"'"),
    # An apostrophe inside a word is text between tags, or separates digits, and does not begin a string.
    "' no word": _string(
        b"'", behind=rb"(?:(?<!\w')|(?<=\breturn')|(?<=\bcase')|(?<=\btypeof')|(?<=\bin')|(?<=\bof'))"
    ),
    "' no digit": _string(b"'", behind=rb"(?<![0-9a-fA-F]')"),
    '" lines': _string(b'"', lines=True),
    "' lines": _string(b"'", lines=True),
    "' shell": Token(rb"'(?<!\w')[^']*+(?:'|\Z)", rb"'[^'\n]*+'?"),
    "' sql": Token(rb"'[^']*+(?:'|\Z)", rb"'[^'\n]*+'?"),
    "' char": Token(rb"'(?:[^'\\\n\x80-\xff]|[\x80-\xff]{2,4}|\\(?:u\{?\w{1,8}\}?|x\w\w|[0-7]{1,3}|[^\n]))'"),
    '" closed': Token(rb'"(?<!\\")[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*+"'),
    "' closed": Token(rb"'[^'\n]*+'"),
    '"""': _tripled(b'"'),
    "'''": _tripled(b"'"),
    '""" raw': _tripled(b'"', raw=True),
    "`": Token(rb"`[^`]*+(?:`|\Z)", b"`"),
    "` template": Token(b"`" + TEMPLATE, b"`"),
    "statement": Token(_statement(*_PYTHON), _statement(*_PYTHON[2:])),
    "/re/": Token(
        # A slash begins a regular expression where a value may come: after an operator, a bracket, some words.
        rb"/(?:(?<=[=(,:\[!&|?{;+*%~^\n-]/)|(?<=[=(,:\[!&|?{;+*%~^-] /)|(?<==> /)|(?<=[ \t\n]\h/)|(?<=\breturn /)"
        rb"|(?<=\bcase /)|(?<=\btypeof /)|(?<=\bin /)|(?<=\bof /)|(?<=\bwhen /)|(?<=\bif /)|(?<=\bunless /))"
        rb"(?![*/> \t=])[^\\/\[\n]*+(?:(?:\\[^\n]|\[(?:[^\]\\\n]|\\[^\n]){0,200}+\])[^\\/\[\n]*+)*+/[a-z]*+"
    ),
    "%r{}": Token(rb"%[rqQwWiI](?:\{[^{}\n]*+(?:\{[^{}\n]*+\}[^{}\n]*+)*+\}|\[[^\[\]\n]*+\]|\([^()\n]*+\))"),
    'r"': Token(
        b"|".join(_raw(prefix, hashes) for prefix in (b"r", b"br", b"cr") for hashes in range(4)),
        rb'"(?<=\br")[^"\n]*+"?',
    ),
    'R"(': Token(rb'"(?<=R")(?P<fence>[^\s()\\]{0,16}+)\((?s:.*?)(?:\)(?P=fence)"|\Z)', rb'"(?<=R")'),
    '@"': Token(rb'"(?:(?<=@")|(?<=@\$"))[^"]*+(?:""[^"]*+)*+(?:"|\Z)', rb'"(?<=@")[^"\n]*+"?'),
    "<<EOF": _heredoc(rb"<<(?<!<<<)(?!<)[-~]?\h*+", rb"[A-Za-z_]\w*+"),
    "<<~EOF": _heredoc(rb"<<(?<![<\w]<<)(?!<)[-~]?", rb"[A-Z_][A-Z0-9_]*+"),
    "<<<EOF": _heredoc(rb"<<<\h*+", rb"[A-Za-z_]\w*+"),
    "?>": Token(rb"\?>(?s:.*?)(?:<\?|\Z)"),
    "<?": Token(rb"\n(?<!.\n)[^<]*+(?:<(?!\?)[^<]*+)*+<\?"),
    "\\\\": Token(rb"\\\\[^\n]*+"),
    "\\.": Token(rb"\\[^\n]"),
    "?c": Token(rb"\?[#\"'](?=[\s,)\]])"),
}
# The comments and the strings of each language, in the order in which they are tried.
LEXES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
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
LEXES["typescript"] = LEXES["javascript"]
