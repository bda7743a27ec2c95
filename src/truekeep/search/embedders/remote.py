"""Embedders over HTTP: one client for every server with OpenAI's `/embeddings`, and a table of the known services.

Gemini has its own request: only there it can be told what is a query and what a document. A request has one deadline,
which covers finding the host, connecting, waiting, reading and every retry. A response is read up to a size and checked
in every part. Keys come from the environment, go out in a header, and appear in no message and no file. Redirects are
not followed, and a key is not sent unencrypted to another machine.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from truekeep.search.embedders import EmbedderFailed, Vector, validate_vectors
from truekeep.text.secrets.scanner import withhold

if TYPE_CHECKING:
    import httpx
    from tenacity import RetryCallState

_MAX_RESPONSE_BYTES = 32 << 20  # twice what the largest batch of the widest model needs
_MAX_RETRY_AFTER = 20.0  # seconds
_TRIES, _QUERY_TRIES = 4, 2  # a person waits for a query
_MAX_QUOTED = 200  # characters of a server's error message
_BLANK_TEXT = "."  # sent for a text of spaces, which several providers refuse


# --- The table ------------------------------------------------------------------------------------------------------


class EmbedRequest(NamedTuple):
    """The texts of one request."""

    model: str
    texts: Sequence[str]
    is_query: bool
    dimensions: int | None


def _render_openai(service: Service, request: EmbedRequest) -> dict[str, Any]:
    body = {"model": request.model, "input": request.texts}
    body |= service.query_fields if request.is_query else service.document_fields
    return body if request.dimensions is None else body | {service.size_field: request.dimensions}


def _read_openai(response: Any) -> list[Any]:
    """Return the vectors in the order of the texts, which need not be the order of the response."""
    items = response["data"]
    indexes = [item.get("index") for item in items]
    if all(index is None for index in indexes):
        return [item["embedding"] for item in items]
    if sorted(indexes) != list(range(len(items))):
        raise ValueError("the indexes do not fit the texts")
    return [item["embedding"] for item in sorted(items, key=lambda item: int(item["index"]))]


def _render_gemini(service: Service, request: EmbedRequest) -> dict[str, Any]:
    common: dict[str, Any] = {"model": f"models/{_gemini_model(request.model)}"}
    common |= service.query_fields if request.is_query else service.document_fields
    if request.dimensions is not None:
        common[service.size_field] = request.dimensions
    return {"requests": [{**common, "content": {"parts": [{"text": text}]}} for text in request.texts]}


def _read_gemini(response: Any) -> list[Any]:
    return [item["values"] for item in response["embeddings"]]


def _gemini_model(model: str) -> str:
    return model.removeprefix("models/")


class Service(NamedTuple):
    """How one provider is asked. Sizes are UTF-8 bytes, because no tokenizer makes more tokens than bytes."""

    base_url: str = ""
    path: str = "/embeddings"
    model: str = ""
    key_names: tuple[str, ...] = ()  # environment variables
    key_header: tuple[str, str] = ("Authorization", "Bearer ")
    max_texts: int = 128  # of one request
    max_bytes: int = 250_000  # of one request
    text_bytes: int = 8_192  # longer texts are cut
    size_field: str = "dimensions"
    document_fields: Mapping[str, Any] = {}
    query_fields: Mapping[str, Any] = {}
    render: Callable[[Service, EmbedRequest], dict[str, Any]] = _render_openai
    read: Callable[[Any], list[Any]] = _read_openai


SERVICES: Mapping[str, Service] = {
    # Local servers often run on a laptop, and a batch must fit into the deadline.
    "openai-compatible": Service(max_texts=32, max_bytes=128_000),
    "ollama": Service(
        base_url="http://127.0.0.1:11434",
        path="/v1/embeddings",
        model="nomic-embed-text",
        max_texts=32,
        max_bytes=128_000,
        text_bytes=32_768,  # the server cuts to the model's window
    ),
    "openai": Service(  # allows 2,048 texts, 300,000 tokens, and 8,192 tokens of a text
        base_url="https://api.openai.com/v1",
        model="text-embedding-3-small",
        key_names=("OPENAI_API_KEY",),
    ),
    "gemini": Service(
        base_url="https://generativelanguage.googleapis.com/v1beta",
        path="/models/{model}:batchEmbedContents",
        model="gemini-embedding-001",
        key_names=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        key_header=("x-goog-api-key", ""),  # not ?key=, which every access log would have
        max_texts=100,
        size_field="outputDimensionality",
        document_fields={"taskType": "RETRIEVAL_DOCUMENT"},
        query_fields={"taskType": "RETRIEVAL_QUERY"},
        render=_render_gemini,
        read=_read_gemini,
    ),
    "voyage": Service(
        base_url="https://api.voyageai.com/v1",
        model="voyage-4-large",
        key_names=("VOYAGE_API_KEY",),
        max_bytes=120_000,  # 120,000 tokens for the large models
        text_bytes=32_000,
        size_field="output_dimension",
        document_fields={"input_type": "document", "truncation": True},
        query_fields={"input_type": "query", "truncation": True},
    ),
    "mistral": Service(
        base_url="https://api.mistral.ai/v1",
        model="mistral-embed",
        key_names=("MISTRAL_API_KEY",),
        max_bytes=32_000,  # 16,000 tokens in all, which is enforced but not documented
        size_field="output_dimension",
    ),
}


# --- Making one -----------------------------------------------------------------------------------------------------


class ApiKey:
    """A key that is not shown by repr, and that can be removed from a text."""

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def __repr__(self) -> str:
        return f"<key from {self.name}>"

    def reveal(self) -> str:
        return self._value

    def hide_in(self, text: str) -> str:
        """Return the text without the key, also without parts of it."""
        for size in range(len(self._value), min(8, len(self._value)) - 1, -1):
            for at in range(len(self._value) - size + 1):
                text = text.replace(self._value[at : at + size], "[key]")
        return text


def has_key(provider: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment has a key for this provider; False for those that need none."""
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
    """Make the embedder that a configuration describes, without any request. Raises EmbedderFailed."""
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


