"""Finds a credential by a word for one nearby, where no rule of `rules.toml` has the exact form.

In a sentence ("Use … as the password"), behind a slash ("admin / …"), in a column of a table, in a cookie, as the words
of a seed phrase. The word alone proves little, so the value has to look random: `false_positives` decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple

from truekeep.text.secrets import false_positives as judge
from truekeep.text.secrets.regex import compiled

NAMES = ("nearby-password", "nearby-secret", "session-cookie", "seed-phrase", "key-bytes", "one-time-password")
PASSWORD, SECRET, COOKIE, PHRASE, KEY_BYTES, ONE_TIME = range(len(NAMES))


class NearbySecret(NamedTuple):
    """Where a value is, and the number of its name in NAMES."""

    start: int
    end: int
    name: int


# --- Words ----------------------------------------------------------------------------------------------------------

_LOGIN = (
    r"passw(?:or)?ds?|passphrase|passcode|\bpwd?\b|\bpass\b|passwort|kennwort|zugangscode|mot de passe"
    r"|contrase[nñ]a|\bclave\b"
    r"|\bsenha|wachtwoord|has[lł]o|şifre|\bparola|lösenord|пароль"
    r"|密码|密碼|口令|パスワード|暗証番号|비밀번호|암호|كلمة (?:المرور|السر)"
    r"|mật khẩu|kata ?(?:laluan|sandi)|पासवर्ड|\bpsk\b|pre-?shared|\bwpa2?\b|\bssid\b"
    r"|(?:key|store|trust|db|root|user|admin|sudo|smtp|imap|ftp|ssh|mail|wifi|require)pass\b|masterauth"
)
_KEY = (
    r"\b(?:api|access|secret|private|auth|account|encryption|signing|master|service|app|application"
    r"|consumer|shared|deploy|storage"
    r"|session|client|webhook|license|wallet|deployer)[ _.-]?key|\bkey\b|\bapikey|\bsecrets?\b"
    r"|[_-]secret\b|(?:\b|auth)tokens?\b"
    r"|[_-]token\b|\bbearer\b|\bcookies?\b|\bcred(?:ential)?s?\b|\bpk\b|\bWIF\b|токен|密钥|密鑰|令牌|トークン|토큰|schlüssel"
)
_ACCOUNT = (
    r"\blog[- ]?ins?\b|\blogon\b|\busers?(?:name)?\b|\baccounts?\b|\bcred(?:ential)?s?\b|\bauth\b"
    r"|zugangsdaten|anmeldung|benutzer"
    r"|identifiants?|utilisateur|\bcompte\b|credenziali|utente|usuario|usuário|cuenta|conta\b|gebruiker"
    r"|логин|учётка|учетка"
    r"|账号|帐号|帳號|用户|ログイン|アカウント|계정|로그인"
)
_SEED = (
    r"mnemonic|(?:seed|recovery|backup|secret"
    r"|wallet)[ -]?(?:phrase|words)|助记词|助記詞|сид-?фраз|seed-?фраз|ニーモニック|시드 ?구문"
)
_ONE_TIME = r"\b(?:2fa|mfa|totp|otp|authenticator)\b|(?:recovery|backup|rescue|emergency)[ -]codes?|app[- ]password"
_PIN = r"\bPIN\b|(?i:(?:unlock|door|alarm|access|entry|gate|safe|lock)[ -]code|türcode|tresorcode)"
_BYTES = r"key-?pair|private|secret|solana|id\.json|wallet"
_COOKIE_WORD = r"(?i)cookie|\s(?:-b|--cookie)[ =]"
# Values near these words are public, whatever else is near them.
_PUBLIC = (
    r"(?i)\b(?:sha-?\d*(?:sum)?|md5|hash(?:es)?|digests?|checksums?|commits?|fingerprints?|public|etag"
    r"|integrity|revision|merkle"
    r"|tx|txid|block|addresse?s?|contract|uuid|guid|doc(?:ument)?|file|folder|sheet|page|wiki|node|space"
    r"|mint|pub(?:key)?)\b"
)
_WELL_KNOWN_USER = r"(?i)root|admin|administrator|pi|ubuntu|postgres|sa|deploy|guest|operator|superuser|manager|user"
_PREFERENCE = r"(?i)_ga.*|_gid|.*consent.*|theme|lang|locale|tz|timezone|guest_id"
_SESSION_NAME = r"(?i)[\w.-]{0,24}(?:sess|sid\b|auth|csrf|xsrf|login|jwt|remember|token|ct0|li_at)[\w.-]{0,24}"

# Keys that open nothing.
_HARMLESS_KEY = (
    r"(?i)\b(?:cache|sort|primary|foreign|partition|row|shortcut|lookup|group|public|host|object|s3|redis"
    r"|map|dict|json|index"
    r"|idempotency|i18n|translation|storage|localstorage|config|registry|issue|jira|session|websocket)[ _-]?keys?\z"
)

_SIGILS = (b"$", b"${", b"%")  # `$PWD` is the folder
_EXAMPLE = (
    r"(?i)\b(?:e\.g|example|for instance|such as|z\. ?b|exemple"
    r"|ejemplo|beispiel)\b[^\n]{0,12}\z|(?:例如|比如|例)[^\n]{0,6}\z"
)

_WINDOW = 140  # bytes behind a word
_WINDOW_BEFORE = 90
_LONGEST_VALUE = 512
_LONGEST_LINE = 2000
_MAX_LABELS = 400  # of a text; more are made to cost time
_RUN = r"[!#-&*+./0-9:=?@A-Z^_a-z~-]{4,}"
_SPEECH_END = r"[.!?;](?:[\s*_`\"')\]]|\z)"
_MASK = re.compile(rb"\[(?:secret: [a-z0-9-]+|withheld)\]")


@cache
def _words() -> Any:
    return compiled(
        rf"(?i)(?P<login>{_LOGIN})|(?P<seed>{_SEED})|(?P<onetime>{_ONE_TIME})|(?P<key>{_KEY})|(?P<account>{_ACCOUNT})"
    )


def may_hold(data: bytes) -> bool:
    """Whether a text has such a word at all."""
    return any(compiled(pattern).search(data) is not None for pattern in (_any_word(), _PAIR_OF_ADMIN))


@cache
def _any_word() -> str:
    return rf"(?i){_LOGIN}|{_SEED}|{_ONE_TIME}|{_KEY}|{_ACCOUNT}|{_PIN}|sess|sid=|auth|csrf|xsrf|ct0|li_at|key-?pair"


def iter_nearby(data: bytes) -> Iterator[NearbySecret]:
    """Every value that is near a word for it, in no order; some may overlap."""
    data = _MASK.sub(lambda mask: b" " * len(mask[0]), data)
    yield from _iter_cookies(data)
    yield from _iter_pairs(data)
    yield from _iter_listed(data)
    yield from _iter_pins(data)
    yield from _iter_key_bytes(data)
    yield from _iter_columns(data)
    for _, label in zip(range(_MAX_LABELS), _words().finditer(data), strict=False):
        if label["seed"] is not None:
            yield from _iter_seed_words(data, label.end())
        elif label["onetime"] is not None:
            yield from _iter_one_time(data, label.end())
        elif label["account"] is None:
            is_login = label["login"] is not None
            yield from _iter_after(data, label.start(), label.end(), is_login=is_login)
            yield from _iter_before(data, label.start(), is_login=is_login)


# --- Near a word ----------------------------------------------------------------------------------------------------


def _line(data: bytes, at: int) -> tuple[int, int]:
    """Where the line of a place begins and ends, or what is near enough of a long one."""
    first, last = max(0, at - _LONGEST_LINE), min(len(data), at + _LONGEST_LINE)
    start, end = data.rfind(b"\n", first, at), data.find(b"\n", at, last)
    return start + 1 if start >= 0 else first, end if end >= 0 else last


def _iter_after(data: bytes, start: int, end: int, *, is_login: bool) -> Iterator[NearbySecret]:
    line_start, line_end = _line(data, start)
    stop = min(line_end, end + _WINDOW)
    if compiled(r"(?i)[ _-]?(?:ids?|names?|paths?|files?|counts?|budget|limit|length|policy)\b").match(
        data[end : end + 12]
    ):
        return
    if compiled(_HARMLESS_KEY).search(data[max(line_start, start - 24) : end]) is not None or data.endswith(
        _SIGILS, 0, start
    ):
        return
    # Behind a word that is a part of a longer one, as in a URL, is not where people put a value.
    rest = compiled(r"[A-Za-z0-9_@/.-]+").match(data[end : end + _LONGEST_VALUE])
    end += rest.end() if rest is not None else 0
    context = data[max(line_start, start - 60) : stop]
    closed = compiled(_SPEECH_END).search(data[end:stop])
    if closed is not None and not is_login:
        stop = end + closed.start()
    for count, run in enumerate(compiled(_RUN).finditer(data[end : min(line_end, stop + _LONGEST_VALUE)])):
        if count > 7 or run.start() + end >= stop:
            return
        after = data[run.end() + end : run.end() + end + 8]
        gap = data[end : run.start() + end]
        found = _judge(run.group(), run.start() + end, after, is_login=is_login, context=context, gap=gap)
        if found is not None:
            yield found


_AS_A_WORD = r"(?i)^[\"'`*)]{0,3}\s+(?:as|is|=|als|ist|como|es|é|comme|est|come|è|jako|als)\b[^.;:!?\n]{0,40}\z"


def _iter_before(data: bytes, start: int, *, is_login: bool) -> Iterator[NearbySecret]:
    """`Use … as the password`."""
    line_start, line_end = _line(data, start)
    first = max(line_start, start - _WINDOW_BEFORE)
    context = data[first : min(line_end, start + 60)]
    for run in compiled(_RUN).finditer(data[first:start]):
        if compiled(_AS_A_WORD).search(data[first + run.end() : start]) is not None:
            found = _judge(run.group(), first + run.start(), b" ", is_login=is_login, context=context, gap=b"")
            if found is not None:
                yield found


_ID_OF = r"(?i)ids?[\"'`*)]*\s*[:=：|]?\s*[\"'`*(]*\z"
_SAID = r"(?i)^[^A-Za-z]*\z|\b(?:is|was|are|ist|lautet|est|es|é|è)\b[^A-Za-z]*\z"


def _judge(run: bytes, start: int, after: bytes, *, is_login: bool, context: bytes, gap: bytes) -> NearbySecret | None:
    value = run.strip(b"*_:.=")
    start += run.find(value)
    if judge.is_reference(value) or run.endswith(b"...") or compiled(_EXAMPLE).search(gap) is not None:
        return None
    name = compiled(r"[A-Za-z_][\w.-]{0,40}[=:]").match(value)
    if name is not None:
        start, value = start + name.end(), value[name.end() :]
    if is_login and judge.is_nearby_password(value, context, after):
        return NearbySecret(start, start + len(value), PASSWORD)
    if compiled(_ID_OF).search(gap) is not None:
        return None
    if judge.is_long_hex(value) and compiled(_SAID).search(gap) is None:
        return None
    if judge.is_nearby_key(value, context, after) and compiled(_PUBLIC).search(context) is None:
        return NearbySecret(start, start + len(value), PASSWORD if is_login else SECRET)
    return None


# --- A user and a password ------------------------------------------------------------------------------------------

_PAIR = (
    r"(?:^|[\s|(:,：，])[\"'`*]{0,3}([\w.+-]{2,40}(?:@[\w.-]+)?)[\"'`*]{0,3}(?:[ \t]*/[ \t]*"
    r"|[ \t]+[-–—][ \t]+|:)[\"'`*]{0,3}"
    r"([^\s\"'`,;<>()\[\]{}|\\\x{80}-\x{10FFFF}]{6,80})"
)
_PAIR_OF_ADMIN = r"(?i)\b(?:root|admin|administrator|deploy|pi|ubuntu|guest)\b[\"'`*]{0,3}[ \t]*[/:|–—-]"


def _iter_pairs(data: bytes) -> Iterator[NearbySecret]:
    for pair in compiled(rf"(?m){_PAIR}").finditer(data):
        start, end = pair.span(2)
        line_start, line_end = _line(data, start)
        line = data[max(line_start, start - _WINDOW) : min(line_end, end + _WINDOW_BEFORE)]
        is_admin = compiled(_WELL_KNOWN_USER).fullmatch(pair.group(1)) is not None
        if not is_admin and compiled(rf"(?i){_ACCOUNT}|{_LOGIN}").search(line) is None:
            continue
        value = pair.group(2).rstrip(b"*_.:")
        if pair.group(2).endswith(b"...") or not judge.is_user_name(pair.group(1)):
            continue
        if judge.is_pair_password(value, line, data[end : end + 8]):
            yield NearbySecret(start, start + len(value), PASSWORD)


# --- A list in brackets ---------------------------------------------------------------------------------------------

_WAY_IN = (
    r"(?i)[\s*_`]*(?:\w+[ \t]+to\b|(?:ssh|vnc|rdp|ftp|smtp|port|user(?:name)?|login|account|host(?:name)?|ip|address"
    r"|server|ssid)\b).*"
)
_LISTED = (
    r"(?i)[\s*_`]*(?:and[ \t]+)?(?:password|passwort|passwd|passphrase|passcode|pwd?|pass)[ \t]+[\"'`*]{0,3}"
    r"([^\s\"'`*]{6,64})[\"'`*]{0,3}\s*"
)


def _iter_listed(data: bytes) -> Iterator[NearbySecret]:
    """`(port 5900, password …)`: where to log in, and with what."""
    for brackets in compiled(r"\(([^()\n]{12,240})\)").finditer(data):
        items = re.split(rb"[,;]", brackets.group(1))
        if len(items) < 2 or not any(compiled(_WAY_IN).fullmatch(item) for item in items):
            continue
        at = brackets.start(1)
        for item in items:
            value = compiled(_LISTED).fullmatch(item)
            if value is not None and judge.is_listed_password(value.group(1)):
                yield NearbySecret(at + value.start(1), at + value.end(1), PASSWORD)
            at += len(item) + 1


# --- Columns --------------------------------------------------------------------------------------------------------


def _iter_columns(data: bytes) -> Iterator[NearbySecret]:
    """The cells below a heading such as "Password", in a Markdown table and in comma-separated lines."""
    tables = []
    for ruler in compiled(r"(?m)^[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*(?:\|[ \t:-]*)+$").finditer(data):
        head_start, head_end = _line(data, max(0, ruler.start() - 1))
        tables.append(_Heading(ruler.start(), ruler.end() + 1, data[head_start:head_end].split(b"|")))
    lists = [
        _Heading(line.start(), line.end() + 1, line.group().split(b","))
        for line in compiled(r"(?m)^(?:[\w .-]{1,30},){1,12}[\w .-]{1,30}$").finditer(data)
        if _columns(line.group().split(b","))
    ]
    yield from _iter_tables(data, tables, b"|")
    yield from _iter_tables(data, lists, b",")


class _Heading(NamedTuple):
    """The head of a table: where it begins, where its rows do, and its cells."""

    start: int
    rows: int
    cells: list[bytes]


def _columns(heads: list[bytes]) -> dict[int, bool]:
    return {place: kind for place, head in enumerate(heads) if (kind := _column_kind(head)) is not None}


def _iter_tables(data: bytes, headings: list[_Heading], bar: bytes) -> Iterator[NearbySecret]:
    """Every row is read once, with the columns of all headings above it in its table."""
    kinds: dict[int, bool] = {}
    at = 0
    for heading, following in zip_longest(headings, headings[1:]):
        if at < heading.start:  # the rows of the earlier one ended before this
            kinds.clear()
        kinds.update(_columns(heading.cells))
        at, stop = heading.rows, following.start if following is not None else len(data)
        while kinds and at < stop:
            _, end = _line(data, at)
            cells = data[at:end].split(bar)
            if len(cells) < 2 or (bar == b"," and len(cells) != len(heading.cells)):
                break
            yield from _iter_row(cells, at, kinds)
            at = end + 1


def _iter_row(cells: list[bytes], at: int, kinds: dict[int, bool]) -> Iterator[NearbySecret]:
    for place, (cell_start, cell) in enumerate(_iter_cells(cells, at)):
        if place in kinds:
            # A login and its password share a cell: `ada / …`.
            value = re.split(rb"\s/\s|\s:\s", cell)[-1].strip(b" \t*_`\"'")
            start = cell_start + cell.rfind(value)
            is_login = kinds[place]
            good = judge.is_password(value, b"", b"") if is_login else judge.is_nearby_key(value, b"", b"")
            if value and b" " not in value and not value.endswith((b"...", "…".encode())) and good:
                yield NearbySecret(start, start + len(value), PASSWORD if is_login else SECRET)


def _iter_cells(cells: list[bytes], at: int) -> Iterator[tuple[int, bytes]]:
    for cell in cells:
        yield at, cell
        at += len(cell) + 1


def _column_kind(head: bytes) -> bool | None:
    """True for passwords, False for keys."""
    head = head.strip(b" \t*_`")
    other = r"(?i)\b(?:ids?|name|hash|public|policy|length|type|location|env|variable)\b"
    if len(head) > 60 or compiled(other).search(head) is not None:
        return None
    if compiled(rf"(?i){_LOGIN}").search(head) is not None:
        return True
    is_key = compiled(r"(?i)token|secret|api[ _-]?key|access[ _-]?key|private[ _-]?key|密钥|токен|令牌").search(head)
    return False if is_key is not None else None


# --- Cookies, seed phrases, bytes, codes ------------------------------------------------------------------------------


def _iter_cookies(data: bytes) -> Iterator[NearbySecret]:
    named = r"(?:^|[\s;'\"`(&?:|])([A-Za-z_][\w.-]{1,60})=[\"']?([^\s;,'\"`<>(){}|\\]{16,})"
    for match in compiled(rf"(?m){named}").finditer(data):
        start = match.start(2)
        value = match.group(2).rstrip(b".*")
        is_preference = compiled(_PREFERENCE).fullmatch(match.group(1)) is not None
        if is_preference or not judge.is_nearby_key(value, b"", b""):
            continue
        line_start, _ = _line(data, start)
        in_cookie = compiled(_COOKIE_WORD).search(data[max(line_start, start - 2000) : start]) is not None
        if in_cookie or compiled(_SESSION_NAME).fullmatch(match.group(1)) is not None:
            yield NearbySecret(start, start + len(value), COOKIE)


_NO_SEED_WORD = re.compile(
    rb"(?:the|and|are|was|for|not|but|you|your|has|had|have|its|our|must|should|does|into|from|with|when|which|were)\Z"
)
_SEED_WORD = r"(?:[0-9]{1,2}[.):][ \t]*)?([a-z]{3,8})"


def _iter_seed_words(data: bytes, at: int) -> Iterator[NearbySecret]:
    """Twelve words or more in a row that make no sentence."""
    window = data[at : at + 700]
    for row in compiled(rf"{_SEED_WORD}(?:[\s,]{{1,6}}{_SEED_WORD}){{11,26}}").finditer(window):
        words = re.findall(rb"[a-z]+", row.group())
        first = next(
            (place for place in range(len(words) - 11) if not any(map(_NO_SEED_WORD.match, words[place:]))), None
        )
        if first is None:
            continue
        start = row.start()
        for word in words[:first]:
            start = window.find(word, start) + len(word)
        start += len(window[start : row.end()]) - len(window[start : row.end()].lstrip())
        if row.start() <= 120:
            yield NearbySecret(at + start, at + row.end(), PHRASE)
            return


def _iter_key_bytes(data: bytes) -> Iterator[NearbySecret]:
    """A key as the list of its 32 or 64 bytes."""
    for row in compiled(r"\[(?:\s*[0-9]{1,3}\s*,){31,63}\s*[0-9]{1,3}\s*\]").finditer(data):
        before = data[max(0, row.start() - 160) : row.start()]
        numbers = [int(number) for number in re.findall(rb"[0-9]+", row.group())]
        is_key = len(numbers) in (32, 64) and max(numbers) < 256 and len(set(numbers)) > 16
        if is_key and compiled(rf"(?i){_BYTES}").search(before) is not None:
            yield NearbySecret(row.start(), row.end(), KEY_BYTES)


def _iter_one_time(data: bytes, at: int) -> Iterator[NearbySecret]:
    """Seeds, codes and application passwords, which are written in groups."""
    _, line_end = _line(data, at)
    window = data[at : min(line_end, at + 400)]
    groups = (
        r"\b([A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15})\b",
        r"\b([A-Z2-7]{16,64})\b",
        r"\b([0-9a-z]{4,6}(?:-[0-9a-z]{4,6}){1,3})\b",
        r"\b([a-z]{4} [a-z0-9]{4} [a-z0-9]{4} [a-z0-9]{4})\b",
        r"\b([0-9a-z]{4} [0-9a-z]{4} [0-9a-z]{4} [0-9a-z]{4})\b",
        r"[:=]\s*[\"'`*]{0,3}([a-z0-9]{16})\b",
    )
    for pattern in groups:
        for match in compiled(pattern).finditer(window):
            value = match.group(1)
            if judge.is_grouped_code(value):
                yield NearbySecret(at + match.start(1), at + match.end(1), ONE_TIME)


def _iter_pins(data: bytes) -> Iterator[NearbySecret]:
    said = rf"(?:{_PIN})[^\n.;:=]{{0,40}}?(?:[:=]|\bis\b|\bist\b)[ \t]*[\"'`*]{{0,3}}([0-9]{{4,10}})\b"
    for match in compiled(said).finditer(data):
        if not judge.is_sequence(match.group(1)):
            yield NearbySecret(match.start(1), match.end(1), ONE_TIME)
