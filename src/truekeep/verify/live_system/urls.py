"""Asks web servers whether a URL answers. Goes online, so only when the user asked for it."""

from __future__ import annotations

import queue
import re
import socket
import threading
import time
from collections.abc import Iterable, Mapping, MutableMapping
from contextlib import suppress
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, urljoin, urlsplit

from truekeep.text.secrets.scanner import find_secrets, withhold
from truekeep.verify.live_system.answers import CONFIDENTIAL_NAME, State, SystemAnswer, make_answer

if TYPE_CHECKING:
    import ssl

_MAX_PARALLEL = 6
_MAX_REDIRECTS = 5
_MAX_HEAD_BYTES = 16 << 10
_NOT_ASKED_STATUS = -1  # instead of an HTTP status; not cached
_CLOUD_METADATA_ADDRESSES = ("168.63.129.16",)  # Azure's; other clouds have theirs in private ranges
_SAFE_IN_URL = "%/:=&?~+!$,;'@()*[]|"

CachedUrl = tuple[float, int, str]


def query_urls(
    urls: Iterable[str],
    *,
    cached: MutableMapping[str, CachedUrl],
    now: float,
    max_age: float,
    timeout: float,
    max_urls: int,
    allow_private: bool = False,
) -> dict[str, SystemAnswer]:
    """Ask whether these URLs answer.

    The URLs come from text that anyone may have written. So a URL is not asked if it holds a credential or leads,
    directly or by a redirect, to a network that is not public. `timeout` is for one URL with all its redirects.
    `cached` has time, status (0: no answer) and text for each; unknown ones are kept for a tenth of `max_age`.
    """
    seen: dict[str, SystemAnswer | None] = dict.fromkeys(urls)
    keys = {url: url.partition("#")[0] for url in seen}
    waiting: dict[str, None] = {}
    for url, key in keys.items():
        refusal = _find_refusal(key)
        seen[url] = make_answer("unknown", refusal) if refusal else _find_cached(cached, key, now, max_age)
        if seen[url] is None and len(waiting) < max_urls:
            waiting[key] = None
    answers = _ask_web(list(waiting), timeout, allow_private=allow_private)
    cached.update({key: (now, status, what) for key, (status, what) in answers.items() if status != _NOT_ASKED_STATUS})
    unasked = (_NOT_ASKED_STATUS, f"not asked: at most {max_urls} URLs are asked at a time")
    return {url: known or _answer_for_url(*answers.get(keys[url], unasked)) for url, known in seen.items()}


def _answer_for_url(status: int, what: str) -> SystemAnswer:
    state: State = "absent" if status in (404, 410) else "there" if 200 <= status < 400 else "unknown"
    return make_answer(state, what, {"status": str(status)} if status > 0 else None)


def _find_cached(cached: Mapping[str, CachedUrl], key: str, now: float, max_age: float) -> SystemAnswer | None:
    try:
        at, status, what = cached[key]
        seen = _answer_for_url(status, what)
        limit = max_age / 10 if seen.state == "unknown" else max_age
        return seen if 0 <= now - at <= limit else None
    except (KeyError, TypeError, ValueError, AttributeError):  # the cache file may hold anything
        return None


def _find_refusal(url: str) -> str:
    """Return why a URL is not asked; "" when it may be."""
    parts = _split_url(url)
    if parts is None:
        return "not an http or https URL"
    named = [pair.partition("=")[0] for pair in parts.query.split("&") if "=" in pair]
    if "@" in parts.netloc or any(re.search(CONFIDENTIAL_NAME, name) for name in named) or find_secrets(url):
        return "holds a credential, so it is not asked"
    return ""