def _read_credential(provider: str, service: Service, key_env: str, environ: Mapping[str, str]) -> ApiKey | None:
    names = (key_env,) if key_env else service.key_names
    for name in names:
        value = environ.get(name, "").strip()
        if value:
            if not (value.isascii() and value.isprintable() and " " not in value):
                # Such a key cannot go into a header, and httpx would quote it in its error.
                raise EmbedderFailed(f"the key in {name} has characters that no key has", hint=f"Set {name} again.")
            return ApiKey(name, value)
    if names:
        raise EmbedderFailed(f"{provider} needs a key", hint=f"Set the environment variable {' or '.join(names)}.")
    return None


def _split_url(url: str, *, credential: ApiKey | None) -> SplitResult:
    """Split a base URL, or raise EmbedderFailed if it is not safe to use and to show."""
    from truekeep.text.secrets.scanner import find_secrets

    hint = "It looks like https://host:port/v1."
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises when it is not a number
    except ValueError:
        raise EmbedderFailed("the base URL of the embedder is not a URL", hint=hint) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not url.isprintable() or " " in url:
        raise EmbedderFailed("the base URL of the embedder is not an http or https URL", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        raise EmbedderFailed(
            "the base URL of the embedder has a user name, a query or a fragment, which may hold a key",
            hint="Put the key into an environment variable and name that as key_env.",
        )
    if len(parts.path) > 16 and find_secrets(parts.path):  # a short path such as /v1 is not searched
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


class HttpResponse(NamedTuple):
    """A response, cut at the size limit."""

    status: int
    retry_after: str
    body: bytes


class TemporaryFailure(EmbedderFailed):
    """A failure that may be gone at the next try."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float = 0.0) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class Remote:
    """An embedder behind an HTTP API.

    `timeout` is for one request with its retries, not for a whole call: a thousand texts are several requests.
    """

    def __init__(
        self,
        provider: str,
        *,
        model: str = "",
        base_url: str = "",
        credential: ApiKey | None = None,
        dimensions: int | None = None,
        timeout: float = 30.0,
        query_timeout: float = 5.0,
        sleep: Callable[[float], None] = time.sleep,
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
        self._label = f"{provider} at {parts.hostname}"
        self._credential = credential
        self._dimensions = dimensions
        self._timeout = timeout
        self._query_timeout = min(timeout, query_timeout)
        self._sleep = sleep
        self._make_transport = make_transport
        self._client: httpx.Client | None = None
        self._size = dimensions or 0

    def __repr__(self) -> str:
        return f"<Remote {self.model} of {self._label}>"

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        """Return one vector for each text, in order. Raises EmbedderFailed."""
        fitting = [_fit(text, self._service.text_bytes) for text in texts]
        found: list[Any] = []
        for batch in _iter_batches(fitting, self._service.max_texts, self._service.max_bytes):
            found += self._ask(EmbedRequest(self.model, batch, is_query, self._dimensions))
        vectors = validate_vectors(found, len(texts), who=self._label)
        if vectors:
            self._check_size(len(vectors[0]))
        return vectors

    def _check_size(self, size: int) -> None:
        """Raise EmbedderFailed if the size is not the configured one, or not that of the first response."""
        self._size = self._size or size
        if size != self._size:
            raise EmbedderFailed(f"{self._label} returned vectors of {size} numbers, not of {self._size}")

    def _ask(self, request: EmbedRequest) -> list[Any]:
        from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, stop_before_delay

        seconds, tries = (self._query_timeout, _QUERY_TRIES) if request.is_query else (self._timeout, _TRIES)
        deadline = time.monotonic() + seconds
        body = json.dumps(self._service.render(self._service, request), ensure_ascii=False).encode()
        retrying = Retrying(
            retry=retry_if_exception_type(TemporaryFailure),
            stop=stop_after_attempt(tries) | stop_before_delay(seconds),
            wait=_retry_pause,
            sleep=self._sleep,
            reraise=True,
        )
        return retrying(lambda: self._read(self._exchange(body, deadline, seconds), len(request.texts)))

    def _exchange(self, body: bytes, deadline: float, seconds: float) -> HttpResponse:
        """Send one request and stop waiting at the deadline.

        The timeouts of httpx are for single reads, and looking up a host name has none. So the request runs in a
        thread, which ends by its own timeouts when nothing waits for it any more.
        """
        import httpx

        outcomes: queue.SimpleQueue[HttpResponse | Exception] = queue.SimpleQueue()

        def send() -> None:
            try:
                outcomes.put(self._send(body, deadline))
            except Exception as error:  # noqa: BLE001 - passed on to the waiting thread
                outcomes.put(error)

        threading.Thread(target=send, name="truekeep-embed", daemon=True).start()
        try:
            outcome = outcomes.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            outcome = httpx.ReadTimeout("late")
        # Causes are not chained: they hold the request, which holds the key.
        if isinstance(outcome, httpx.TimeoutException):
            raise EmbedderFailed(f"{self._label} did not answer within {seconds:g} s") from None
        if isinstance(outcome, httpx.TransportError):
            raise TemporaryFailure(f"{self._label} cannot be reached: {self._presentable(str(outcome))}") from None
        if isinstance(outcome, Exception):
            raise EmbedderFailed(f"{self._label} cannot be asked: {type(outcome).__name__}") from None
        return outcome

    def _send(self, body: bytes, deadline: float) -> HttpResponse:
        import httpx

        received = bytearray()
        timeout = max(0.001, deadline - time.monotonic())
        with self._connect().stream("POST", self._url, content=body, timeout=timeout) as response:
            for piece in response.iter_raw():
                received += piece
                if len(received) > _MAX_RESPONSE_BYTES:
                    break
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("late")
        return HttpResponse(response.status_code, response.headers.get("Retry-After", ""), bytes(received))

    def _connect(self) -> httpx.Client:
        """Return the client, made once: reading the certificates takes longer than a local request."""
        import httpx

        if self._client is None:
            headers = {
                "Content-Type": "application/json",
                "Accept": "application/json",
                "Accept-Encoding": "identity",  # a compressed response could grow without limit
                "User-Agent": "truekeep",
            }
            if self._credential is not None:
                name, prefix = self._service.key_header
                headers[name] = prefix + self._credential.reveal()
            self._client = httpx.Client(
                headers=headers,
                transport=self._make_transport() if self._make_transport else None,
                limits=httpx.Limits(max_keepalive_connections=0),
                trust_env=not self._is_local,  # no proxy to this machine
                follow_redirects=False,
            )
        return self._client

    def _read(self, response: HttpResponse, count: int) -> list[Any]:
        """Return the vectors of a response, one for each text, unchecked."""
        status = response.status
        if not 200 <= status < 300:
            raise self._refusal(response)
        if len(response.body) > _MAX_RESPONSE_BYTES:
            raise EmbedderFailed(f"{self._label} answered with more than {_MAX_RESPONSE_BYTES >> 20} MB")
        # Not chained: these errors quote the response, which may quote the key.
        try:
            parsed = json.loads(response.body)
        except (ValueError, RecursionError):
            raise EmbedderFailed(f"{self._label} did not answer in JSON") from None
        try:
            found = self._service.read(parsed)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
            raise EmbedderFailed(
                f"{self._label} answered without vectors that fit the texts{self._quote(response.body)}"
            ) from None
        if len(found) != count:
            raise EmbedderFailed(f"{self._label} returned {len(found)} vectors for {count} texts")
        return found

    def _refusal(self, response: HttpResponse) -> EmbedderFailed:
        status = response.status
        if 300 <= status < 400:
            return EmbedderFailed(
                f"{self._label} answered with a redirect ({status}), which is not followed",
                hint="Set base_url to the address that finally answers.",
            )
        message = f"{self._label} answered with {status}{self._quote(response.body)}"
        if status in (408, 429) or status >= 500:
            return TemporaryFailure(message, retry_after=_parse_retry_after(response.retry_after))
        if status in (401, 403):
            named = f" in {self._credential.name}" if self._credential else ", named by key_env"
            return EmbedderFailed(message, hint=f"Check the key{named}.")
        return EmbedderFailed(message, hint="Check the model and the base URL.")

    def _quote(self, body: bytes) -> str:
        said = self._presentable(_find_message(body))
        return f": {said}" if said else ""

    def _presentable(self, said: str) -> str:
        """Make a server's message safe to show: short, printable, without our key or any other."""
        # Unprintable characters go first, they could split the key; the cut comes last, it could leave half a key.
        said = "".join(char for char in " ".join(said[:8_192].split()) if char.isprintable())
        if self._credential is not None:
            said = self._credential.hide_in(said)
        return withhold(said[: 2 * _MAX_QUOTED])[:_MAX_QUOTED]


# --- Small things ---------------------------------------------------------------------------------------------------


def _fit(text: str, most: int) -> str:
    """Cut a text between characters, and replace what JSON or a server in C cannot hold."""
    fitting = text.replace("\0", " ").encode("utf-8", "replace")[:most].decode("utf-8", "ignore")
    return fitting if fitting.strip() else _BLANK_TEXT


def _iter_batches(texts: Sequence[str], max_texts: int, max_bytes: int) -> Iterator[list[str]]:
    batch: list[str] = []
    total = 0
    for text in texts:
        size = len(text.encode())
        if batch and (len(batch) == max_texts or total + size > max_bytes):
            yield batch
            batch, total = [], 0
        batch.append(text)
        total += size
    if batch:
        yield batch


def _retry_pause(state: RetryCallState) -> float:
    """Return the seconds before the next try: as long as the server asks for, at least an exponential backoff."""
    from tenacity import wait_exponential_jitter

    failure = state.outcome.exception() if state.outcome else None
    asked_for = failure.retry_after if isinstance(failure, TemporaryFailure) else 0.0
    return max(wait_exponential_jitter(multiplier=0.125, jitter=0.125)(state), min(asked_for, _MAX_RETRY_AFTER))


def _parse_retry_after(value: str) -> float:
    """Parse a Retry-After header, of seconds or a date, into seconds; 0 for anything else."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return seconds if seconds > 0 else 0.0


def _find_message(body: bytes) -> str:
    """Return the message of an error: `error.message`, `error`, `message` or `detail`, else the whole body."""
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
