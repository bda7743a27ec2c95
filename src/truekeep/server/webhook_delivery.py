"""One POST of a webhook: only to addresses on the open network, to none by way of another, and not for long.

The host's name is resolved here, every address that it has is looked at, and the connection goes to one of those: a
name that answers differently a second time changes nothing. Redirects are not followed, and proxies of the environment
are not used.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from urllib.parse import urlsplit

import anyio
import httpcore

from truekeep import __version__
from truekeep.core.errors import BadInput, TruekeepError

SECONDS = 10.0  # for everything; less than the first delay between attempts, so that none overlaps the next
_MAX_URL = 2_000
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")  # older versions of Python call more of the others global
ALLOW = "--allow-private-webhooks"


class NotPublic(TruekeepError):
    """The address is one of a private network, of this machine, or of a cloud's own services."""

    code = "not-public"


def check_webhook_url(given: str, *, allow_private: bool) -> str:
    """The address, if messages may go there: https; http on this machine where private ones are allowed."""
    try:
        parts = urlsplit(given)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadInput(f"{given[:80]!r} is no address", hint="as https://chat.example.com/hooks/1") from None
    if len(given) > _MAX_URL or not given.isascii() or not given.isprintable() or " " in given or not host:
        raise BadInput(f"{given[:80]!r} is no address", hint="as https://chat.example.com/hooks/1")
    if parts.username is not None or parts.fragment:
        raise BadInput("a webhook's address has no user and no #", hint="the secret signs each message")
    if parts.scheme == "http" and not (allow_private and _is_loopback_name(host)):
        raise BadInput("a webhook goes to https alone", hint=f"http is for this machine's own addresses, with {ALLOW}")
    if parts.scheme not in ("http", "https"):
        raise BadInput("a webhook goes to https alone", hint="as https://chat.example.com/hooks/1")
    if not allow_private and (address := _as_address(host)) is not None and not is_public(address):
        raise BadInput(f"{host} is not on the open network", hint=f"{ALLOW} allows it")
    return given


def post(url: str, secret: str, number: str, body: str, *, allow_private: bool) -> str:
    """Send a message; gives why it was not taken, or "" if it was."""
    from standardwebhooks import Webhook

    try:
        check_webhook_url(url, allow_private=allow_private)
        now = datetime.now(UTC)
        headers = {
            "content-type": "application/json",
            "user-agent": f"truekeep/{__version__}",
            "webhook-id": number,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": Webhook(secret).sign(number, now, body),
        }
        status = anyio.run(_post, url, headers, body.encode(), allow_private)
    except TruekeepError as error:
        return error.message
    except TimeoutError:
        return f"it did not answer in {SECONDS:.0f} seconds"
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as error:
        return _why(error)
    if 300 <= status < 400:
        return f"it answered {status}: redirects are not followed"
    return "" if 200 <= status < 300 else f"it answered {status}"


async def _post(url: str, headers: dict[str, str], body: bytes, allow_private: bool) -> int:
    with anyio.fail_after(SECONDS):
        async with httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(), network_backend=PublicNetwork(allow_private=allow_private)
        ) as pool:
            listed = [(name.encode(), value.encode()) for name, value in headers.items()]
            async with pool.stream("POST", url, headers=[(b"host", _host(url)), *listed], content=body) as response:
                return response.status  # what else it says is not read


def _host(url: str) -> bytes:
    return urlsplit(url).netloc.encode()


def _why(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not valid: {cause.verify_message}"
        if isinstance(cause, socket.gaierror):
            return "its host is not known"
        cause = cause.__cause__ or cause.__context__
    return f"it cannot be reached ({type(error).__name__})"


class PublicNetwork(httpcore.AsyncNetworkBackend):
    """Connects to a host's addresses if all of them are on the open network."""

    def __init__(self, *, allow_private: bool) -> None:
        self._inner = httpcore.AnyIOBackend()
        self._allow_private = allow_private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        if not self._allow_private and not all(is_public(_parse(address)) for address in addresses):
            raise NotPublic("its host has an address that is not on the open network", hint=f"{ALLOW} allows it")
        failure: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, OSError) as error:
                failure = error
        raise failure or httpcore.ConnectError("no address")

    async def connect_unix_socket(self, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        raise NotPublic("it is no address of the network")

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """True if an address, and the IPv4 address that it may stand for, is on the open network."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        inner = [address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        elif address not in _GLOBAL_IPV6:
            return False
        if not all(is_public(one) for one in inner if one is not None):
            return False
    return address.is_global and not address.is_multicast


def _parse(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(address.partition("%")[0])


def _as_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_loopback_name(host: str) -> bool:
    address = _as_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)
