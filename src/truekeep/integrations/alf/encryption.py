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

from truekeep.core.errors import BadInput, BadSetup
from truekeep.core.extras import install_command

MAGIC = b"age-encryption.org/"
ARMOUR = b"-----BEGIN AGE ENCRYPTED FILE-----"


def is_sealed(head: bytes) -> bool:
    return head.startswith((MAGIC, ARMOUR))


def check_age() -> None:
    """Raise unless archives can be encrypted here."""
    _age()


def _age() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise BadSetup("encrypted archives need pyrage, which is not here", hint=install_command("age")) from error
    return pyrage


def parse_recipients(given: Sequence[str]) -> list[Any]:
    """Public keys: age1…, an SSH public key, or a file that has one in each line.

    No error quotes what was given as a key or stands in a file: it could be the private one.
    """
    age = _age()
    found: list[Any] = []
    for number, text in enumerate(given, start=1):
        for place, bare in _recipient_lines(text, number):
            try:
                found.append((age.ssh if bare.startswith("ssh-") else age.x25519).Recipient.from_str(bare))
            except age.RecipientError as error:
                raise BadInput(f"{place} is no public key of age", hint="`age-keygen -y FILE` prints one") from error
    if not found:
        raise BadInput("there is no public key to encrypt to", hint="--encrypt age1…")
    return found


def _recipient_lines(text: str, number: int) -> Iterator[tuple[str, str]]:
    """What may be public keys, each with where it stands."""
    place = "the key" if number == 1 else f"key {number}"
    _refuse_private(text, f"{place} that --encrypt names")
    if text.startswith(("age1", "ssh-")):
        yield f"{place} that --encrypt names", text
        return
    try:
        lines = Path(text).expanduser().read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInput(
            f"{text} is no public key, and no file with one: {error.strerror}", hint="age1…, or a file"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{text} is no file of public keys: it is no text", hint="age1…, or a file of them") from error
    for at, line in enumerate(lines, start=1):
        bare = line.strip()
        if bare and not bare.startswith("#"):
            _refuse_private(bare, f"{text}:{at}", file=text)
            yield f"{text}:{at}", bare


def _refuse_private(bare: str, place: str, *, file: str = "FILE") -> None:
    is_ssh = bare.startswith("-----BEGIN") and "PRIVATE KEY" in bare
    if not (is_ssh or bare.upper().startswith(("AGE-SECRET-KEY-", "AGE-PLUGIN-"))):
        return
    tool = f"ssh-keygen -y -f {file}" if is_ssh else f"age-keygen -y {file}"
    raise BadInput(f"{place} is a private key; one encrypts to the public one", hint=f"`{tool}` prints it")


def parse_identities(given: Sequence[str]) -> list[Any]:
    """Private keys from files: of age, or of SSH without a passphrase."""
    age = _age()
    found: list[Any] = []
    for text in given:
        before = len(found)
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
            if len(found) == before:
                raise BadInput(f"{text} holds no private key", hint="--identity FILE, as age-keygen writes it")
        except age.IdentityError as error:
            raise BadInput(f"{text} holds no private key that can be used", hint="has it a passphrase?") from error
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


def unsealed(source: BinaryIO, identities: Sequence[Any], name: str) -> BinaryIO:
    """What was encrypted, in memory. `name`: of the archive, for errors."""
    age = _age()
    plain = io.BytesIO()
    try:
        age.decrypt_io(source, plain, list(identities))
    except (age.DecryptError, OSError) as error:  # what is cut off is an OSError
        raise BadInput(
            f"this key does not open {name}, or it is damaged", hint="name the right key with --identity"
        ) from error
    plain.seek(0)
    return plain
