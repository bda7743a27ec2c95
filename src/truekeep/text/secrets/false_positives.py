"""Decides whether a match is a credential, or a dummy, a name, a path, a digest or code that only looks like one."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

from truekeep.text.secrets.regex import compiled

MIN_SEQUENCE_SHARE = 0.35  # of the characters, to be made up

_DUMMY = (
    r"(?i)example|placeholder|redacted|dummy|sample|changeme|xxxxx|your[_-]|insert[_-]|replace[_-]"
    r"|\.\.\.|\*\*\*|…|\[secret:"
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
# Where a harness keeps a session: `agent:main:telegram:direct:4711`. Every log of a session names it; it opens nothing.
_SESSION_ADDRESS = r"agent:[\w.-]{1,40}(?::[\w.+@!$-]{1,64})+"
# Public names that are called tokens: a contract or wallet on a chain (Ethereum; Solana, if the text is about one), a
# document or user of Lark.
_PUBLIC_ADDRESS = r"0x[0-9a-fA-F]{40}"
_SOLANA_ADDRESS = r"[1-9A-HJ-NP-Za-km-z]{43,44}"
_LARK_ID = r"(?:bas|box|doc|dox|sht|wik|fld|nod|bmn)cn[A-Za-z0-9]{20,24}|o[ucnm]_[0-9a-f]{32}"
_CURRENCY_TICKER = r"[A-Z][A-Z0-9]{2,9}-[0-9a-f]{6}"  # MultiversX: the ticker of a currency, and a number
_NO_PASSWORD = rf"{_REFERENCE}|{_UUID}|(?i:(?:{_TECHNICAL_WORD}[-_./:]+)*{_TECHNICAL_WORD}[-_./:]*)"
_NO_KEY = (
    rf"{_SESSION_ADDRESS}|{_PUBLIC_ADDRESS}|{_LARK_ID}|{_CURRENCY_TICKER}|{_REFERENCE}|{_UUID}|{_LOOSE_NAME}|(?:[A-Z][a-z]{{2,}}[0-9]{{0,5}}){{2,}}"
    r"|[0-7][0-9A-HJKMNP-TV-Z]{25}|[0-9a-fA-F]{1,15}|[0-9.,:_-]+"
)
_NO_URL_LOGIN = (
    r"(?i:(?:my|db|the|user|some|a)?[_-]?(?:pass|passw(?:or)?d|passphrase|pwd|pw|secret|token|key|credentials?|auth|pat"
    r"|api[_-]?key)|user(?:name)?|postgres|root|admin|guest|test|none|null|string|foo|bar|baz|abc|x-oauth-basic)"
    r"|[A-Z][A-Z_]*|[$%{].*|[*x._-]+"
)

# Passwords of tutorials: a word for one, or one that everybody knows, spelled with digits or not, and a number.
_TUTORIAL_LOGIN = (
    r"(?i)(?:(?:my|your|the|test|admin|user|root|demo|super|very|strong|secure|new|old|db|some|correct)[_-]?)*"
    r"(?:p[a@4][s$5]{2}(?:w[o0]rd|wd)?|[s$5][e3]cr[e3]t|letmein|qwerty|welcome|admin|root|test|guest"
    r"|demo|user|change(?:it|me)|foobar|abc)"
    r"(?:[_-]?(?:p[a@4][s$5]{2}(?:w[o0]rd|wd)?|key|token|value))?[_-]?(?:[0-9]{1,5}|[!@#$]){0,3}"
)
_SAMPLE_KEY = r"(?i)(?:(?:my|your|the|test|demo|fake|dummy|sample|some|mock)[_-])+[a-z_-]+[_-]?[0-9]{0,4}"
_ADDRESS_ON_A_CHAIN = (
    r"(?i)\b(?:mint|wallet|solana|spl|contract|raydium|pump\.?fun|dex|liquidity|blockchain|on-chain|airdrop|memecoin"
    r"|jupiter)|合约|钱包"
)
_CUT = (b"...", "…".encode())
_LONGEST_CUT = 36  # a longer value is not cut, whatever follows it

_DIGITS = b"0123456789"
_SIGNS = b"!@#$%^*~?+"
_LETTERS = bytes(byte for byte in range(256) if byte >= 0x80 or chr(byte).isalpha())
_NOT_ASCII = bytes(range(0x80, 0x100))


def is_name(value: bytes) -> bool:
    """Whether it reads as words joined by punctuation, such as `sk-learn-compatible`."""
    return compiled(_NAME).fullmatch(value) is not None


def _is_dummy(value: bytes) -> bool:
    return len(set(value)) < 4 or is_sequence(value) or compiled(_DUMMY_VALUE).search(value) is not None


def is_sequence(value: bytes) -> bool:
    """Whether much of it is `abcdef`, `123456` or `000000`: no generator makes such a value."""
    steps = sum(0 <= after - before <= 1 for before, after in pairwise(value))
    return steps >= MIN_SEQUENCE_SHARE * (len(value) - 1)


def _is_cut(value: bytes, after: bytes) -> bool:
    """Whether only the beginning of a value is shown."""
    return after.startswith(_CUT) and len(value) < _LONGEST_CUT


def _is_code(after: bytes) -> bool:
    """Whether a value is code: a name that is called or indexed."""
    return after.startswith((b"(", b"["))


def has(value: bytes, members: bytes) -> bool:
    return len(value.translate(None, members)) < len(value)


def is_block(_value: bytes, _before: bytes, _after: bytes) -> bool:
    return True


def is_token(value: bytes, _before: bytes, after: bytes) -> bool:
    """For formats that name their vendor: everything but a dummy."""
    if len(set(value[-12:])) <= 3 or is_sequence(value) or _is_cut(value, after):
        return False
    return compiled(_DUMMY).search(value) is None and not is_name(value)


def is_mixed_token(value: bytes, before: bytes, after: bytes) -> bool:
    """For a prefix that code also uses for a member: only with a digit."""
    return has(value, _DIGITS) and is_token(value, before, after)


def is_credential(value: bytes, before: bytes, after: bytes) -> bool:
    """For a value after "Bearer": any token, but not code that fetches one."""
    return not _is_code(after) and compiled(_LOOSE_NAME).fullmatch(value) is None and is_token(value, before, after)


def is_key(value: bytes, before: bytes, after: bytes) -> bool:
    """For a value after "token:" or "api_key =": it looks random, and is not a name, path, digest or reference."""
    if len(value) < 10 or _is_code(after) or _is_cut(value, after) or _is_dummy(value):
        return False
    if compiled(_NO_KEY).fullmatch(value) is not None or compiled(_SAMPLE_KEY).fullmatch(value) is not None:
        return False
    if compiled(_SOLANA_ADDRESS).fullmatch(value) and compiled(_ADDRESS_ON_A_CHAIN).search(before + after) is not None:
        return False
    return _entropy(value) >= (2.8 if has(value, _DIGITS) and has(value, _LETTERS) else 3.8)


def is_password(value: bytes, before: bytes, after: bytes) -> bool:
    """For a value after "password:": letters with digits or signs; a plain word is part of a sentence."""
    is_number = value.isdigit() and len(value) >= 6 and not _is_dummy(value)
    return is_number or is_spoken_password(value, before, after)


def is_spoken_password(value: bytes, before: bytes, after: bytes) -> bool:
    if len(value) in _DIGEST_LENGTHS and compiled(_DIGEST_OF).search(before) and compiled(_LONG_HEX).fullmatch(value):
        return False
    # A sign at the end may only close the sentence.
    if len(value) < 6 or not _has_letters(value) or not has(value.rstrip(b"!?"), _DIGITS + _SIGNS) or _is_code(after):
        return False
    if _is_cut(value, after) or compiled(_TUTORIAL_LOGIN).fullmatch(value) is not None:
        return False
    return compiled(_NO_PASSWORD).fullmatch(value) is None and not _is_dummy(value)


_PUBLIC_PREFIX = (
    r"(?:pk_(?:test|live)|ssh-|AAAA[BC]3|age1|npub1|bc1|0x[0-9a-fA-F]{40}\z|sha|h1:|G-|GTM-|UA-|arn:|urn:|data:"
    r"|(?:req|msg|toolu|call|resp|run|thread|org|cus|pi|price|sub|evt|chatcmpl)[_-]).*|[a-z]{2,10}1[02-9ac-hj-np-z]{38,90}"
)
_DIGEST_LENGTHS = (32, 40, 56, 64, 96, 128)
_DIGEST_OF = r"(?i)\b(?:sha-?[0-9]*(?:sum)?|md5|hash|digest|checksum|fingerprint|commit)\b[^\n]{0,40}\z"
_LONG_HEX = r"(?i)(?:0x)?[0-9a-f]+"
_CLASSES = bytes(
    0 if chr(byte).islower() else 1 if chr(byte).isupper() else 2 if chr(byte).isdigit() else 3 for byte in range(128)
) + bytes(128)
_MADE_UP = (
    r"(?i)p[a@4][s$5]{2}(?:w[o0]r)?d|secret|s[e3]cure|token|example|letmein|qwerty|a-z|[0-9]{4}-[0-9]{2}-[0-9]{2}|[?&][a-z_]+=|\$[a-z_]{3}"
    r"|^@[\w.-]+$"
)
_KEEPER = r"(?i)pass|warden|vault|key(?:chain|ring)|store|manager|auth"  # LastPass, KeePassXC, BitWarden
_PARTS = re.compile(rb"[-_./:]")
MAX_CHANGES_OF_A_NAME = 6
_LETTERS_OF_A_WORD = 3  # at least, on average
MIN_CHANGES = 3  # between small letters, capitals, digits and signs


def _changes(value: bytes) -> int:
    """How often small letters, capitals, digits and signs take turns."""
    return sum(one != two for one, two in pairwise(value.translate(_CLASSES)))


def _has_word(value: bytes) -> bool:
    """Whether a part of it, between its signs, is a word: `E2E-Validation`, `qwen2.5:coder`."""
    return any(compiled(r"[A-Z]?[a-z]{3,}|[A-Z]{4,}").fullmatch(part) is not None for part in _PARTS.split(value))


def is_user_name(name: bytes) -> bool:
    """Whether somebody could be called so: no id, and nothing random."""
    return (
        compiled(r"(?i).*ids?|.*[_-]id|https?|localhost|port").fullmatch(name) is None
        and _changes(name) <= MAX_CHANGES_OF_A_NAME
    )


def _is_camel_case(value: bytes) -> bool:
    """`X11Forwarding`, `createdAtTimestamp2026`: words, not single letters, take turns."""
    return not value.islower() and not value.isupper() and len(value) >= _LETTERS_OF_A_WORD * (_changes(value) + 1)


def is_long_hex(value: bytes) -> bool:
    return compiled(_LONG_HEX).fullmatch(value) is not None


def is_reference(value: bytes) -> bool:
    """Whether it is a name, an address, an id or a path, as a whole."""
    return compiled(_NO_KEY).fullmatch(value) is not None or compiled(_PUBLIC_PREFIX).fullmatch(value) is not None


def is_nearby_password(value: bytes, _context: bytes, after: bytes) -> bool:
    """For a value in the sentence of a password: letters, digits and perhaps signs that make up no name."""
    if not 8 <= len(value) <= 64 or not (has(value, _DIGITS) and has(value, _LETTERS)) or has(value, b"/\\="):
        return False
    if not is_spoken_password(value, b"", after) or compiled(_LOOSE_NAME).fullmatch(value) is not None:
        return False
    if compiled(_PUBLIC_PREFIX).fullmatch(value) is not None or compiled(_LONG_HEX).fullmatch(value) is not None:
        return False
    if compiled(_MADE_UP).search(value) is not None or _is_camel_case(value) or _has_word(value):
        return False
    if compiled(rf"[a-z]{{5}}|{_UUID}").search(value) is not None:
        return False
    return _changes(value) >= MIN_CHANGES and _entropy(value) >= 2.6


def is_pair_password(value: bytes, line: bytes, after: bytes) -> bool:
    """For a value behind a user's name: as above, or a word, a number and a sign."""
    if is_nearby_password(value, line, after):
        return not is_reference(value)
    is_word_and_sign = compiled(r"[A-Z][a-z]{2,}[0-9]{2,6}[!@#$%^*?+]+|[!@#$%^*?+]+[A-Z][a-z]{2,}[0-9]{2,6}").fullmatch(
        value
    )
    return is_word_and_sign is not None and not _is_dummy(value)