def _split_url(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and len(url) <= 2_000
    except ValueError:
        return None
    return parts if is_web and url.isprintable() and " " not in url else None


def _ask_web(urls: list[str], timeout: float, *, allow_private: bool) -> dict[str, tuple[int, str]]:
    """Return status and text for each URL. Threads, because looking up a host name has no time limit."""
    late = (0, f"did not answer within {timeout:g} s")
    answers = dict.fromkeys(urls, late)
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    arrived: queue.SimpleQueue[tuple[str, tuple[int, str]]] = queue.SimpleQueue()
    end = time.monotonic() + timeout * -(-len(urls) // _MAX_PARALLEL) + 0.5

    def work() -> None:
        while time.monotonic() < end:
            try:
                url = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                arrived.put((url, _follow(url, time.monotonic() + timeout, allow_private=allow_private)))
            except TimeoutError:
                arrived.put((url, late))
            except Exception as error:  # noqa: BLE001 - a foreign server may break any assumption
                arrived.put((url, (0, _explain(error))))

    for url in urls:
        waiting.put(url)
    for _ in urls[:_MAX_PARALLEL]:
        threading.Thread(target=work, name="truekeep-web", daemon=True).start()
    for _ in urls:
        try:
            url, answer = arrived.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            break
        answers[url] = answer
    return answers


def _explain(error: Exception) -> str:
    import ssl

    if isinstance(error, (socket.gaierror, UnicodeError)):
        return "its name cannot be looked up"
    if isinstance(error, ssl.SSLError):
        return f"cannot be asked safely: {getattr(error, 'verify_message', '') or error.reason or 'TLS failed'}"
    return f"cannot be reached: {getattr(error, 'strerror', '') or type(error).__name__}"


def _follow(url: str, deadline: float, *, allow_private: bool) -> tuple[int, str]:
    """Ask and follow redirects; each hop is checked like the first."""
    from http.client import responses

    hop, by_way = url, ""
    for _ in range(_MAX_REDIRECTS + 1):
        parts = _split_url(hop)
        if parts is None or "@" in parts.netloc:
            return 0, "redirects to a URL that is not asked"
        host = (parts.hostname or "").encode("idna").decode("ascii")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        addresses = _resolve(host, port)
        if not allow_private and not all(map(_is_public, addresses)):
            return (
                _NOT_ASKED_STATUS,
                f"{'redirects to' if by_way else 'is on'} a network that is not public, which is not asked",
            )
        for method in ("HEAD", "GET"):  # some servers reject HEAD, or answer 404 to it
            status, location = _exchange(method, parts, host, addresses, port, deadline)
            if 0 < status < 400 or status in (401, 429):
                break
        if not (location and status in (301, 302, 303, 307, 308)):
            if not status:
                return 0, "does not answer in HTTP"
            said = f"answers {status} {responses.get(status, '')}".rstrip()
            said += ", at least to those who are not signed in" if status in (404, 410) else ""
            return status, said + by_way
        hop = urljoin(hop, location)
        by_way = f", after a redirect to {withhold(hop.partition('?')[0].partition('#')[0])}"
    return 0, f"redirects more than {_MAX_REDIRECTS} times"


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _is_public(address: str) -> bool:
    """Whether an address is public; an IPv4 address inside an IPv6 one counts by the inner address."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in ip_network("64:ff9b::/96"):  # NAT64
            inner = IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is None and ip not in ip_network("2000::/3"):
            return False
        ip = inner or ip
    is_odd = (
        ip.is_multicast or ip.is_reserved or ip in ip_network("192.0.0.0/24") or str(ip) in _CLOUD_METADATA_ADDRESSES
    )
    return ip.is_global and not is_odd


def _exchange(
    method: str, parts: SplitResult, host: str, addresses: list[str], port: int, deadline: float
) -> tuple[int, str]:
    """Return status and Location of one response, reading only its head; status 0 without one.

    A socket and not an HTTP client, because the connection must go to the address that was checked, and one deadline
    must cover every read: a server that sends a byte now and then would keep a client waiting for ever.
    """
    target = quote(parts.path or "/", safe=_SAFE_IN_URL)
    target += f"?{quote(parts.query, safe=_SAFE_IN_URL)}" if parts.query else ""
    name = f"[{host}]" if ":" in host else host
    name += f":{parts.port}" if parts.port else ""
    headers = f"Host: {name}\r\nUser-Agent: truekeep\r\nAccept: */*\r\nConnection: close\r\n"
    received = b""
    with _connect(addresses, port, deadline) as plain:
        plain.settimeout(_seconds_left(deadline))
        wire = _ssl_context().wrap_socket(plain, server_hostname=host.rstrip(".")) if parts.scheme == "https" else plain
        with wire, suppress(ConnectionError):  # some close on HEAD, some right after the answer
            wire.sendall(f"{method} {target} HTTP/1.1\r\n{headers}\r\n".encode("ascii"))
            while len(received) < _MAX_HEAD_BYTES:
                head, end, rest = received.partition(b"\r\n\r\n")
                if end and re.match(rb"HTTP/1\.1 1\d\d\b", head):
                    received = rest  # 100 Continue, 103 Early Hints
                elif end:
                    break
                else:
                    wire.settimeout(_seconds_left(deadline))
                    piece = wire.recv(1 << 12)
                    if not piece:
                        break
                    received += piece
    head = received.partition(b"\r\n\r\n")[0]
    status = re.match(rb"HTTP/1\.[01] ([2-5]\d\d)\b", head)
    location = re.search(rb"(?im)^location:[ \t]*(\S+)", head)
    return int(status[1]) if status else 0, location[1].decode("utf-8", "replace") if location else ""


def _connect(addresses: list[str], port: int, deadline: float) -> socket.socket:
    failure: OSError = OSError("no address")
    for place, address in enumerate(addresses := addresses[:4]):
        try:
            return socket.create_connection((address, port), timeout=_seconds_left(deadline) / (len(addresses) - place))
        except OSError as error:
            failure = error
    raise failure


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


@cache
def _ssl_context() -> ssl.SSLContext:
    """Return the trusted certificates, read once: that takes longer than many requests."""
    import httpx

    return httpx.create_ssl_context()
