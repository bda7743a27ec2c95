"""Embedders over HTTP: one class, and a table of how each provider is asked and how it answers.

A request has one deadline, which covers finding the host, connecting, waiting, reading and every retry. An answer is
read up to a size and believed in nothing. Keys come from the environment, go out in a header, and stay out of all that
is said or kept here. Redirects are not followed, and a key is not sent in the clear to another machine.
"""

from __future__ import annotations

import json
import os
import queue
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from truekeep.search.embedders import EmbedderFailed, Vector, checked
from truekeep.text.secrets.scanner import withhold

if TYPE_CHECKING:
    import ssl

    import httpx

_LARGEST_ANSWER = 32 << 20  # twice what the largest batch of the widest model needs
_LONGEST_PAUSE = 20.0  # seconds; a server may ask for more, and then waits for nobody
_TRIES, _QUERY_TRIES = 4, 2  # someone waits for a query
_SHOWN = 200  # characters of what a server says about an error
_BLANK = "."  # stands for a text of nothing but spaces, which several providers refuse


# --- The table ------------------------------------------------------------------------------------------------------


class Ask(NamedTuple):
    """What one request is about."""

    model: str
    texts: Sequence[str]
    is_query: bool
    dimensions: int | None


class Service(NamedTuple):
    """How one provider is asked. Sizes are UTF-8 bytes, because no tokenizer makes more tokens than bytes."""

    base_url: str
    path: str
    model: str
    key_names: tuple[str, ...]
    key_header: tuple[str, str]
    most_texts: int
    most_bytes: int
    text_bytes: int
    render: Callable[[Ask], dict[str, Any]]
    read: Callable[[Any], list[Any]]


def _render_openai(ask: Ask) -> dict[str, Any]:
    return {"model": ask.model, "input": ask.texts, **_sized("dimensions", ask)}


def _render_ollama(ask: Ask) -> dict[str, Any]:
    return {"model": ask.model, "input": ask.texts, "truncate": True, **_sized("dimensions", ask)}


def _render_gemini(ask: Ask) -> dict[str, Any]:
    model = _gemini_model(ask.model)
    task = "RETRIEVAL_QUERY" if ask.is_query else "RETRIEVAL_DOCUMENT"
    common = {"model": f"models/{model}", "taskType": task, **_sized("outputDimensionality", ask)}
    return {"requests": [{**common, "content": {"parts": [{"text": text}]}} for text in ask.texts]}


def _render_voyage(ask: Ask) -> dict[str, Any]:
    kind = "query" if ask.is_query else "document"
    return {"model": ask.model, "input": ask.texts, "input_type": kind, "truncation": True} | _sized(
        "output_dimension", ask
    )


def _render_mistral(ask: Ask) -> dict[str, Any]:
    return {"model": ask.model, "input": ask.texts, **_sized("output_dimension", ask)}


def _sized(name: str, ask: Ask) -> dict[str, Any]:
    return {} if ask.dimensions is None else {name: ask.dimensions}


def _gemini_model(model: str) -> str:
    return model.removeprefix("models/")


def _read_indexed(answer: Any) -> list[Any]:
    """The vectors of an OpenAI-like answer, in the order of the texts, which need not be the order of the answer."""
    items = answer["data"]
    places = [item.get("index") for item in items]
    if all(place is None for place in places):
        return [item["embedding"] for item in items]
    if sorted(places) != list(range(len(items))):
        raise ValueError("the places do not fit the texts")
    return [item["embedding"] for item in sorted(items, key=lambda item: int(item["index"]))]


def _read_ollama(answer: Any) -> list[Any]:
    return list(answer["embeddings"])


def _read_gemini(answer: Any) -> list[Any]:
    return [item["values"] for item in answer["embeddings"]]


_BEARER = ("Authorization", "Bearer ")

