"""Encryption with age, for archives on storage that nobody need trust. The plain archive never touches a disk.

Written: what the archive writer gives goes through a pipe into age, and from there to the file. Read: age decrypts into
memory, because an archive is read from its end.
"""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from truekeep.errors import BadInput, BadSetup

MAGIC = b"age-encryption.org/"
ARMOUR = b"-----BEGIN AGE ENCRYPTED FILE-----"


def is_sealed(head: bytes) -> bool:
    return head.startswith((MAGIC, ARMOUR))


def _age() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise BadSetup("encryption needs pyrage", hint="pip install 'truekeep[age]'") from error
    return pyrage


def parse_recipients(given: Sequence[str]) -> list[Any]:
    """Public keys: age1…, an SSH public key, or a file that has one in each line."""
    age = _age()
    found: list[Any] = []
    for text in given:
        path = Path(text).expanduser()
        is_key = text.startswith(("age1", "ssh-"))
        try:
            lines = [text] if is_key else path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{text} is no public key and no file with one: {error}", hint="age1…, or a file") from error
        for line in lines:
            bare = line.strip()
            if not bare or bare.startswith("#"):
                continue
            try:
                found.append((age.ssh if bare.startswith("ssh-") else age.x25519).Recipient.from_str(bare))
            except age.RecipientError as error:
                raise BadInput(f"{bare[:40]} is no public key of age", hint="`age-keygen -y` prints one") from error
    if not found:
        raise BadInput("there is no public key to encrypt to", hint="--encrypt age1…")
    return found


def parse_identities(given: Sequence[str]) -> list[Any]:
    """Private keys from files: of age, or of SSH without a passphrase."""
    age = _age()
    found: list[Any] = []
    for text in given:
        try:
            data = Path(text).expanduser().read_bytes()
        except OSError as error:
            raise BadInput(f"{text}: {error.strerror}", hint="name the file of the private key") from error
        try:
            if data.startswith(b"-----BEGIN"):
                found.append(age.ssh.Identity.from_buffer(data))
                continue
            lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
            found += [age.x25519.Identity.from_str(line) for line in lines if line.startswith("AGE-SECRET-KEY-")]
        except age.IdentityError as error:
            raise BadInput(f"{text} holds no private key that can be used", hint="has it a passphrase?") from error
    if not found:
        raise BadInput("there is no private key in it", hint="--identity FILE, as age-keygen writes it")
    return found


@contextmanager
def sealing(target: BinaryIO, recipients: Sequence[Any]) -> Iterator[BinaryIO]:
    """A stream that encrypts whatever is written to it, into a file."""
    age = _age()
    source, sink = os.pipe()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with os.fdopen(source, "rb") as plain:
                age.encrypt_io(plain, target, list(recipients))
        except BaseException as error:  # noqa: BLE001 - told by the other side
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    stream = os.fdopen(sink, "wb")

    def finish() -> None:
        with suppress(BrokenPipeError):
            stream.close()
        thread.join()

    try:
        yield stream
    except BrokenPipeError:
        finish()
        if not failures:
            raise
    finally:
        finish()
    if failures:
        raise failures[0] if isinstance(failures[0], OSError) else OSError(f"age could not write it: {failures[0]}")


def unsealed(source: BinaryIO, identities: Sequence[Any]) -> BinaryIO:
    """What was encrypted, in memory."""
    age = _age()
    plain = io.BytesIO()
    try:
        age.decrypt_io(source, plain, list(identities))
    except (age.DecryptError, OSError) as error:  # what is cut off is an OSError
        raise BadInput(
            "this key does not open it, or it is damaged", hint="name the right key with --identity"
        ) from error
    plain.seek(0)
    return plain
