"""sha256 without hashlib: importing that loads OpenSSL, which takes as long as the rest of a hook.

For short texts; hashlib's own is faster for large files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:  # as Python's own `random` does
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # before Python 3.12
        except ImportError:
            from hashlib import sha256

__all__ = ["sha256"]
