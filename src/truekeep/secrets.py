"""Finds credentials in text, so that none is ever stored, indexed, served or logged.

One table names the published token formats of vendors, the usual containers (key blocks, URLs, headers) and the ways
people write a password down. Everything runs on RE2, whose time is linear whatever the text holds; when RE2 is missing
the import error goes to the caller, because text that nobody looked at must not be kept. Two large expressions, the
gates, read every text once; only when one of them stops are single rules compiled and tried, and then on three readings
of the text: as given, without hidden characters, and with long runs joined across a line break.

Nothing here reads files, asks a vendor whether a key is live, or holds a found value longer than it takes to judge it:
a `Secret` is a name and two offsets.
"""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Where a credential was found. Never holds the value."""

    rule: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One format. The value is the group of the pattern, if it has one, and else the whole match."""

    name: str
    pattern: str
    keywords: tuple[bytes, ...]
    """One of these is in the text, or the pattern need not be tried."""
    hook: str
    """What a gate looks for after a keyword."""
    judge: Judge
    word: bool = False
    """Whether the keywords stand at the beginning of a word."""
    joins: bool = False
    """Whether the format is distinctive enough to be looked for across line breaks."""
    talk: bool = False
    """Whether this is about how people write. Keywords are then lower-case, and the hook stands by itself."""


Judge = Callable[[bytes, bytes], bool]
"""Decides, from a value and the few bytes after it, whether a match is a credential or a look-alike."""


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Every credential in the text, in order, none overlapping another."""
    data, faithful = _encode(text)
    if faithful and _gate().search(data) is None and _talk_gate().search(data) is None:
        return ()
    spans = list(_iter_spans(text))
    shown = _fold(text) if not faithful or _veil_gate().search(data) is not None else _squeeze(text, ())
    if shown.text != text:
        spans += (
            (shown.origin(start), shown.origin(end - 1) + 1, order) for start, end, order in _iter_spans(shown.text)
        )
    joined = _join(shown.text)
    if joined.gaps:
        for start, end, order in _iter_joined_spans(joined):
            first, last = joined.origin(start), joined.origin(end - 1)
            spans.append((shown.origin(first), shown.origin(last) + 1, order))
    return tuple(Secret(rule=RULES[order].name, start=start, end=end) for start, end, order in _merge(spans))


def mask_secrets(text: str) -> str | None:
    """The text with every credential replaced by its rule's name, or None when it must be withheld.

    The masked text is searched again: what is left around a mask may itself be, or join up to, a credential that we
    cannot place, and then no part of the text is safe to show.
    """
    secrets = find_secrets(text)
    if not secrets:
        return text
    pieces: list[str] = []
    end = 0
    for secret in secrets:
        pieces += (text[end : secret.start], f"[secret: {secret.rule}]")
        end = secret.end
    masked = "".join(pieces) + text[end:]
    return None if find_secrets(masked) else masked


# --- Matching -------------------------------------------------------------------------------------------------------

Span = tuple[int, int, int]
"""Start, end, and the place of the rule in the table."""


def withhold(text: str) -> str:
    """A short text as it may be written down or shown: credentials masked, or nothing of it."""
    if not find_secrets(text):
        return text
    return mask_secrets(text) or "[withheld]"


def _encode(text: str) -> tuple[bytes, bool]:
    """UTF-8, because RE2 matches bytes and encoding once is far cheaper than letting every search do it.

    Lone surrogates have no UTF-8; each becomes one byte, which keeps offsets countable, and the flag says so.
    """
    try:
        return text.encode(), True
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace"), False


def _iter_spans(text: str, *, joined: bool = False) -> Iterator[Span]:
    data, _ = _encode(text)
    spans = sorted(_iter_byte_spans(data, joined=joined))
    if len(data) == len(text):
        yield from spans
        return
    starts = _char_offsets(data, (start for start, _, _ in spans))
    ends = _char_offsets(data, sorted(end for _, end, _ in spans))
    for start, end, order in spans:
        yield starts[start], ends[end], order


def _iter_byte_spans(data: bytes, *, joined: bool) -> Iterator[Span]:
    for order in _find_live(data, joined=joined):
        rule = RULES[order]
        pattern = _compiled(rule.pattern)
        search, judge, group = pattern.search, rule.judge, pattern.groups
        at = refused = 0
        while (match := search(data, at)) is not None:
            start, end = match.span(group)
            if rule.talk:
                end = _find_quote(data, start, end)
            if end - start > _JUDGED or judge(data[start:end], data[end : end + 8]):
                yield start, end, order
                at = end
            elif start < refused:
                at = end
            else:
                # A refused value may hold a real one, as in `secret: https://host/?token=…`. Going back over the same
                # place only once keeps `token=token=token=…` linear.
                at, refused = max(start, match.start() + 1), end


def _find_live(data: bytes, *, joined: bool) -> list[int]:
    """The rules that are worth trying, by their places in the table."""
    live = _find_live_formats(data)
    if joined:
        return sorted(order for order in live if RULES[order].joins)
    if _talk_gate().search(data) is not None:
        live |= _find_keywords(data.lower(), talk=True)
    return sorted(live)


def _find_live_formats(data: bytes) -> set[int]:
    search, starts = _gate().search, _keywords_by_first_byte()
    live: set[int] = set()
    at = 0
    for _ in range(32):
        stop = search(data, at)
        if stop is None:
            return live
        at = stop.start()
        live.update(order for keyword, order in starts.get(data[at], ()) if data.startswith(keyword, at))
        at += 1
    # So many stops are no longer cheaper than asking for every keyword once.
    return _find_keywords(data, talk=False)


def _find_keywords(data: bytes, *, talk: bool) -> set[int]:
    return {
        order
        for order, rule in enumerate(RULES)
        if rule.talk == talk and any(keyword in data for keyword in rule.keywords)
    }


@functools.cache
def _keywords_by_first_byte() -> dict[int, list[tuple[bytes, int]]]:
    found: dict[int, list[tuple[bytes, int]]] = {}
    for order, rule in enumerate(RULES):
        for keyword in () if rule.talk else rule.keywords:
            found.setdefault(keyword[0], []).append((keyword, order))
    return found


def _find_quote(data: bytes, start: int, end: int) -> int:
    """Where a value ends: at the closing quote if it stands in quotes, whatever signs come before that."""
    quote = data[start - 1 : start]
    close = data.find(quote, end, end + 256) if quote in _QUOTES else -1
    if close < 0 or _has(data[end:close], b" \t\r\n"):
        return end
    return close - data[end:close].endswith(b"\\")


_QUOTES = frozenset((b'"', b"'", b"`"))

_JUDGED = 512
"""The longest value that is judged, in bytes. Look-alikes are shorter; anything longer is taken."""


def _char_offsets(data: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """Character offsets of ascending byte offsets, counting every byte that is not a continuation byte."""
    found: dict[int, int] = {}
    at = count = 0
    for offset in offsets:
        count += len(data[at:offset].translate(None, _CONTINUATION))
        at = offset
        found[offset] = count
    return found


_CONTINUATION = bytes(range(0x80, 0xC0))


def _iter_joined_spans(joined: Squeezed) -> Iterator[Span]:
    """Tokens that only exist once a line break is taken out."""
    for start, end, order in _iter_spans(joined.text, joined=True):
        pattern = _compiled(RULES[order].pattern)
        # An open-ended pattern also swallows the first word of the next line. Give words back while the rest still is
        # a token by itself; the bound keeps a hostile text linear, and past it everything is taken.
        for _ in range(64):
            last = bisect_left(joined.gaps, end) - 1
            if last < 0 or (seam := joined.gaps[last]) <= start:
                break  # nothing joined is left: the token was found as it stands
            tail = joined.text[seam:end]
            if not _is_name(tail.encode()) or pattern.fullmatch(joined.text[start:seam].encode()) is None:
                yield start, end, order
                break
            end = seam
        else:
            yield start, end, order


def _merge(spans: list[Span]) -> list[Span]:
    """Overlapping spans become one, named by the rule that stands first in the table."""
    merged: list[Span] = []
    for start, end, order in sorted(spans):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(first[1], end), min(first[2], order))
        else:
            merged.append((start, end, order))
    return merged


@functools.cache
def _compiled(pattern: str) -> Any:
    import re2  # here, and not above: start-up time, and most runs never read an untrusted text

    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _compile_bytes(alternatives: Iterable[str]) -> Any:
    """For what reads every text: over bytes instead of characters, which takes a fraction of the states."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = 32 << 20  # a bound, not a use: with the default of 8 MiB a hostile text makes states be rebuilt
    return re2.compile("|".join(alternatives).encode("ascii"), options)