SERVICES: Mapping[str, Service] = {
    "openai-compatible": Service(
        base_url="",
        path="/embeddings",
        model="",
        key_names=(),
        key_header=_BEARER,
        most_texts=32,  # these and Ollama often run on somebody's laptop, and a batch must fit into the deadline
        most_bytes=128_000,
        text_bytes=8_192,
        render=_render_openai,
        read=_read_indexed,
    ),
    "ollama": Service(
        base_url="http://127.0.0.1:11434",
        path="/api/embed",
        model="nomic-embed-text",
        key_names=(),
        key_header=_BEARER,
        most_texts=32,
        most_bytes=128_000,
        text_bytes=32_768,  # the server cuts to the model's window
        render=_render_ollama,
        read=_read_ollama,
    ),
    "openai": Service(
        base_url="https://api.openai.com/v1",
        path="/embeddings",
        model="text-embedding-3-small",
        key_names=("OPENAI_API_KEY",),
        key_header=_BEARER,
        most_texts=128,  # 2,048 are allowed; fewer keep an answer to a few megabytes
        most_bytes=250_000,  # 300,000 tokens
        text_bytes=8_192,  # 8,192 tokens, and more is an error
        render=_render_openai,
        read=_read_indexed,
    ),
    "gemini": Service(
        base_url="https://generativelanguage.googleapis.com/v1beta",
        path="/models/{model}:batchEmbedContents",
        model="gemini-embedding-001",
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        key_header=("x-goog-api-key", ""),  # not ?key=, which would be in every log of addresses
        most_texts=100,
        most_bytes=250_000,
        text_bytes=8_192,  # 2,048 tokens; the server cuts
        render=_render_gemini,
        read=_read_gemini,
    ),
    "voyage": Service(
        base_url="https://api.voyageai.com/v1",
        path="/embeddings",
        model="voyage-4-large",
        key_names=("VOYAGE_API_KEY",),
        key_header=_BEARER,
        most_texts=128,  # 1,000 are allowed
        most_bytes=120_000,  # 120,000 tokens for the large models
        text_bytes=32_000,
        render=_render_voyage,
        read=_read_indexed,
    ),
    "mistral": Service(
        base_url="https://api.mistral.ai/v1",
        path="/embeddings",
        model="mistral-embed",
        key_names=("MISTRAL_API_KEY",),
        key_header=_BEARER,
        most_texts=128,  # 256 are allowed
        most_bytes=32_000,  # 16,000 tokens in all, which is not documented but enforced
        text_bytes=8_192,
        render=_render_mistral,
        read=_read_indexed,
    ),
}


# --- Making one -----------------------------------------------------------------------------------------------------


class Credential:
    """A key that does not show itself, and that can hide itself in a text."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def __repr__(self) -> str:
        return f"<key from {self.name}>"

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: str) -> str:
        """The text without the key, also where only a part of it is said."""
        width = min(8, len(self._value))
        parts = {self._value[at : at + width] for at in range(len(self._value) - width + 1)}
        shown: list[str] = []
        hidden_until = 0
        for at, char in enumerate(text):
            if text[at : at + width] in parts:
                if at >= hidden_until:
                    shown.append("[key]")
                hidden_until = at + width
            if at >= hidden_until:
                shown.append(char)
        return "".join(shown)


def has_key(provider: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment holds a key for this provider. Those that need none have none."""
    service = SERVICES.get(provider)
    return service is not None and any(environ.get(name, "").strip() for name in service.key_names)


def make_remote(
    provider: str,
    *,
    model: str = "",
    base_url: str = "",
    key_env: str = "",
    dimensions: int | None = None,
    timeout: float = 30.0,
    environ: Mapping[str, str] = os.environ,
) -> Remote:
    """The embedder that a configuration describes. Nothing is asked over the network yet. Raises EmbedderFailed."""
    service = SERVICES.get(provider)
    if service is None:
        raise EmbedderFailed(f"no embedder is called {provider!r}", hint=f"One of: {', '.join(SERVICES)}.")
    return Remote(
        provider,
        model=model,
        base_url=base_url,
        credential=_read_credential(provider, service, key_env, environ),
        dimensions=dimensions,
        timeout=timeout,
    )


def _read_credential(provider: str, service: Service, key_env: str, environ: Mapping[str, str]) -> Credential | None:
    names = (key_env,) if key_env else service.key_names
    for name in names:
        value = environ.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                # It cannot go into a header, and the errors that say so quote it.
                raise EmbedderFailed(f"the key in {name} has characters that no key has", hint=f"Set {name} again.")
            return Credential(name, value)
    if names:
        raise EmbedderFailed(f"{provider} needs a key", hint=f"Set the environment variable {' or '.join(names)}.")
    return None