def is_listed_password(value: bytes) -> bool:
    """For the only word behind "password" in a list of where to log in: with digits, or with a capital inside."""
    if is_password(value, b"", b""):
        return True
    is_mixed = compiled(r"[A-Za-z]*[a-z][A-Z][A-Za-z]*").fullmatch(value) is not None
    is_named = compiled(_TUTORIAL_LOGIN).fullmatch(value) or compiled(_KEEPER).search(value) or _is_dummy(value)
    return is_mixed and not is_named and compiled(_REFERENCE).fullmatch(value) is None


def is_nearby_key(value: bytes, context: bytes, after: bytes) -> bool:
    """For a long value in the sentence of a key: random, and not a name, a digest, an address or an id."""
    if len(value) < 16 or not is_key(value, context, after) or compiled(_MADE_UP).search(value) is not None:
        return False
    if compiled(_PUBLIC_PREFIX).fullmatch(value) is not None:
        return False
    if is_long_hex(value):
        return len(value) >= 32
    if _has_word(value) or compiled(_UUID).search(value) is not None:
        return False
    return is_random(value) and has(value, _DIGITS) and _changes(value) >= MIN_CHANGES + 2 and not _is_camel_case(value)


def is_grouped_code(value: bytes) -> bool:
    """For groups of letters and digits behind "recovery codes": no words, no date."""
    bare = value.translate(None, b" -")
    if is_sequence(bare) or compiled(r"[0-9]{4}-[0-9]{2}.*").fullmatch(value) is not None:
        return False
    has_both = has(bare, _DIGITS) and has(bare, _LETTERS)
    return has_both or (value.isupper() and len(bare) >= 16) or (b" " in value and len(set(bare)) > 7) or bare.isdigit()


def _has_letters(value: bytes) -> bool:
    """Whether there is a letter of any script: an arrow or a dash between two numbers does not count."""
    if not has(value, _NOT_ASCII):
        return has(value, _LETTERS)
    return any(character.isalpha() for character in value.decode("utf-8", "replace"))


def is_url_password(value: bytes, _before: bytes, after: bytes) -> bool:
    """For a value between the colon and the @ of a URL: any word but those of examples."""
    # `docker://image:1.2@sha256:…` is a pinned image.
    if len(value) < 3 or after.startswith(b"@sha"):
        return False
    return compiled(_NO_URL_LOGIN).fullmatch(value) is None and not _is_dummy(value)


def is_random(value: bytes) -> bool:
    """For a long run near the name of a key: no words, and many different characters."""
    return (has(value, _DIGITS) or not value.islower()) and not is_name(value) and _entropy(value) >= 3.5


def _entropy(value: bytes) -> float:
    """Shannon entropy, in bits for each byte."""
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