@functools.cache
def _gate() -> Any:
    """Finds where a format could begin, or a character that hides something."""
    formats = [rule for rule in RULES if not rule.talk]
    marks = [(keyword.decode(), rule) for rule in formats for keyword in rule.keywords]
    free = _render_tree((mark, rule.hook) for mark, rule in marks if not rule.word)
    bound = _render_tree((mark, rule.hook) for mark, rule in marks if rule.word)
    return _compile_bytes((free, rf"\b{bound}", *_iter_veils()))


@functools.cache
def _veil_gate() -> Any:
    """Finds only what hides something."""
    return _compile_bytes(_iter_veils())


@functools.cache
def _talk_gate() -> Any:
    """Finds where people may have written a value down.

    Apart from the other gate, because these expressions stay alive for half a sentence: together, RE2 would need a
    state for every pair of places and spend its time building them.
    """
    return _compile_bytes(dict.fromkeys(rule.hook for rule in RULES if rule.talk))


def _render_tree(endings: Iterable[tuple[str, str]]) -> str:
    """One expression for many keywords, sharing their beginnings, and each allowed to be broken by a line break."""
    branches: dict[str, list[tuple[str, str]]] = {}
    hooks: list[str] = []
    for keyword, hook in endings:
        if keyword:
            branches.setdefault(keyword[0], []).append((keyword[1:], hook))
        else:
            hooks.append(hook)
    hooks += (re.escape(first) + _SEAM + _render_tree(rest) for first, rest in sorted(branches.items()))
    return f"(?:{'|'.join(dict.fromkeys(hooks))})"


_SEAM = r"[\s>\\]*"


def _iter_veils() -> Iterator[str]:
    """Expressions over UTF-8 bytes for what `_fold` takes out, one for each run that differs in the last byte only."""
    yield r"\\_"
    for first, last in (*_HIDDEN, *_COMPATIBLE):
        for block in range(first >> 6, (last >> 6) + 1):
            low, high = (chr(c).encode() for c in (max(first, block << 6), min(last, (block << 6) + 63)))
            yield "".join(rf"\x{byte:02x}" for byte in low[:-1]) + rf"[\x{low[-1]:02x}-\x{high[-1]:02x}]"


# --- Other readings of the same text --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Squeezed:
    """A text with pieces taken out, and the way back to where each character stood."""

    text: str
    gaps: list[int]
    """Ascending places in `text` before which something was taken out."""
    removed: list[int]
    """How many characters were taken out up to and including each gap."""

    def origin(self, place: int) -> int:
        gap = bisect_right(self.gaps, place)
        return place + self.removed[gap - 1] if gap else place


def _squeeze(text: str, cuts: Iterable[tuple[int, int]]) -> Squeezed:
    pieces: list[str] = []
    gaps: list[int] = []
    removed: list[int] = []
    end = total = 0
    for start, stop in cuts:
        pieces.append(text[end:start])
        gaps.append(start - total)
        total += stop - start
        removed.append(total)
        end = stop
    pieces.append(text[end:])
    return Squeezed(text="".join(pieces), gaps=gaps, removed=removed)