def _split_url(url: str, *, credential: Credential | None) -> SplitResult:
    """The parts of a base URL that is safe to ask and to name."""
    from truekeep.text.secrets.scanner import find_secrets

    hint = "It looks like https://host:port/v1."
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is none
    except ValueError:
        raise EmbedderFailed("the base URL of the embedder is not a URL", hint=hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise EmbedderFailed("the base URL of the embedder is not an http or https URL", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        raise EmbedderFailed(
            "the base URL of the embedder has a user name, a query or a fragment, which may hold a key",
            hint="Put the key into an environment variable and name that as key_env.",
        )
    if len(parts.path) > 16 and find_secrets(parts.path):  # a short path such as /v1 is not worth the search
        raise EmbedderFailed(
            "the path of the base URL of the embedder holds something like a key",
            hint="Put the key into an environment variable and name that as key_env.",
        )
    if credential is not None and parts.scheme == "http" and not _is_loopback(parts.hostname):
        raise EmbedderFailed(
            f"the key in {credential.name} would go to {parts.hostname} unencrypted",
            hint="Use an https base URL.",
        )
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


# --- Asking ---------------------------------------------------------------------------------------------------------


class HttpAnswer(NamedTuple):
    """What came back, whole or up to the size that is read."""

    status: int
    retry_after: str
    body: bytes


class MayPass(EmbedderFailed):
    """A failure that another try may not meet."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class Remote:
    """An embedder behind an HTTP API.

    `timeout` is for one request with its retries, not for a whole call: a thousand texts are several requests, and as
    long as each is answered there is nothing to give up.
    """

    def __init__(
        self,
        provider: str,
        *,
        model: str = "",
        base_url: str = "",
        credential: Credential | None = None,
        dimensions: int | None = None,
        timeout: float = 30.0,
        query_timeout: float = 5.0,
        sleep: Callable[[float], object] = time.sleep,
        make_transport: Callable[[], httpx.BaseTransport] | None = None,
    ) -> None:
        service = SERVICES[provider]
        self.provider = provider
        self.model = model or service.model
        if not self.model:
            raise EmbedderFailed(f"{provider} needs the name of a model", hint="Set model in the configuration.")
        if not (base_url or service.base_url):
            raise EmbedderFailed(f"{provider} needs the address of a server", hint="Set base_url, as http://host/v1.")
        base = (base_url or service.base_url).rstrip("/")
        parts = _split_url(base, credential=credential)
        self.key = base if dimensions is None else f"{base} dimensions={dimensions}"
        self._service = service
        self._url = base + service.path.replace("{model}", quote(_gemini_model(self.model), safe=""))
        self._is_local = _is_loopback(parts.hostname or "")
        self._is_plain = parts.scheme == "http"
        self._who = f"{provider} at {parts.hostname}"
        self._credential = credential
        self._dimensions = dimensions
        self._timeout = timeout
        self._query_timeout = min(timeout, query_timeout)
        self._sleep = sleep
        self._make_transport = make_transport
        self._tls: ssl.SSLContext | None = None
        self._size = dimensions or 0

    def __repr__(self) -> str:
        return f"<Remote {self.model} of {self._who}>"

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        """One vector for each text, in order. Raises EmbedderFailed."""
        fitting = [_fit(text, self._service.text_bytes) for text in texts]
        found: list[Any] = []
        for batch in _iter_batches(fitting, self._service.most_texts, self._service.most_bytes):
            ask = Ask(self.model, batch, is_query, self._dimensions)
            found += self._ask(ask)
        vectors = checked(found, len(texts), who=self._who)
        if vectors:
            self._check_size(len(vectors[0]))
        return vectors

    def _check_size(self, size: int) -> None:
        """The size that was asked for, or else the one that came first: another size is another model."""
        self._size = self._size or size
        if size != self._size:
            raise EmbedderFailed(f"{self._who} returned vectors of {size} numbers, not of {self._size}")

    def _ask(self, ask: Ask) -> list[Any]:
        seconds, tries = (self._query_timeout, _QUERY_TRIES) if ask.is_query else (self._timeout, _TRIES)
        deadline = time.monotonic() + seconds
        body = json.dumps(self._service.render(ask), ensure_ascii=False).encode()
        for turn in range(tries):
            try:
                return self._read(self._exchange(body, deadline, seconds), len(ask.texts))
            except MayPass as failure:
                pause = max(_jitter(0.25 * 2**turn), min(failure.retry_after, _LONGEST_PAUSE))
                if turn + 1 == tries or time.monotonic() + pause >= deadline:
                    raise
            self._sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _exchange(self, body: bytes, deadline: float, seconds: float) -> HttpAnswer:
        """One request, given up at the deadline whatever it is doing then.

        The timeouts of an HTTP client are for single reads, and looking up a host name has none at all. So the request
        has a thread of its own: past the deadline nobody listens to it any more, and it ends by its own timeouts.
        """
        import httpx

        outcomes: queue.SimpleQueue[HttpAnswer | Exception] = queue.SimpleQueue()

        def send() -> None:
            try:
                outcomes.put(self._send(body, deadline))
            except Exception as error:  # noqa: BLE001 - whatever it is, the one who waits must hear of it
                outcomes.put(error)

        threading.Thread(target=send, name="truekeep-embed", daemon=True).start()
        try:
            outcome = outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            outcome = httpx.ReadTimeout("late")
        # Causes are not chained: they carry the request, and that carries the key.
        if isinstance(outcome, httpx.TimeoutException):
            raise EmbedderFailed(f"{self._who} did not answer within {seconds:g} s") from None
        if isinstance(outcome, httpx.TransportError):
            raise MayPass(f"{self._who} cannot be reached: {self._presentable(str(outcome))}") from None
        if isinstance(outcome, Exception):
            raise EmbedderFailed(f"{self._who} cannot be asked: {type(outcome).__name__}") from None
        return outcome

    def _send(self, body: bytes, deadline: float) -> HttpAnswer:
        import httpx

        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",  # what is not packed cannot grow while it is unpacked
            "User-Agent": "truekeep",
        }
        if self._credential is not None:
            name, prefix = self._service.key_header
            headers[name] = prefix + self._credential.reveal()
        received = bytearray()
        with (
            httpx.Client(
                transport=self._make_transport() if self._make_transport else None,
                verify=self._trust(),
                trust_env=not self._is_local,  # a proxy has no business between us and this machine
                follow_redirects=False,
                timeout=max(0.001, deadline - time.monotonic()),
            ) as client,
            client.stream("POST", self._url, content=body, headers=headers) as response,
        ):
            for piece in response.iter_raw():
                received += piece
                if len(received) > _LARGEST_ANSWER:
                    break
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("late")
        return HttpAnswer(response.status_code, response.headers.get("Retry-After", ""), bytes(received))

    def _trust(self) -> ssl.SSLContext:
        """Made once, because reading the certificates takes longer than a request to this machine."""
        import ssl

        import httpx

        if self._tls is None:
            # Without TLS none are needed; a context that knows no certificate trusts nobody.
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self._is_plain else httpx.create_ssl_context()
        return self._tls

    def _read(self, answer: HttpAnswer, count: int) -> list[Any]:
        """The numbers in an answer: as many lists as texts, of which nothing else is known."""
        status = answer.status
        if not 200 <= status < 300:
            raise self._refusal(answer)
        if len(answer.body) > _LARGEST_ANSWER:
            raise EmbedderFailed(f"{self._who} answered with more than {_LARGEST_ANSWER >> 20} MB")
        # Not chained: these errors quote the answer, which may quote the key.
        try:
            parsed = json.loads(answer.body)
        except (ValueError, RecursionError):
            raise EmbedderFailed(f"{self._who} did not answer in JSON") from None
        try:
            found = self._service.read(parsed)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            raise EmbedderFailed(
                f"{self._who} answered without vectors that fit the texts{self._quote(answer.body)}"
            ) from None
        if len(found) != count:
            raise EmbedderFailed(f"{self._who} returned {len(found)} vectors for {count} texts")
        return found

    def _refusal(self, answer: HttpAnswer) -> EmbedderFailed:
        status = answer.status
        if 300 <= status < 400:
            return EmbedderFailed(
                f"{self._who} answered with a redirect ({status}), which is not followed",
                hint="Set base_url to the address that finally answers.",
            )
        message = f"{self._who} answered with {status}{self._quote(answer.body)}"
        if status in (408, 429) or status >= 500:
            return MayPass(message, retry_after=_parse_retry_after(answer.retry_after))
        if status in (401, 403):
            named = f" in {self._credential.name}" if self._credential else ", named by key_env"
            return EmbedderFailed(message, hint=f"Check the key{named}.")
        return EmbedderFailed(message, hint="Check the model and the base URL.")

    def _quote(self, body: bytes) -> str:
        said = self._presentable(_find_message(body))
        return f": {said}" if said else ""

    def _presentable(self, said: str) -> str:
        """What a server says, fit to be shown: short, printable, and without our key or anybody's."""
        # Unprintable characters go first, since they could stand inside the key; the cut comes last, since it could
        # leave half of one.
        said = "".join(char for char in " ".join(said[:8_192].split()) if char.isprintable())
        if self._credential is not None:
            said = self._credential.hide_in(said)
        return withhold(said[: 2 * _SHOWN])[:_SHOWN]


# --- Small things ---------------------------------------------------------------------------------------------------


def _fit(text: str, most: int) -> str:
    """The text as it can be sent: cut between characters, without what JSON or a server in C cannot hold."""
    fitting = text.replace("\0", " ").encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    return fitting if fitting.strip() else _BLANK


def _iter_batches(texts: Sequence[str], most_texts: int, most_bytes: int) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for text in texts:
        size = len(text.encode())
        if batch and (len(batch) == most_texts or total + size > most_bytes):
            yield batch
            batch, total = [], 0
        batch.append(text)
        total += size
    if batch:
        yield batch


def _jitter(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, keeps no secret


def _parse_retry_after(value: str) -> float:
    """Seconds from now, from either form of the header; 0 for anything else."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return seconds if seconds > 0 else 0.0


def _find_message(body: bytes) -> str:
    """The sentence in an error: `error.message`, `error`, `message` or `detail`, or else the whole body."""
    text = body[:65_536].decode("utf-8", "replace")
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(parsed, dict):
        said = parsed.get("error", parsed.get("message", parsed.get("detail")))
        if isinstance(said, dict):
            said = said.get("message")
        if isinstance(said, str):
            return said
    return text
