"""Receipts: the host's signed statement that it has processed one handoff of one machine and repository.

The host signs with an Ed25519 key that never leaves it. A producer has the public key in its route and removes a
handoff only if the signature is valid, so that others with write access to the remote cannot forge a receipt.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core import file_io
from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.file_io import ChangedSince
from truekeep.core.machine import own_state

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from truekeep.handoffs.sync.routes import Route

KEY_FILE = "receipt-key"  # in the user's state folder, which is not synced
MAX_RECEIPT_BYTES = 65_536
_MARK = "truekeep-receipt-1"
_DOMAIN = b"truekeep receipt\x001"
_PREFIX = "tkhost1_"
_KEY_BYTES, _CHECKSUM_BYTES = 32, 4
_MAX_LINES = 200
_MAX_SIGNATURES_PER_PLACE = 3  # a genuine receipt has one
PAIR = "run `truekeep sync key` on the host, then `truekeep connect machine --host-key KEY` here"

Done = Mapping[str, set[str]]
"""Digests of processed handoffs, by place."""


class Receipts(NamedTuple):
    """The receipts that came back for one machine."""

    done: dict[str, set[str]]
    refused: int = 0  # receipts without a valid signature
    unsigned: int = 0  # of those, the empty ones, as an older truekeep writes them
    elsewhere: int = 0  # receipts for other places; not verified

    def notes(self, route: Route) -> list[str]:
        """Messages for the user."""
        if not route.text("host_key"):
            return [f"this route is not paired with its host, so filed handoffs stay here: {PAIR}"]
        if not self.refused:
            return []
        what = "1 receipt was" if self.refused == 1 else f"{self.refused} receipts were"
        ignored = f"{what} not signed by the paired host and ignored; the handoffs stay here and are offered again."
        if self.unsigned == self.refused:
            return [f"{ignored} If the host has an older truekeep, update it; if not, someone else wrote them"]
        return [f"{ignored} If the host moved or lost its key, {PAIR}; if not, someone else wrote them"]


class Signer:
    """Signs receipts with the host's key."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = _render_key(private.public_key().public_bytes_raw())

    def render(self, machine: str, places: Iterable[str], digest: str) -> bytes:
        """A receipt for a handoff in some places of a machine. Deterministic."""
        lines = (
            f"{_MARK} {place} {self._private.sign(_message(machine, place, digest)).hex()}\n"
            for place in sorted(places)
        )
        return "".join(lines).encode()

    def sign(self, message: bytes) -> str:
        """The signature of any other message; each kind begins with a domain of its own."""
        return self._private.sign(message).hex()


class ReceiptVerifier:
    """Verifies receipts with a host's public key."""

    def __init__(self, key: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._public = Ed25519PublicKey.from_public_bytes(parse_key(key))

    def places(self, lines: Mapping[str, Iterable[str]], machine: str, digest: str) -> set[str]:
        """The places with a valid signature for a handoff of that machine."""
        return {
            place
            for place, signatures in lines.items()
            if any(self.is_signed(signature, _message(machine, place, digest)) for signature in signatures)
        }

    def is_signed(self, signature: str, message: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._public.verify(bytes.fromhex(signature), message)
        except (InvalidSignature, ValueError):
            return False
        return True


def is_signed(key: str, signature: str, message: bytes) -> bool:
    """True if the host with this public key signed a message."""
    try:
        return ReceiptVerifier(key).is_signed(signature, message)
    except BadInput:
        return False


def parse_receipt(receipt: bytes) -> dict[str, list[str]]:
    """The signatures in a receipt, by place; at most a few each."""
    found: dict[str, list[str]] = {}
    for line in receipt.decode("ascii", "replace").splitlines()[:_MAX_LINES]:
        mark, _, rest = line.partition(" ")
        place, _, signature = rest.partition(" ")
        if mark == _MARK and len(known := found.setdefault(place, [])) < _MAX_SIGNATURES_PER_PLACE:
            known.append(signature)
    return found


def judge(key: str, machine: str, places: Collection[str], given: Iterable[tuple[str, bytes]]) -> Receipts:
    """Verify receipts (digest, content) for these places of a machine. Without a key, none is valid."""
    verifier = ReceiptVerifier(key) if key else None
    done: dict[str, set[str]] = {}
    refused = unsigned = elsewhere = 0
    for digest, content in given:
        lines = parse_receipt(content)
        own = {place: lines[place] for place in lines.keys() & places}
        signed = verifier.places(own, machine, digest) if verifier is not None else set()
        for place in signed:
            done.setdefault(place, set()).add(digest)
        is_elsewhere = verifier is not None and bool(lines) and not own
        elsewhere += is_elsewhere
        refused += not signed and not is_elsewhere
        unsigned += not content.strip()
    return Receipts(done, refused, unsigned, elsewhere)


def read_signer() -> Signer:
    """This machine's signing key; created when first needed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(own_state()) / KEY_FILE
    raw = _read_key(path)
    if raw is None:
        file_io.write_once(path, Ed25519PrivateKey.generate().private_bytes_raw().hex().encode() + b"\n")
        raw = _read_key(path)
    try:
        return Signer(Ed25519PrivateKey.from_private_bytes(bytes.fromhex((raw or b"").decode("ascii").strip())))
    except ValueError as error:
        raise BadSetup(
            f"{path} is not a key",
            hint="remove it; a new key is created, and each producer must be paired again with `truekeep sync key`",
        ) from error


def _read_key(path: Path) -> bytes | None:
    try:
        folder = file_io.open_root(str(path.parent))
    except FileNotFoundError:
        return None
    try:
        return file_io.read_file(folder, path.name, limit=1024)[0]
    except FileNotFoundError:
        return None
    except ChangedSince as error:
        raise BadSetup(f"{path} is being written", hint="run it again") from error
    finally:
        os.close(folder)


def parse_key(text: str) -> bytes:
    """Parse a key printed by `truekeep sync key`."""
    given = text.strip()
    try:
        raw = base64.b64decode(given.removeprefix(_PREFIX), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    key = raw[:_KEY_BYTES]
    if not given.startswith(_PREFIX) or len(raw) != _KEY_BYTES + _CHECKSUM_BYTES or raw[_KEY_BYTES:] != _check(key):
        raise BadInput(
            f"{given[:60]!r} is not a complete host key",
            hint=f"copy the output of `truekeep sync key` on the host; it begins with {_PREFIX}",
        )
    return key


def _render_key(raw: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(raw + _check(raw)).decode()


def _check(raw: bytes) -> bytes:
    return hashlib.sha256(b"truekeep host key\0" + raw).digest()[:_CHECKSUM_BYTES]


def _message(machine: str, place: str, digest: str) -> bytes:
    words = (machine, place, digest)
    return b"\0".join((_DOMAIN, *(word.encode("utf-8", "surrogateescape") for word in words)))