_HIDDEN = (
    (0x00, 0x08),
    (0x0B, 0x0C),
    (0x0E, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x61C, 0x61C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Characters that show nothing, and so can stand inside a token without being seen."""

_COMPATIBLE = (
    (0x2074, 0x2079),
    (0x2080, 0x2089),
    (0x2460, 0x2468),
    (0x24B6, 0x24EA),
    (0xFF01, 0xFF5E),
    (0x1D400, 0x1D6A3),
    (0x1D7CE, 0x1D7FF),
    (0x1F130, 0x1F149),
)
"""Full-width, circled, raised and mathematical forms of ASCII, each of which NFKC turns into one character.

One for one, so that folding them moves no offset.
"""


@functools.cache
def _veils() -> tuple[re.Pattern[str], re.Pattern[str]]:
    def members(ranges: Iterable[tuple[int, int]]) -> str:
        return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)

    # Markdown writers escape underscores, so a backslash before one hides a prefix as well as any hidden character.
    hidden = rf"[{members(_HIDDEN)}\ud800-\udfff]+|\\(?=_)"
    return re.compile(hidden), re.compile(f"[{members(_COMPATIBLE)}]+")


def _fold(text: str) -> Squeezed:
    """The text as it looks to a reader: hidden characters out, look-alike forms of ASCII made plain."""
    hidden, compatible = _veils()
    if not text.isascii():
        import unicodedata

        text = compatible.sub(lambda run: unicodedata.normalize("NFKC", run[0]), text)
    return _squeeze(text, (cut.span() for cut in hidden.finditer(text)))


_RUN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:/+=~%$")
_LONG_RUN = 10


def _join(text: str) -> Squeezed:
    """The text without those line breaks that stand inside a long run of token characters."""
    return _squeeze(text, _iter_seams(text))


def _iter_seams(text: str) -> Iterator[tuple[int, int]]:
    at = -1
    while (at := text.find("\n", at + 1)) >= 0:
        left, right = at, at + 1
        while left and at - left < 10 and text[left - 1] in " \t\r\\":
            left -= 1
        while right - at < 10 and text[right : right + 1] in _INDENT:
            right += 1
        if text[left - 1 : left] not in _RUN or text[right : right + 1] not in _RUN:
            continue
        before, after = text[max(0, left - _LONG_RUN) : left], text[right : right + _LONG_RUN]
        if (len(before) == _LONG_RUN and _RUN.issuperset(before)) or (
            len(after) == _LONG_RUN and _RUN.issuperset(after)
        ):
            yield left, right
            at = right - 1


_INDENT = frozenset(" \t>")


# --- Judging --------------------------------------------------------------------------------------------------------

_DUMMY = (
    r"(?i)example|placeholder|redacted|dummy|sample|changeme|xxxxx|your[_-]|insert[_-]|replace[_-]"
    r"|12345678|abcdefgh|00000000|\.\.\.|\*\*\*|…|\[secret:"
)
_DUMMY_VALUE = (
    rf"{_DUMMY}|your.?(?:own|user|pass|api|key|token|secret)|xxxx|change.?me|redact|fake|replace.?me|(?:secret|token|key).?here"
    r"|[<>•]|\{\{|\}\}|\$\{|\$\(|%\(|\{%|getenv|environ|process\.env|import\.meta|secrets?\.|vault:|op://"
)

_WORD = r"(?:[a-z]{1,16}|[A-Z][a-z]{1,15}|[A-Z]{1,16}|[0-9]{1,4})"
_NAME = rf"(?:{_WORD}[^A-Za-z0-9]+)*{_WORD}?"
_LOOSE_WORD = (
    r"(?:v?[0-9]{1,5}|(?:[A-Z]{0,3}[a-z]{2,})+[A-Z]{0,3}[0-9]{0,4}[a-z]{0,2}|[A-Z]+[0-9]{0,4}|[a-z][0-9]{0,3})"
)
_LOOSE_NAME = rf"[./~]*(?:{_LOOSE_WORD}[^A-Za-z0-9]+)*{_LOOSE_WORD}?"
_REFERENCE = (
    r"[$%@&*!#:][A-Za-z_][A-Za-z_./-]*[%:]?|\$[A-Z_][A-Z0-9_]*|%[A-Z0-9_]+%|&[A-Za-z_][\w.]*|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
    r"|[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+|[a-z]+(?:[A-Z][a-z]+)*(?:Password|Passwd|Secret|Token)[0-9]?"
    r"|(?:https?|file|env|arn|refs?|kv|ssm|aws|gcp|azure|keychain|keyring|data|urn|git|ssh|s3|gs|docker|oci)[:/].*"
    r"|(?:sha|md|blake)[0-9][0-9a-z]*[-:=].*|[~./].*/.*|v?[0-9]+(?:\.[0-9A-Za-z-]+)+"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}.*|[\w.+-]+@[\w-]+\.[\w.]+"
    r"|.*\.(?:txt|json|ya?ml|toml|env|pem|key|crt|cer|pub|pyi?|tsx?|[mc]?js|jsx|go|rs|rb|java|kt|cs|c|h|cpp|php|sh|md"
    r"|rst|html|css|sql|ini|cfg|conf|csv|xml|lock|log|png|jpg|svg|com|org|net|io|dev|local|internal)"
)
_UUID = "(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_TECHNICAL_WORD = (
    r"(?:1password|argon2(?:id|i|d)?|base(?:16|32|58|64|64url)|bcrypt2?|pbkdf2|sha(?:1|224|256|384|512)|md5"
    r"|[hrpe]s(?:256|384|512)|ed25519|x25519|secp256k1|p256|oauth2?|utf(?:8|16)|x509|http2?|s3|ec2|k8s|ipv[46]"
    r"|v[0-9]+|[0-9]{1,5}[a-z]?|[a-z]{1,16}|log4j|fido2|webauthn2|u2f|2fa)"
)
_NO_PASSWORD = rf"{_REFERENCE}|{_UUID}|(?i:(?:{_TECHNICAL_WORD}[-_./:]+)*{_TECHNICAL_WORD}[-_./:]*)"
_NO_KEY = (
    rf"{_REFERENCE}|{_UUID}|{_LOOSE_NAME}|(?:[A-Z][a-z]{{2,}}[0-9]{{0,5}}){{2,}}"
    r"|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{1,15}|[0-9.,:_-]+"
)
_NO_URL_LOGIN = (
    r"(?i:(?:my|db|the|user|some|a)?[_-]?(?:pass|passw(?:or)?d|passphrase|pwd|pw|secret|token|key|credentials?|auth|pat"
    r"|api[_-]?key)|user(?:name)?|postgres|root|admin|guest|test|none|null|string|foo|bar|baz|abc|x-oauth-basic)"
    r"|[A-Z][A-Z_]*|[$%{].*|[*x._-]+"
)

_DIGITS = b"0123456789"
_SIGNS = b"!@#$%^*~?+"
_LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalpha())


def _is_name(value: bytes) -> bool:
    """Whether it reads as words joined by punctuation, such as `sk-learn-compatible`."""
    return _compiled(_NAME).fullmatch(value) is not None


def _is_dummy(value: bytes) -> bool:
    return len(set(value)) < 4 or _compiled(_DUMMY_VALUE).search(value) is not None


def _is_code(after: bytes) -> bool:
    """Whether what was taken for a value is the name of something called or looked into."""
    return after.startswith((b"(", b"["))


def _has(value: bytes, members: bytes) -> bool:
    return len(value.translate(None, members)) < len(value)


def _is_block(_value: bytes, _after: bytes) -> bool:
    return True


def _is_token(value: bytes, _after: bytes) -> bool:
    """For formats that name their vendor: anything but a dummy is taken."""
    return len(set(value[-12:])) > 3 and _compiled(_DUMMY).search(value) is None and not _is_name(value)


def _is_mixed_token(value: bytes, after: bytes) -> bool:
    """For a prefix that is also how code names a member: a digit must be in it."""
    return _has(value, _DIGITS) and _is_token(value, after)


def _is_credential(value: bytes, after: bytes) -> bool:
    """For what stands after "Bearer": a token of any make, but not the code that fetches one."""
    return not _is_code(after) and _compiled(_LOOSE_NAME).fullmatch(value) is None and _is_token(value, after)


def _is_key(value: bytes, after: bytes) -> bool:
    """For what stands after "token:" or "api_key =": random-looking, and not a name, path, digest or reference."""
    if len(value) < 10 or _is_code(after) or _compiled(_NO_KEY).fullmatch(value) is not None or _is_dummy(value):
        return False
    return _entropy(value) >= (2.8 if _has(value, _DIGITS) and _has(value, _LETTERS) else 3.8)


def _is_password(value: bytes, after: bytes) -> bool:
    """For what stands after "password:": letters with digits or signs among them; a mere word is talk about one."""
    return (value.isdigit() and len(value) >= 6 and not _is_dummy(value)) or _is_spoken_password(value, after)


def _is_spoken_password(value: bytes, after: bytes) -> bool:
    # A sign at the end may only close the sentence.
    if (
        len(value) < 6
        or not _has(value, _LETTERS)
        or not _has(value.rstrip(b"!?"), _DIGITS + _SIGNS)
        or _is_code(after)
    ):
        return False
    return _compiled(_NO_PASSWORD).fullmatch(value) is None and not _is_dummy(value)


def _is_url_password(value: bytes, after: bytes) -> bool:
    """For what stands between the colon and the @: any word could be one, except the words people put in examples."""
    # `docker://image:1.2@sha256:…` is a pinned image.
    if len(value) < 3 or after.startswith(b"@sha"):
        return False
    return _compiled(_NO_URL_LOGIN).fullmatch(value) is None and not _is_dummy(value)


def _entropy(value: bytes) -> float:
    """Shannon entropy, in bits for each byte."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())


# --- The table ------------------------------------------------------------------------------------------------------

_ALNUM = "[A-Za-z0-9]"
_URLSAFE = "[A-Za-z0-9_-]"
_BASE64 = "[A-Za-z0-9+/=]"
_HEX = "[0-9a-f]"
_UPPER = "[A-Z0-9]"
_UUID_BODY = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _token(name: str, prefixes: str, alphabet: str, least: int, *, word: bool = False) -> Rule:
    """A published prefix and at least so many characters after it.

    The prefix must begin a word only where it is short enough to end an ordinary one; elsewhere a letter put before it
    would be all it takes to hide a token.
    """
    starts = prefixes.split()
    lead = (r"\b" if word else "") + "(?:" + "|".join(re.escape(start) for start in starts) + ")"
    hook = _begun(alphabet, 8) if word else ""
    pattern = f"{lead}{alphabet}{{{least},}}"
    return Rule(name=name, pattern=pattern, keywords=_bytes(starts), hook=hook, judge=_is_token, word=word, joins=True)


def _begun(alphabet: str, least: int) -> str:
    """The first characters of a body, fewer if a line ends there."""
    return rf"(?:{alphabet}{{{least}}}|{alphabet}{{0,{least - 1}}}[ \t\\]*\r?\n)"


def _shape(
    name: str, keywords: str, pattern: str, *, hook: str = "", judge: Judge = _is_token, word: bool = False
) -> Rule:
    """A format that is more than a prefix."""
    marks = _bytes(keywords.split())
    return Rule(name=name, pattern=pattern, keywords=marks, hook=hook, judge=judge, word=word, joins=True)


def _block(name: str, keywords: str, pattern: str) -> Rule:
    """A format that runs over many lines, of which nothing needs judging."""
    return Rule(name=name, pattern=pattern, keywords=_bytes(keywords.split("  ")), hook="", judge=_is_block)


def _talk(name: str, keywords: str, pattern: str, *, hook: str, judge: Judge) -> Rule:
    """A value in the place where commands, headers and people put one."""
    return Rule(name=name, pattern=pattern, keywords=_bytes(keywords.split()), hook=hook, judge=judge, talk=True)


def _bytes(words: Iterable[str]) -> tuple[bytes, ...]:
    return tuple(word.encode() for word in words)


_KEY_WORD = (
    r"(?:secret|token|credentials?|(?:api|access|secret|private|auth|account|encryption|signing|master|service|admin|app"
    r"|application|consumer|shared|license|deploy|storage|session|client|webhook|subscription)[ _.-]?key)"
)
_LOGIN_WORD = r"(?:passw(?:or)?d|passwort|passphrase|passcode|pwd|[_.-](?:pass|pw))"
_STAGE = r"(?:[_.-]?(?:prod|production|staging|stage|dev|test|live|main|value|[0-9]{1,2}))?"
_GETS = (
    r"""["'`*_\\)\]]{0,4}(?:[ \t]\([^)\n]{0,30}\))?[ \t]{0,8}"""
    r"""(?::[ \t]{0,4}[A-Za-z]{2,12}(?:\[[A-Za-z]{2,12}\])?[ \t]{0,4}=|=>|->|:=|={1,3}|:|[ \t]\|[ \t]|>)"""
    r"""[*_]{0,3}[ \t]{0,8}["'`*_\\]{0,4}(?:[bru]["'])?"""
)
_PLAIN = r"""[^\s"'`,;<>()\[\]{}|\\]"""
_FIRST = r"""[^\s"'`,;<>()\[\]{}|\\:=]"""
_LAST = r"""[^\s"'`,;<>()\[\]{}|\\.:*]"""


_GIVEN = (
    r"(?i:auth|credential|key|pass|passcode|passphrase|passw(?:or)?d|passwort|pw|pwd|secret|token)[\w.-]*"
    r"""["'`*\\)\]]*(?:[ \t]\([^)\n]*\))?[ \t]*(?::[ \t]*[A-Za-z]+(?:\[[A-Za-z]+\])?[ \t]*=|-?[:=|>])[=>]*"""
    rf"""[ \t"'`*_\\]*(?:[bru]["'])?{_FIRST}{_PLAIN}{{5}}"""
)
_SPOKEN = (
    r"(?i:credential|key|passcode|passphrase|passwd|password|passwort|pwd|secret|token)"
    r"[^\n,;:.()]*[ \t](?:is|was|are|to|=)(?:[ \t]+(?:now|still|currently|set|to|just|simply))*[ \t]*:?[ \t]+"
    r"(?:\S*[0-9!@#$%^*~?+]|\S{20})"
)
_OPTION = r"--(?i:[a-z-]*(?:key|passphrase|passwd|password|secret|token))[ =]"


def _named(name: str, vendor: str, keywords: str, value: str) -> Rule:
    """A vendor without a prefix of its own: known only by the name its value is given to."""
    words = (
        rf"(?i:{vendor})[A-Za-z0-9_. -]{{0,24}}?(?i:key|token|secret|password|auth|credential)[A-Za-z_]{{0,10}}{_GETS}"
    )
    return _talk(name, keywords, rf"{words}({value})(?:[^A-Za-z0-9]|\z)", hook=_GIVEN, judge=_is_token)


def _written(name: str, words: str, keywords: str, gap: str, least: int, *, hook: str, judge: Judge) -> Rule:
    """A value that people wrote down beside the word for it."""
    pattern = f"(?i:{words}){gap}({_FIRST}{_PLAIN}{{{least - 2},}}{_LAST})"
    return _talk(name, keywords, pattern, hook=hook, judge=judge)


_SCHEME = r"""bearer|basic|authorization["']?[ \t]*[:=][ \t]*["']?(?:token|apikey|api-key|key)?"""
_SAID = (
    r"(?:[ \t]+[^\s,;:.()]{1,30}){0,6}?[ \t]+(?:is|was|are|to|=)"
    r"""(?:[ \t]+(?:now|still|currently|set|to|just|simply)){0,2}[ \t]*:?[ \t]+["'`*“‘«]{0,4}"""
)

RULES: tuple[Rule, ...] = (
    # Clouds
    _shape("aws-access-key-id", "AKIA ASIA ABIA ACCA", r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b"),
    _named("aws-secret-access-key", r"aws|amazon|secret_?access", "aws amazon access", "[A-Za-z0-9/+]{40}"),
    _named("aws-session-token", r"aws|amazon|session", "aws amazon session", "[A-Za-z0-9/+=]{100,}"),
    _token("aws-bedrock-key", "ABSK bedrock-api-key-", _BASE64, 80),
    _shape("aws-marketplace-token", "amzn.mws.", rf"amzn\.mws\.{_UUID_BODY}"),
    _shape("amazon-client-secret", "amzn1.oa2-cs.", rf"amzn1\.oa2-cs\.v1\.{_HEX}{{40,}}"),
    _token("gcp-api-key", "AIza", _URLSAFE, 35),
    _token("gcp-client-secret", "GOCSPX-", _URLSAFE, 24),
    _token("google-access-token", "ya29.", "[A-Za-z0-9_.-]", 20),
    _token("google-refresh-token", "1//0", _URLSAFE, 35, word=True),
    _block(
        "gcp-service-account-key",
        "private_key",
        r"""private_key\\?["'][ \t]*:[ \t\r\n]*\\?["'](-----BEGIN[^"']{40,})""",
    ),
    _shape("firebase-server-key", ":APA91b", rf"\bAAAA{_URLSAFE}{{7}}:APA91b{_URLSAFE}{{60,}}"),
    _shape("azure-storage-key", "AccountKey=", r"AccountKey=([A-Za-z0-9+/]{60,}={0,2})"),
    _shape("azure-shared-access-key", "SharedAccessKey=", r"SharedAccessKey=([A-Za-z0-9+/]{30,}={0,2})"),
    _shape("azure-sas-signature", "sig=", r"\bsig=([A-Za-z0-9%+/]{40,}(?:%3[dD]|=)?)", word=True),
    _shape("azure-client-secret", "Q~", r"\b([A-Za-z0-9_.~-]{3}[0-9]Q~[A-Za-z0-9_.~-]{31,34})"),
    _shape("azure-devops-token", "AZDO", rf"\b({_ALNUM}{{50,100}}AZDO{_ALNUM}{{4}})\b"),
    _shape(
        "azure-marked-key",
        "AzSe AzFu AzCa +ACR +ASt +AEh +ASb ACDb APIM",
        r"(?:^|[^A-Za-z0-9+/_-])([A-Za-z0-9+/_-]{32,90}(?:AzSe|AzFu|AzCa|\+ACR|\+ASt|\+AEh|\+ASb|ACDb|APIM)"
        r"[A-Za-z0-9+/_-]{4,8}={0,2})(?:[^A-Za-z0-9+/=_-]|\z)",
        hook="[A-Za-z0-9+/_-]{4}",
    ),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 60),
    _token("alibaba-access-key-id", "LTAI", _ALNUM, 16, word=True),
    _named("alibaba-secret", r"aliyun|alibaba|alicloud", "aliyun alibaba alicloud", "[A-Za-z0-9]{30}"),
    _token("tencent-secret-id", "AKID", _ALNUM, 32, word=True),
    _token("heroku-key", "HRKU-", _URLSAFE, 36),
    _named("heroku-legacy-key", "heroku", "heroku", _UUID_BODY),
    _named("scaleway-secret", r"scw|scaleway", "scw scaleway", _UUID_BODY),
    _token("netlify-token", "nfp_ nfc_ nfo_ nfu_", _ALNUM, 32, word=True),
    _token("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", _ALNUM, 24, word=True),
    _named("vercel-legacy-token", "vercel", "vercel", "[A-Za-z0-9]{24}"),
    _token("render-key", "rnd_", _ALNUM, 28, word=True),
    _token("fly-token", "fm1a_ fm1r_ fm2_ fo1_", "[A-Za-z0-9+/=_,-]", 40),
    _token("cloudflare-token", "cfk_ cfut_ cfat_", _ALNUM, 40, word=True),
    _named("cloudflare-legacy-token", r"cloudflare|\bcf", "cloudflare cf", "[A-Za-z0-9_-]{37,40}"),
    _shape(
        "cloudflare-origin-ca-key", "v1.0-", rf"\bv1\.0-{_HEX}{{24}}-{_HEX}{{100,}}", hook=_begun(_HEX, 8), word=True
    ),
    _named("fastly-token", "fastly", "fastly", "[A-Za-z0-9_-]{32}"),
    # Forges, registries and builds
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ALNUM, 36),
    _token("github-fine-grained-token", "github_pat_", "[A-Za-z0-9_]", 50),
    _token(
        "gitlab-token",
        "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt-",
        "[A-Za-z0-9_.-]",
        20,
    ),
    _token("gitlab-runner-registration", "GR1348941", _URLSAFE, 20),
    _token("bitbucket-app-password", "ATBB", _ALNUM, 24, word=True),
    _token("atlassian-token", "ATATT3 ATCTT3 ATSTT3", "[A-Za-z0-9_=-]", 60),
    _token("npm-token", "npm_", _ALNUM, 36, word=True),
    _shape(
        "npm-registry-auth",
        "_auth",
        r"_auth(?:Token)?[ \t]*=[ \t]*\"?([A-Za-z0-9+/=_-]{16,})",
        hook="(?:Token)?[ \t]*=",
        judge=_is_key,
    ),
    _token("pypi-token", "pypi-AgE", _URLSAFE, 50),
    _token("rubygems-key", "rubygems_", _HEX, 40),
    _shape("crates-token", "cio", rf"\bcio{_ALNUM}{{32}}\b", hook=_begun(_ALNUM, 8), word=True),
    _shape("nuget-key", "oy2", r"\boy2[a-z0-9]{43}\b", word=True),
    _token("clojars-token", "CLOJARS_", "[a-z0-9]", 50),
    _token("docker-token", "dckr_pat_ dckr_oat_", _URLSAFE, 24),
    _token("jfrog-key", "AKCp", _ALNUM, 60, word=True),
    _token("circleci-token", "CCIPAT_ CCIPRJ_", "[A-Za-z0-9_]", 40),
    _token("buildkite-token", "bkua_", _HEX, 36),
    _token("pulumi-token", "pul-", _HEX, 40, word=True),
    _shape("terraform-token", ".atlasv1.", rf"\b{_ALNUM}{{14}}\.atlasv1\.{_URLSAFE}{{60,}}"),
    _token("infracost-key", "ico-", _ALNUM, 30, word=True),
    _token("sourcegraph-token", "sgp_ slk_", "[A-Za-z0-9_]", 40, word=True),
    _token("snyk-token", "snyk_uat. snyk_sat.", "[A-Za-z0-9_.-]", 20),
    _named("snyk-legacy-token", "snyk", "snyk", _UUID_BODY),
    _token("prefect-key", "pnu_ pnb_", _ALNUM, 36, word=True),
    _shape(
        "harness-token",
        "pat. sat.",
        rf"\b[ps]at\.{_URLSAFE}{{22}}\.{_HEX}{{24}}\.{_ALNUM}{{20}}",
        hook=_begun(_URLSAFE, 8),
        word=True,
    ),
    # Models
    _token("anthropic-key", "sk-ant-", _URLSAFE, 24),
    _token("openrouter-key", "sk-or-v1-", _HEX, 40),
    _token("langfuse-key", "sk-lf-", "[0-9a-f-]", 36),
    _token("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _URLSAFE, 20),
    _shape("openai-legacy-key", "T3BlbkFJ", rf"sk-{_URLSAFE}{{12,}}T3BlbkFJ{_URLSAFE}{{12,}}"),
    _token("sk-key", "sk-", _ALNUM, 32, word=True),
    _token("huggingface-token", "hf_ api_org_", _ALNUM, 30, word=True),
    _token("groq-key", "gsk_", _ALNUM, 40, word=True),
    _token("replicate-token", "r8_", _ALNUM, 30, word=True),
    _token("perplexity-key", "pplx-", _ALNUM, 32),
    _token("xai-key", "xai-", _ALNUM, 40, word=True),
    _token("fireworks-key", "fw_", _ALNUM, 22, word=True),
    _token("nvidia-key", "nvapi-", _URLSAFE, 40),
    _token("cerebras-key", "csk-", _ALNUM, 32, word=True),
    _token("pinecone-key", "pcsk_", "[A-Za-z0-9_]", 40),
    _token("voyage-key", "pa-", _URLSAFE, 43, word=True),
    _token("together-key", "tgp_v1_", _URLSAFE, 30),
    _token("tavily-key", "tvly-", _URLSAFE, 24, word=True),
    _token("jina-key", "jina_", _URLSAFE, 50, word=True),
    _token("firecrawl-key", "fc-", _HEX, 32, word=True),
    _token("e2b-key", "e2b_", _HEX, 40, word=True),
    _token("elevenlabs-key", "sk_", _HEX, 48, word=True),
    _token("cursor-key", "key_", _HEX, 64, word=True),
    _token("langsmith-key", "lsv2_pt_ lsv2_sk_", "[0-9a-f_]", 40),
    _named("mistral-key", "mistral", "mistral", "[A-Za-z0-9]{32}"),
    _named("cohere-key", r"cohere|\bco", "cohere co", "[A-Za-z0-9]{40}"),
    _named("deepgram-key", "deepgram", "deepgram", "[0-9a-f]{40}"),
    _named("wandb-key", r"wandb|weights", "wandb weights", "[0-9a-f]{40}"),
    # Talk and mail
    _shape(
        "slack-token",
        "xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs-",
        r"(?:xoxe\.)?xox[abcdeoprs]-[A-Za-z0-9%/+=-]{10,}",
    ),
    _token("slack-app-token", "xapp-", "[A-Za-z0-9-]", 20),
    _shape(
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{20,})",
    ),
    _shape(
        "discord-token",
        ".",
        rf"\b([MNO]{_URLSAFE}{{22,27}}\.{_URLSAFE}{{6}}\.{_URLSAFE}{{27,}})",
        hook=rf"{_URLSAFE}{{6}}\.{_begun(_URLSAFE, 20)}",
    ),
    _token("discord-mfa-token", "mfa.", _URLSAFE, 60, word=True),
    _shape(
        "discord-webhook",
        "discord.com/api/ discordapp.com/api/",
        rf"discord(?:app)?\.com/api/(?:v[0-9]+/)?webhooks/[0-9]{{15,20}}/({_URLSAFE}{{40,}})",
    ),
    _shape(
        "teams-webhook",
        "webhook.office.com/",
        rf"webhook\.office\.com/webhookb2/([0-9a-f@-]{{60,}}/IncomingWebhook/{_HEX}{{32}}/[0-9a-f-]{{36}})",
    ),
    _shape("telegram-token", ":AA", rf"\b[0-9]{{8,10}}:AA{_URLSAFE}{{32,}}", hook=_URLSAFE),
    _shape("twilio-key", "SK", rf"\bSK{_HEX}{{32}}\b", hook=f"{_HEX}{{3}}", word=True),
    _talk(
        "twilio-auth-token",
        "ac",
        rf"\bAC{_HEX}{{32}}\b[\s\S]{{1,60}}?\b({_HEX}{{32}})\b",
        hook=rf"\bAC{_HEX}{{8}}",
        judge=_is_token,
    ),
    _shape(
        "sendgrid-key",
        "SG.",
        rf"\bSG\.{_URLSAFE}{{16,}}\.{_URLSAFE}{{32,}}",
        hook=_begun(_URLSAFE, 8),
        word=True,
    ),
    _shape("mailgun-key", "key-", rf"\b(?:pub)?key-{_HEX}{{32}}\b", hook=_begun(_HEX, 8)),
    _shape(
        "mailgun-signing-key", "-", rf"\b{_HEX}{{32}}-{_HEX}{{8}}-{_HEX}{{8}}\b", hook=rf"{_HEX}{{8}}-{_HEX}{{8}}\b"
    ),
    _shape("mailchimp-key", "-us", rf"\b{_HEX}{{32}}-us[0-9]{{1,2}}\b", hook="[0-9]"),
    _shape("brevo-key", "xkeysib- xsmtpsib-", rf"x(?:key|smtp)sib-{_HEX}{{60,}}-{_ALNUM}{{12,}}"),
    _shape(
        "resend-key",
        "re_",
        rf"\bre_{_ALNUM}{{6,12}}_{_ALNUM}{{18,}}",
        hook=rf"{_ALNUM}*(?:_{_ALNUM}{{8}}|_?{_ALNUM}*\r?\n)",
        word=True,
    ),
    # Work
    _token("linear-key", "lin_api_ lin_oauth_ lin_wh_", _ALNUM, 30),
    _token("notion-token", "secret_ ntn_", _ALNUM, 40, word=True),
    _token("figma-token", "figd_ figdr_ figu_ figur_", _URLSAFE, 36, word=True),
    _shape(
        "airtable-token",
        "pat",
        rf"\bpat{_ALNUM}{{14}}\.{_HEX}{{60,}}",
        hook=rf"(?:{_ALNUM}{{14}}\.|{_ALNUM}{{0,14}}[ \t\\]*\r?\n)",
        word=True,
    ),
    _shape("asana-token", "/", r"\b[0-9]/[0-9]{12,20}(?:/[0-9]{12,20})?:[0-9a-f]{32}\b", hook=r"[0-9]{12}"),
    _token("postman-key", "PMAK-", "[0-9a-f-]", 50),
    _token("typeform-token", "tfp_", "[A-Za-z0-9_.=-]", 40, word=True),
    _token("readme-key", "rdme_", "[a-z0-9]", 60),
    _token("contentful-token", "CFPAT-", _URLSAFE, 40),
    _shape("hubspot-token", "pat-", rf"\bpat-[a-z]{{2}}[0-9]-{_UUID_BODY}", hook="[a-z]{2}[0-9]", word=True),
    _token("dropbox-token", "sl.", "[A-Za-z0-9_.-]", 100, word=True),
    _token("frameio-token", "fio-u-", _URLSAFE, 50),
    _token("onepassword-service-token", "ops_eyJ", _URLSAFE, 60),
    _shape(
        "onepassword-secret-key",
        "A3-",
        r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}\b",
        word=True,
    ),
    _named("algolia-key", "algolia", "algolia", "[0-9a-f]{32}"),
    # Watching
    _shape(
        "new-relic-key",
        "NRAK- NRJS- NRII- NRAA- NRAL",
        rf"\bNR(?:AK|JS|II|AA)-[A-Za-z0-9_-]{{19,}}|\b{_HEX}{{30,40}}NRAL\b",
    ),
    _named("datadog-key", r"datadog|\bdd", "datadog dd", "[0-9a-f]{40}|[0-9a-f]{32}"),
    _token("grafana-token", "glc_ glsa_", "[A-Za-z0-9+/=_]", 32, word=True),
    _token("grafana-legacy-key", "eyJrIjoi", _BASE64, 60),
    _token("sentry-token", "sntrys_ sntryu_", "[A-Za-z0-9+/=_]", 40),
    _token("posthog-key", "phx_", _ALNUM, 40, word=True),
    _token("honeycomb-key", "hcaik_ hcxik_ hcamk_", _ALNUM, 40),
    _shape("dynatrace-token", "dt0", r"\bdt0[a-z][0-9]{2}\.[A-Z0-9]{20,}\.[A-Z0-9]{50,}", hook="[a-z][0-9]", word=True),
    _shape("axiom-token", "xaat- xapt-", rf"\bxa(?:at|pt)-{_UUID_BODY}", word=True),
    _shape("launchdarkly-key", "sdk-", rf"\bsdk-{_UUID_BODY}", hook=_begun(_HEX, 8), word=True),
    # Stores of data and of secrets
    _token("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "[A-Za-z0-9_.=-]", 32),
    _token("supabase-token", "sbp_ sb_secret_", _URLSAFE, 20, word=True),
    _token("neon-key", "napi_", "[a-z0-9]", 50, word=True),
    _token("mongodb-atlas-secret", "mdb_sa_sk_", _URLSAFE, 30),
    _token("databricks-token", "dapi", _HEX, 32, word=True),
    _shape(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        rf"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{{2,35}}\.)?{_ALNUM}{{40,}}",
        word=True,
    ),
    _token("vault-token", "hvs. hvb. hvr.", _URLSAFE, 24, word=True),
    _shape(
        "vault-legacy-token",
        "s.",
        r"(?:^|[^\w.)\]])(s\.[A-Za-z0-9]{24})(?:[^\w.(]|\z)",
        hook=_begun(_ALNUM, 24),
        judge=_is_mixed_token,
        word=True,
    ),
    _token("age-key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", _UPPER, 50),
    _shape("maxmind-key", "_mmk", rf"\b{_ALNUM}{{6}}_{_ALNUM}{{29}}_mmk\b"),
    _token("openshift-token", "sha256~", _URLSAFE, 40),
    _shape("okta-token", "SSWS", rf"\bSSWS[ \t]+({_URLSAFE}{{40,}})"),
    _shape("tailscale-key", "tskey-", r"tskey-[a-z]{2,12}-[A-Za-z0-9]{8,}(?:-[A-Za-z0-9]{12,})?"),
    _token("adafruit-key", "aio_", _ALNUM, 28, word=True),
    # Money and shops
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _ALNUM, 16),
    _token("webhook-secret", "whsec_", _BASE64, 24),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_", "[0-9a-fA-F]", 32),
    _token("square-token", "sq0atp- sq0csp-", _URLSAFE, 22),
    _token("square-access-token", "EAAA", _URLSAFE, 56, word=True),
    _token("facebook-token", "EAA", _ALNUM, 80, word=True),
    _shape(
        "braintree-token",
        "access_token$",
        rf"access_token\$(?:production|sandbox)\$[a-z0-9]{{16}}\${_HEX}{{32}}",
    ),
    _named("paypal-secret", "paypal", "paypal", "[A-Za-z0-9_-]{70,90}"),
    _shape(
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        rf"\baccess-(?:sandbox|development|production)-{_UUID_BODY}",
    ),
    _named("plaid-secret", "plaid", "plaid", "[0-9a-f]{30}"),
    _token("flutterwave-key", "FLWSECK- FLWSECK_TEST-", "[A-Za-z0-9-]", 20),
    _token("duffel-token", "duffel_test_ duffel_live_", _URLSAFE, 40),
    _token("easypost-key", "EZAK EZTK", _ALNUM, 54, word=True),
    _token("shippo-token", "shippo_live_ shippo_test_", _HEX, 40),
    _token("inngest-signing-key", "signkey-prod- signkey-test-", _HEX, 32),
    _shape("mapbox-secret-token", "sk.eyJ", rf"\bsk\.eyJ{_URLSAFE}{{20,}}\.{_URLSAFE}{{20,}}", word=True),
    # Containers
    _shape("jwt", "eyJ", rf"\beyJ{_URLSAFE}{{8,}}\.eyJ{_URLSAFE}{{8,}}(?:\.{_URLSAFE}*)?", word=True),
    _block(
        "private-key",
        "PRIVATE KEY-----  PRIVATE KEY BLOCK-----",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"""(?:\s|\\[rnt]|[>"'+,|*#/\\]|[A-Z][A-Za-z-]{2,20}: [^\n]*\n)*[A-Za-z0-9+/=]{16}[\s\S]*?"""
        r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    _block(
        "private-key-body",
        "IBAAKCA  b3BlbnNzaC1rZXktdjE",
        r"(?:MII[A-Za-z0-9+/]{2,4}IBAAKCA|b3BlbnNzaC1rZXktdjE)[A-Za-z0-9+/]{20,}={0,2}"
        r"(?:(?:\\n|\s){1,4}[A-Za-z0-9+/]{20,}={0,2})*(?:(?:\\n|\s){1,4}[A-Za-z0-9+/]{1,19}={1,2})?",
    ),
    _block(
        "putty-key",
        "Private-Lines:",
        r"Private-Lines: ?[0-9]+\s+[A-Za-z0-9+/=]{16}[\s\S]*?(?:Private-MAC: ?[0-9a-f]+|\z)",
    ),
    _talk(
        "url-password",
        "://",
        r"""\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/?#:@"'<>`]{0,100}:([^\s/?#"'<>`,]+)@[A-Za-z0-9\[_.$%{-]""",
        hook=r"""://[^\s/?#:@"'<>`]*:[^\s/?#"'<>`,]+@""",
        judge=_is_url_password,
    ),
    _talk(
        "authorization-header",
        "bearer basic authorization",
        rf"\b(?i:{_SCHEME})[ \t]+([A-Za-z0-9._~+/=-]{{16,}})",
        hook=rf"\b(?i:{_SCHEME})[ \t]+[A-Za-z0-9._~+/=-]{{16}}",
        judge=_is_credential,
    ),
    _talk(
        "netrc-password",
        "machine",
        rf"(?i:\bmachine\s+\S+\s+login\s+\S+\s+password\s+)({_PLAIN}{{4,}})",
        hook=r"(?i:\bmachine\s+\S+\s+login\s)",
        judge=_is_url_password,
    ),
    _talk(
        "command-password",
        "-u --user sshpass",
        rf"""(?:\s(?:-u|--user)[ =]["']?[\w.@+-]{{1,64}}:|\bsshpass[ \t]+-p[ \t]*["']?)({_PLAIN}{{4,}})""",
        hook=r"""\s(?:-u|--user)[ =]["']?[\w.@+-]*:|\bsshpass[ \t]+-p""",
        judge=_is_spoken_password,
    ),
    # What people write down
    _written(
        "option-password",
        r"--[a-z-]{0,20}(?:password|passwd|passphrase)",
        "--",
        r"""[ =]["']?""",
        6,
        hook=_OPTION,
        judge=_is_password,
    ),
    _written(
        "option-secret", r"--[a-z-]{0,20}(?:token|secret|key)", "--", r"""[ =]["']?""", 10, hook=_OPTION, judge=_is_key
    ),
    _written("assigned-password", _LOGIN_WORD + _STAGE, "pass pwd pw", _GETS, 6, hook=_GIVEN, judge=_is_password),
    _written(
        "assigned-secret", _KEY_WORD + _STAGE, "secret token credential key", _GETS, 10, hook=_GIVEN, judge=_is_key
    ),
    _written(
        "spoken-password",
        r"\b(?:password|passwort|passwd|passphrase|passcode|pwd)",
        "pass pwd",
        _SAID,
        6,
        hook=_SPOKEN,
        judge=_is_spoken_password,
    ),
    _written("spoken-secret", rf"\b{_KEY_WORD}", "secret token credential key", _SAID, 10, hook=_SPOKEN, judge=_is_key),
)
