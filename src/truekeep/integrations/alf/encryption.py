"""Encryption with age, for archives on untrusted storage. The plain archive is never written to a disk.

Writing: the archive goes through a pipe into age, and from there to the file. Reading: age decrypts into memory, as a
ZIP file has to be read from its end.
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

BINARY_HEADER = b"age-encryption.org/"
ARMOR_HEADER = b"-----BEGIN AGE ENCRYPTED FILE-----"


def is_encrypted(head: bytes) -> bool:
    return head.startswith((BINARY_HEADER, ARMOR_HEADER))


def require_age() -> None:
    """Raise BadSetup if pyrage is not installed."""
    _age()


def _age() -> Any:
    try:
        import pyrage
    except ImportError as error:
        raise BadSetup(
            "encrypted archives need the package pyrage, which is not installed", hint=install_command("age")
        ) from error
    return pyrage


def parse_recipients(given: Sequence[str]) -> list[Any]:
    """Parse public keys: age1…, an SSH public key, or a file with one key per line.

    Errors never quote a key: it could be the private one.
    """
    age = _age()
    found: list[Any] = []
    for number, text in enumerate(given, start=1):
        for place, bare in _recipient_lines(text, number):
            try:
                found.append((age.ssh if bare.startswith("ssh-") else age.x25519).Recipient.from_str(bare))
            except age.RecipientError as error:
                raise BadInput(f"{place} is not a public key", hint="`age-keygen -y FILE` prints one") from error
    if not found:
        raise BadInput("no public key to encrypt to was given", hint="use --encrypt age1…")
    return found


def _recipient_lines(text: str, number: int) -> Iterator[tuple[str, str]]:
    """Candidates for public keys, each with its place for error messages."""
    place = "the key" if number == 1 else f"key {number}"
    _refuse_private(text, f"{place} given with --encrypt")
    if text.startswith(("age1", "ssh-")):
        yield f"{place} given with --encrypt", text
        return
    try:
        lines = Path(text).expanduser().read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise BadInput(
            f"{text} is neither a public key nor a readable file: {error.strerror}", hint="give age1… or a file of keys"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{text} is not a file of public keys: it is not text", hint="give age1… or a file of keys"
        ) from error
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
    raise BadInput(f"{place} is a private key; encryption needs the public key", hint=f"`{tool}` prints it")


def parse_identities(given: Sequence[str]) -> list[Any]:
    """Read private keys from files: of age, or of SSH without a passphrase."""
    age = _age()
    found: list[Any] = []
    for text in given:
        before = len(found)
        try:
            data = Path(text).expanduser().read_bytes()
        except OSError as error:
            raise BadInput(f"{text}: {error.strerror}", hint="give the file with the private key") from error
        try:
            if data.startswith(b"-----BEGIN"):
                found.append(age.ssh.Identity.from_buffer(data))
                continue
            lines = [line.strip() for line in data.decode("utf-8", "replace").splitlines()]
            found += [age.x25519.Identity.from_str(line) for line in lines if line.startswith("AGE-SECRET-KEY-")]
            if len(found) == before:
                raise BadInput(
                    f"{text} does not contain a private key", hint="use --identity with a file from age-keygen"
                )
        except age.IdentityError as error:
            raise BadInput(
                f"{text} does not contain a usable private key", hint="remove its passphrase, or use another key"
            ) from error
    return found


@contextmanager
def encrypting(target: BinaryIO, recipients: Sequence[Any]) -> Iterator[BinaryIO]:
    """A stream that encrypts everything written to it into a file."""
    age = _age()
    source, sink = os.pipe()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with os.fdopen(source, "rb") as plain:
                age.encrypt_io(plain, target, list(recipients))
        except BaseException as error:  # noqa: BLE001 - raised again in the writing thread
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


def decrypt(source: BinaryIO, identities: Sequence[Any], name: str) -> BinaryIO:
    """The decrypted file, in memory. `name`: for error messages."""
    age = _age()
    plain = io.BytesIO()
    try:
        age.decrypt_io(source, plain, list(identities))
    except (age.DecryptError, OSError) as error:  # OSError: the file is cut off
        raise BadInput(
            f"{name} cannot be decrypted with this key, or it is damaged", hint="give the right key with --identity"
        ) from error
    plain.seek(0)
    return plain
