"""Receipts: the host's signed statement that it has dealt with one handoff of one machine and place.

The host signs with an Ed25519 key that never leaves it. A producer has the public half, which is no secret, in its
route, and lets go of a handoff only when the signature verifies: whoever else can write to the remote cannot make one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import threading
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

KEY_FILE = "receipt-key"  # in the machine's own state folder: no sync tool and no git carries that
LARGEST_RECEIPT = 65_536  # bytes
_MARK = "truekeep-receipt-1"
_DOMAIN = b"truekeep receipt\x001"
_PREFIX = "tkhost1_"
_RAW, _CHECK = 32, 4  # bytes of a key, and of the check behind it
_MOST_LINES = 200
_MOST_TRIES = 3  # lines of one receipt for one place: an honest one has one
PAIR = "on the host `truekeep sync key`, then here `truekeep connect machine --host-key KEY`"

Done = Mapping[str, set[str]]
"""Digests that were dealt with, by place."""


class Receipts(NamedTuple):
    """What came back from the host for one machine."""

    done: dict[str, set[str]]
    refused: int = 0  # receipts that only somebody else can have made, or that cannot be checked
    unsigned: int = 0  # of those: empty, as an older truekeep on the host writes them
    elsewhere: int = 0  # receipts that name none of the places asked for; nothing in them was verified

    def notes(self, route: Route) -> list[str]:
        """What a person should know about them."""
        if not route.text("host_key"):
            return [f"this route is not paired with its host, so handoffs stay here after they were filed: {PAIR}"]
        if not self.refused:
            return []
        what = "1 receipt was" if self.refused == 1 else f"{self.refused} receipts were"
        told = f"{what} not signed by the paired host and not obeyed; the handoffs stay here and are offered again."
        if self.unsigned == self.refused:
            return [f"{told} If the host has an older truekeep, update it there; if not, somebody else wrote them"]
        return [f"{told} If the host moved or lost its key: {PAIR}; if not, somebody else wrote them"]


class Signer:
    """The host's key."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = _render_key(private.public_key().public_bytes_raw())

    def render(self, machine: str, places: Iterable[str], digest: str) -> bytes:
        """A receipt for a handoff in some places of a machine. The same words give the same bytes."""
        lines = (
            f"{_MARK} {place} {self._private.sign(_message(machine, place, digest)).hex()}\n"
            for place in sorted(places)
        )
        return "".join(lines).encode()


class ReceiptVerifier:
    """The public half of a host's key, as a producer knows it."""

    def __init__(self, key: str) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        self._public = Ed25519PublicKey.from_public_bytes(parse_key(key))

    def places(self, lines: Mapping[str, Iterable[str]], machine: str, digest: str) -> set[str]:
        """The places for which one of the signatures is the host's, for a handoff of that machine."""
        return {
            place
            for place, signatures in lines.items()
            if any(self._is_signed(signature, _message(machine, place, digest)) for signature in signatures)
        }

    def _is_signed(self, signature: str, message: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self._public.verify(bytes.fromhex(signature), message)
        except (InvalidSignature, ValueError):
            return False
        return True


def parse_receipt(receipt: bytes) -> dict[str, list[str]]:
    """The signatures in a receipt, by the place that each is for; a few of each."""
    found: dict[str, list[str]] = {}
    for line in receipt.decode("ascii", "replace").splitlines()[:_MOST_LINES]:
        mark, _, rest = line.partition(" ")
        place, _, signature = rest.partition(" ")
        if mark == _MARK and len(known := found.setdefault(place, [])) < _MOST_TRIES:
            known.append(signature)
    return found


def judge(key: str, machine: str, places: Collection[str], given: Iterable[tuple[str, bytes]]) -> Receipts:
    """Which receipts (digest, content) for these places of a machine verify. Without a key none does."""
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
    """This machine's key for receipts; made when it is first needed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = Path(own_state()) / KEY_FILE
    raw = _read_key(path)
    if raw is None:
        file_io.make_private(path.parent)
        _write_once(path, Ed25519PrivateKey.generate().private_bytes_raw().hex().encode() + b"\n")
        raw = _read_key(path)
    try:
        return Signer(Ed25519PrivateKey.from_private_bytes(bytes.fromhex((raw or b"").decode("ascii").strip())))
    except ValueError as error:
        raise BadSetup(
            f"{path} is not a key",
            hint="remove it; a new one is made, and each producer has to be paired again with `truekeep sync key`",
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


def _write_once(path: Path, data: bytes) -> None:
    """Write the key unless somebody was faster."""
    folder = file_io.open_root(str(path.parent))
    by = f".{os.getpid()}-{threading.get_ident()}"  # the routes run at once
    try:
        file_io.write_beside(folder, path.name, data, mode=0o600, by=by)
        file_io.put_new(folder, path.name, by=by)
        os.fsync(folder)
    except ChangedSince:
        return
    finally:
        file_io.discard(folder, path.name, by)
        os.close(folder)


def parse_key(text: str) -> bytes:
    """The public key in a text that `truekeep sync key` printed."""
    given = text.strip()
    try:
        raw = base64.b64decode(given.removeprefix(_PREFIX), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    key = raw[:_RAW]
    if not given.startswith(_PREFIX) or len(raw) != _RAW + _CHECK or raw[_RAW:] != _check(key):
        raise BadInput(
            f"{given[:60]!r} is not the key of a host, or not all of it",
            hint=f"`truekeep sync key` on the host prints it; it begins with {_PREFIX}",
        )
    return key


def _render_key(raw: bytes) -> str:
    return _PREFIX + base64.urlsafe_b64encode(raw + _check(raw)).decode()


def _check(raw: bytes) -> bytes:
    return hashlib.sha256(b"truekeep host key\0" + raw).digest()[:_CHECK]


def _message(machine: str, place: str, digest: str) -> bytes:
    words = (machine, place, digest)
    return b"\0".join((_DOMAIN, *(word.encode("utf-8", "surrogateescape") for word in words)))
