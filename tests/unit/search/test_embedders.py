"""Embedders: the contract for each, what goes over the wire, and what a bad server cannot do."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import socket
import struct
import subprocess
import sys
import threading
import traceback
import weakref
from array import array
from collections.abc import Callable, Iterator, Sequence
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from tests.support.embedders import TEXTS, EmbedderContract, apart, length
from tests.support.helpers import NOW
from truekeep.search.embedders import Embedder, EmbedderFailed, validate_vectors
from truekeep.search.embedders.onnx import Transformer
from truekeep.search.embedders.remote import SERVICES, ApiKey, Remote, has_key, make_remote
from truekeep.search.embedders.static import Static
from truekeep.text.words import WORD

KEY = "sk-test-4f9aQ7zLm2Xc8Vb1Nn5Kj3Hg6Fd0Sa"
SIZE = 16

# --- A server that speaks every provider's protocol -----------------------------------------------------------------


class Request(NamedTuple):
    path: str
    headers: dict[str, str]
    body: Any


class Refused(Exception):
    """The server's no, with a status and a sentence."""


Fault = Callable[["Handler"], None]


def hash_vector(text: str, size: int = SIZE) -> list[float]:
    """Numbers that depend on the text alone, and are not of unit length."""
    data = b"".join(hashlib.sha256(f"{part} {text}".encode()).digest() for part in range(size // 16 + 1))
    return [number / 1000 - 30 for number in struct.unpack(f">{size}H", data[: 2 * size])]


class Server(ThreadingHTTPServer):
    """Answers on this machine, strictly. Faults are used up one by one before it answers as it should."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.closing = threading.Event()
        self.flooded = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are what half of these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append(Request(self.path, headers, json.loads(body)))
        if self.server.faults:
            self.server.faults.pop(0)(self)
            return
        try:
            self.reply(200, self.answer(self.server.requests[-1]))
        except Refused as refused:
            self.reply(*refused.args)

    def answer(self, request: Request) -> Any:
        provider, _, path = request.path.removeprefix("/").partition("/")
        body = request.body
        service = SERVICES[provider]
        if service.key_names:
            name, prefix = service.key_header
            if request.headers.get(name.lower()) != prefix + KEY:
                raise Refused(401, {"error": {"message": "no such key"}})
        if provider == "gemini":
            if path != "v1beta/models/gemini-embedding-001:batchEmbedContents":
                raise Refused(404, {"error": {"message": path}})
            asked = body["requests"]
            texts = [one["content"]["parts"][0]["text"] for one in asked]
            if {one["model"] for one in asked} != {"models/gemini-embedding-001"}:
                raise Refused(400, {"error": {"message": "model"}})
            sizes = {one.get("outputDimensionality", SIZE) for one in asked}
            size = sizes.pop()
        else:
            texts = body["input"]
            size = body.get("dimensions", body.get("output_dimension", SIZE))
        self.check(texts, service.max_texts)
        vectors = [hash_vector(text, size) for text in texts]
        if provider == "gemini":
            return {"embeddings": [{"values": vector} for vector in vectors]}
        if path != "v1/embeddings":
            raise Refused(404, {"detail": path})
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        return {"object": "list", "data": data[::-1], "model": body["model"], "usage": {}}

    @staticmethod
    def check(texts: list[str], most: int) -> None:
        if not all(text.strip() for text in texts):
            raise Refused(400, {"error": {"message": "'$.input' is invalid"}})
        if len(texts) > most:
            raise Refused(400, {"error": {"message": "too many inputs"}})

    def reply(self, status: int, content: Any, **headers: str) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, data: bytes) -> None:
        """Send a byte at a time, for as long as the test runs."""
        for byte in data:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.closing.wait(0.01):
                return


def serving() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()
    for left in threading.enumerate():
        if left.name == "truekeep-embed":
            left.join(5)
            assert not left.is_alive()


@pytest.fixture
def server() -> Iterator[Server]:
    yield from serving()


@pytest.fixture(scope="module")
def lasting_server() -> Iterator[Server]:
    yield from serving()


def a_remote(server: Server, provider: str = "openai", **options: Any) -> Remote:
    """A remote embedder that never really sleeps."""
    base = f"{server.url}/{provider}"
    base += {"gemini": "/v1beta", "ollama": ""}.get(provider, "/v1")
    names = SERVICES[provider].key_names
    options = {
        "base_url": base,
        "model": "local" if provider == "openai-compatible" else "",
        "credential": ApiKey(names[0], KEY) if names else None,
        "sleep": lambda seconds: None,
        **options,
    }
    return Remote(provider, **options)


# --- The contract ---------------------------------------------------------------------------------------------------


class RemoteContract(EmbedderContract):
    module = "truekeep.search.embedders.remote"
    provider: ClassVar[str]

    @pytest.fixture
    def embedder(self, lasting_server: Server) -> Embedder:
        return a_remote(lasting_server, self.provider)

    def test_key_is_nowhere_in_sight(self, embedder: Embedder) -> None:
        assert KEY not in repr(embedder) + str(vars(embedder)) + embedder.key + embedder.model


class TestOpenAICompatible(RemoteContract):
    provider = "openai-compatible"


class TestOllama(RemoteContract):
    provider = "ollama"


class TestOpenAI(RemoteContract):
    provider = "openai"


class TestGemini(RemoteContract):
    provider = "gemini"


class TestVoyage(RemoteContract):
    provider = "voyage"


class TestMistral(RemoteContract):
    provider = "mistral"


LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,-"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tokenizer(folder: Path, *, special: bool = True, most: int | None = None) -> None:
    """One token for each character."""
    from tokenizers import Regex, Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Split
    from tokenizers.processors import TemplateProcessing

    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *LETTERS))}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Split(Regex("[\\s\\S]"), "isolated")
    if special:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]", special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
        )
    if most is not None:
        tokenizer.enable_truncation(most)
    tokenizer.enable_padding(pad_id=0, pad_token="[PAD]", length=8)  # as many files ship it; it must not matter
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))


def table() -> Any:
    import numpy

    return numpy.random.default_rng(7).normal(size=(len(SPECIAL) + len(LETTERS), SIZE)).astype(numpy.float32)


def write_model(
    path: Path,
    *,
    inputs: Sequence[str] = ("input_ids", "attention_mask"),
    kind: str = "INT64",
    outputs: Sequence[str] = ("last_hidden_state",),
    scale: float = 1.0,
) -> None:
    """A graph that looks its tokens up in a table, and averages them if a sentence is asked for."""
    from onnx import TensorProto, helper, numpy_helper, save

    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["tokens"])]
    results = []
    for name in outputs:
        if name == "sentence_embedding":
            nodes.append(helper.make_node("ReduceMean", ["tokens"], [name], axes=[1], keepdims=0))
            results.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", SIZE]))
        elif name == "logits":
            nodes.append(helper.make_node("ReduceSum", ["tokens"], [name], keepdims=0))
            results.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, []))
        else:
            nodes.append(helper.make_node("Identity", ["tokens"], [name]))
            results.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", "width", SIZE]))
    element = getattr(TensorProto, kind)
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, element, ["batch", "width"]) for name in inputs],
        results,
        [numpy_helper.from_array(table() * scale, "table")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))


def a_model(folder: Path, **options: Any) -> Path:
    write_tokenizer(folder)
    write_model(folder / "model.onnx", **options)
    return folder


@pytest.fixture(scope="module")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return a_model(tmp_path_factory.mktemp("models") / "tiny")


class TestTransformer(EmbedderContract):
    module = "truekeep.search.embedders.onnx"

    @pytest.fixture
    def embedder(self, tiny_model: Path) -> Embedder:
        return Transformer(tiny_model)


class TestStatic(EmbedderContract):
    module = "truekeep.search.embedders.static"

    @pytest.fixture
    def embedder(self, tmp_path: Path) -> Embedder:
        return Static(lexicon=str(tmp_path / "lexicon.bin"))

    @pytest.mark.slow
    def test_pieces_are_those_of_the_tokenizer(self, tmp_path: Path) -> None:
        """Joining the pair that became a piece first is the whole rule, so no tokenizer library is needed."""
        from importlib.util import find_spec

        from tokenizers import Tokenizer

        spec = find_spec("wordllama")
        assert spec is not None
        assert spec.submodule_search_locations
        folder = Path(spec.submodule_search_locations[0])
        tokenizer = Tokenizer.from_file(str(folder / "tokenizers/l2_supercat_tokenizer_config.json"))
        text = (Path(__file__).parents[3] / "docs/format.md").read_text() + "größe naïve 数据库 データ кот ñandú"
        static = Static(lexicon=str(tmp_path / "lexicon.bin"))
        static.embed(["x"])
        for word in set(WORD.findall(text.lower())):
            assert list(static.pieces_of(word)) == tokenizer.encode(word, add_special_tokens=False).ids, word

    def test_a_table_that_nobody_needs_is_let_go(self) -> None:
        static = Static()
        static.embed(["how the invoice exporter is set up"] * 40)
        static.pieces_of("exporter")
        watched = weakref.ref(static)
        del static
        assert watched() is None, "16 MB for each of them in a process that lives long"

    def test_words_of_a_whole_store_are_let_go(self) -> None:
        """A team server keeps many workspaces open: each had 67 MB of word vectors once it was indexed."""
        static = Static()
        few, many = ["the invoice exporter"] * 20, [f"word{number} other{number}" for number in range(3000)]
        before = static.embed(few)
        static.forget_words()
        assert len(static._rows) > 1, "a few words are kept"
        static.embed(many)
        static.forget_words()
        assert static._table is None
        assert not static._rows
        assert not static._cuts
        assert static.embed(few) == before

    @pytest.mark.slow
    def test_many_at_once_are_as_one_by_one(self, embedder: Embedder) -> None:
        texts = [f"{text} {number}" for number in range(40) for text in TEXTS]
        for one, many in zip((embedder.embed([text])[0] for text in texts), embedder.embed(texts), strict=True):
            assert apart(one, many) < 1e-5

    @pytest.mark.slow
    def test_a_broken_lexicon_is_made_again(self, tmp_path: Path) -> None:
        path = tmp_path / "lexicon.bin"
        good = Static(lexicon=str(path)).embed(["the cat"])
        whole = path.read_bytes()
        for broken in (b"", b"nonsense", whole[:1000], whole[:-1], whole + b"x"):
            path.write_bytes(broken)
            assert Static(lexicon=str(path)).embed(["the cat"]) == good
            assert path.read_bytes() == whole

    def test_neighbours_are_near_in_meaning(self, tmp_path: Path) -> None:
        static = Static(lexicon=str(tmp_path / "lexicon.bin"))
        (near,), nearness = static.neighbours(["database"], static.embed(["database"])[0])
        assert {"db", "sql"} <= set(near)
        assert "boat" not in near
        assert nearness.of(["sql"]) > nearness.of(["boat"])

    def test_missing_vectors_are_said(self, tmp_path: Path) -> None:
        with pytest.raises(EmbedderFailed, match="missing") as failure:
            Static(str(tmp_path))
        assert "pip install" in failure.value.hint


# --- What goes over the wire ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "is_query", "expected"),
    [
        ("openai", False, {"model": "text-embedding-3-small", "input": ["x"], "dimensions": 32}),
        ("openai-compatible", True, {"model": "local", "input": ["x"], "dimensions": 32}),
        ("ollama", False, {"model": "nomic-embed-text", "input": ["x"], "dimensions": 32}),
        ("mistral", False, {"model": "mistral-embed", "input": ["x"], "output_dimension": 32}),
        (
            "voyage",
            True,
            {
                "model": "voyage-4-large",
                "input": ["x"],
                "input_type": "query",
                "truncation": True,
                "output_dimension": 32,
            },
        ),
        (
            "voyage",
            False,
            {
                "model": "voyage-4-large",
                "input": ["x"],
                "input_type": "document",
                "truncation": True,
                "output_dimension": 32,
            },
        ),
        (
            "gemini",
            True,
            {
                "requests": [
                    {
                        "model": "models/gemini-embedding-001",
                        "content": {"parts": [{"text": "x"}]},
                        "taskType": "RETRIEVAL_QUERY",
                        "outputDimensionality": 32,
                    }
                ]
            },
        ),
    ],
)
def test_request(server: Server, provider: str, is_query: bool, expected: Any) -> None:
    (vector,) = a_remote(server, provider, dimensions=32).embed(["x"], is_query=is_query)
    assert len(vector) == 32
    (request,) = server.requests
    assert request.body == expected
    assert request.headers["accept-encoding"] == "identity"
    assert KEY not in request.path


def test_no_key_no_header(server: Server) -> None:
    a_remote(server, "ollama").embed(["x"])
    assert "authorization" not in server.requests[0].headers


def test_key_of_a_compatible_server(server: Server) -> None:
    remote = make_remote(
        "openai-compatible",
        model="local",
        base_url=f"{server.url}/openai-compatible/v1/",
        key_env="MY_KEY",
        environ={"MY_KEY": f" {KEY}\n"},
    )
    remote.embed(["x"])
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_batches_by_count_and_by_size(server: Server) -> None:
    remote = a_remote(server, "gemini")
    remote.embed(["x"] * 250)
    assert [len(request.body["requests"]) for request in server.requests] == [100, 100, 50]
    server.requests.clear()
    remote.embed(["ä" * 4000] * 40)  # 8,000 bytes each
    assert [len(request.body["requests"]) for request in server.requests] == [31, 9]


@pytest.mark.parametrize("provider", SERVICES)
def test_long_texts_are_cut_between_characters(server: Server, provider: str) -> None:
    a_remote(server, provider).embed(["a" + "数" * 50_000])
    body = server.requests[0].body
    sent = body["requests"][0]["content"]["parts"][0]["text"] if provider == "gemini" else body["input"][0]
    most = SERVICES[provider].text_bytes
    assert sent == "a" + "数" * ((most - 1) // 3)


def test_a_local_server_is_not_asked_through_a_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert len(a_remote(server).embed(["x"])) == 1


# --- Making one -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "names"),
    [
        ("openai", ["OPENAI_API_KEY"]),
        ("gemini", ["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
        ("voyage", ["VOYAGE_API_KEY"]),
        ("mistral", ["MISTRAL_API_KEY"]),
    ],
)
def test_keys_from_the_environment(provider: str, names: list[str]) -> None:
    assert not has_key(provider, {})
    assert not has_key(provider, {names[0]: "  "})
    with pytest.raises(EmbedderFailed) as caught:
        make_remote(provider, environ={})
    assert all(name in caught.value.hint for name in names)
    for name in names:
        assert has_key(provider, {name: KEY})
        remote = make_remote(provider, environ={name: KEY})
        assert remote.model == SERVICES[provider].model
        assert remote.key == SERVICES[provider].base_url


def test_providers_without_a_key() -> None:
    assert not has_key("ollama", {"OPENAI_API_KEY": KEY})
    assert not has_key("no-such-provider", {})
    assert make_remote("ollama", environ={}).key == "http://127.0.0.1:11434"


def test_key_tells_endpoint_and_dimensions() -> None:
    environ = {"OPENAI_API_KEY": KEY}
    keys = {
        make_remote("openai", environ=environ).key,
        make_remote("openai", dimensions=256, environ=environ).key,
        make_remote("openai", base_url="https://eu.api.openai.com/v1", environ=environ).key,
    }
    assert len(keys) == 3


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        ({"provider": "nope"}, "openai-compatible"),
        ({"provider": "openai-compatible", "model": "m"}, "base_url"),
        ({"provider": "openai-compatible", "base_url": "http://localhost/v1"}, "model"),
        ({"provider": "openai-compatible", "model": "m", "base_url": "http://h/v1", "key_env": "MINE"}, "MINE"),
        ({"provider": "ollama", "base_url": "ftp://host"}, "http"),
        ({"provider": "ollama", "base_url": "file:///etc/passwd"}, "http"),
        ({"provider": "ollama", "base_url": "host:11434"}, "http"),
        ({"provider": "ollama", "base_url": "http://"}, "http"),
        ({"provider": "ollama", "base_url": "http://[::1"}, "URL"),
        ({"provider": "ollama", "base_url": "http://host:port"}, "URL"),
        ({"provider": "ollama", "base_url": "http://ho st"}, "http"),
        ({"provider": "ollama", "base_url": "http://host/\nx"}, "http"),
        ({"provider": "ollama", "base_url": f"https://user:{KEY}@host"}, "key_env"),
        ({"provider": "ollama", "base_url": f"https://host/?key={KEY}"}, "key_env"),
        ({"provider": "ollama", "base_url": f"https://host/sk-proj-{'a1B2c3D4' * 6}/v1"}, "key_env"),
        ({"provider": "openai", "base_url": "http://example.org/v1"}, "https"),
        ({"provider": "openai", "base_url": "http://127.0.0.1.example.org/v1"}, "https"),
        ({"provider": "openai", "base_url": "http://10.0.0.1/v1"}, "https"),
    ],
)
def test_what_cannot_be_made(options: dict[str, Any], needle: str) -> None:
    with pytest.raises(EmbedderFailed) as caught:
        make_remote(**options, environ={"OPENAI_API_KEY": KEY})
    assert needle in f"{caught.value.message} {caught.value.hint}"
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("base_url", ["http://localhost:1/v1", "http://127.9.9.9/v1", "http://[::1]:8080/v1"])
def test_plain_http_is_fine_on_this_machine(base_url: str) -> None:
    assert make_remote("openai", base_url=base_url, environ={"OPENAI_API_KEY": KEY}).key == base_url


@pytest.mark.parametrize("value", [f"{KEY}\nX-Evil: 1", f"{KEY} x", f"{KEY}é", f"{KEY}\0"])
def test_a_key_that_fits_no_header(value: str) -> None:
    with pytest.raises(EmbedderFailed, match="OPENAI_API_KEY") as caught:
        make_remote("openai", environ={"OPENAI_API_KEY": value})
    assert KEY not in "".join(traceback.format_exception(caught.value))


# --- A bad server ---------------------------------------------------------------------------------------------------


def answering(status: int, content: Any, **headers: str) -> Fault:
    return lambda handler: handler.reply(status, content, **headers)


def hang(handler: Handler) -> None:
    handler.server.closing.wait(60)


def drip_body(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.drip(b" " * 100_000)


def drip_headers(handler: Handler) -> None:
    handler.drip(b"HTTP/1.0 200 OK\r\nX-Slow: " + b"x" * 60_000)


def flood(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(50):
        handler.wfile.write(b" " * (1 << 20))
        handler.server.flooded += 1


def hang_up(handler: Handler) -> None:
    handler.connection.shutdown(socket.SHUT_RDWR)


def break_off(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"data": [')


def rows(*vectors: Any, places: Sequence[Any] | None = None) -> dict[str, Any]:
    return {
        "data": [
            {"index": place, "embedding": vector}
            for place, vector in zip(places or range(len(vectors)), vectors, strict=True)
        ]
    }


@pytest.mark.parametrize("fault", [hang, drip_body, drip_headers])
@pytest.mark.parametrize("is_query", [False, True])
def test_deadline(server: Server, fault: Fault, is_query: bool) -> None:
    server.faults = [fault]
    remote = a_remote(server, timeout=60 if is_query else 1.5, query_timeout=1.5)
    with pytest.raises(EmbedderFailed, match=r"did not answer within 1\.5 s"):
        remote.embed(["x"], is_query=is_query)
    assert len(server.requests) == 1


def test_deadline_holds_where_no_timeout_reaches() -> None:
    """As when the name of the host is looked up and nobody answers."""
    import httpx

    over = threading.Event()

    class Stuck(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            over.wait(60)
            raise httpx.ConnectError("late")

    remote = Remote("ollama", timeout=0.1, make_transport=Stuck)
    with pytest.raises(EmbedderFailed, match="did not answer"):
        remote.embed(["x"])
    over.set()


@pytest.mark.parametrize(
    "body",
    [
        b'{"data": [{"index": 0, "embedding": [NaN, 1]}, {"index": 1, "embedding": [1, 1]}]}',
        b'{"data": [{"index": 0, "embedding": [Infinity, 1]}, {"index": 1, "embedding": [1, 1]}]}',
        b'{"data": [{"index": 0, "embedding": [-Infinity, 1]}, {"index": 1, "embedding": [1, 1]}]}',
        rows([1e300, 1.0], [1.0, 1.0]),
        rows(["NaN", 1.0], [1.0, 1.0]),
        rows([None, 1.0], [1.0, 1.0]),
        rows([[1.0], [1.0]], [1.0, 1.0]),
        rows([10**400, 1.0], [1.0, 1.0]),
        rows([1.0, 1.0], [1.0]),
        rows([], []),
        rows(None, None),
        rows(1, 2),
        rows("AACAPwAAgD8=", "AACAPwAAgD8="),
        rows({"a": 1}, {"a": 1}),
        rows([1.0, 1.0]),
        rows([1.0, 1.0], [1.0, 1.0], [1.0, 1.0]),
        rows([1.0, 1.0], [1.0, 1.0], places=[0, 0]),
        rows([1.0, 1.0], [1.0, 1.0], places=[1, 2]),
        rows([1.0, 1.0], [1.0, 1.0], places=[0, None]),
        rows([1.0, 1.0], [1.0, 1.0], places=["0", "1"]),
        rows([1.0, 1.0], [1.0, 1.0], places=[0, {}]),
        {"data": []},
        {"data": {}},
        {"data": 1},
        {"data": [1, 2]},
        {"error": {"message": "said with a 200"}},
        [],
        None,
        "text",
        b"",
        b"<html>proxy login</html>",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"data": ' + b"1" * 10_000 + b"}",
    ],
    ids=lambda body: repr(body)[:60],
)
def test_bad_answer(server: Server, body: Any) -> None:
    server.faults = [answering(200, body)]
    with pytest.raises(EmbedderFailed):
        a_remote(server).embed(["x", "y"])
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("provider", "body"),
    [
        ("ollama", {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]}),
        ("ollama", {"data": [{"embedding": [1.0]}]}),
        ("ollama", {"data": None}),
        ("ollama", {"embeddings": [[1.0], [1.0]]}),
        ("gemini", {"embeddings": [{"values": [1.0]}]}),
        ("gemini", {"embeddings": [{"values": [1.0]}, {}]}),
        ("gemini", {"embeddings": [[1.0], [1.0]]}),
        ("gemini", {"embeddings": [{"values": "ab"}, {"values": "cd"}]}),
    ],
)
def test_bad_answer_elsewhere(server: Server, provider: str, body: Any) -> None:
    server.faults = [answering(200, body)]
    with pytest.raises(EmbedderFailed):
        a_remote(server, provider).embed(["x", "y"])


def test_answer_out_of_order(server: Server) -> None:
    server.faults = [answering(200, rows([3.0, 0.0], [0.0, 2.0], [1.0, 1.0], places=[2, 0, 1]))]
    first, second, third = a_remote(server).embed(["x", "y", "z"])
    assert list(first) == [0, 1]
    assert second[0] == second[1]
    assert list(third) == [1, 0]


def test_answer_without_places(server: Server) -> None:
    server.faults = [answering(200, {"data": [{"embedding": [2, 0]}, {"embedding": [0, 2]}]})]
    assert [list(vector) for vector in a_remote(server).embed(["x", "y"])] == [[1, 0], [0, 1]]


def test_size_that_was_not_asked_for(server: Server) -> None:
    server.faults = [answering(200, rows([1.0] * 8))]
    with pytest.raises(EmbedderFailed, match="8 numbers, not of 32"):
        a_remote(server, dimensions=32).embed(["x"])


def test_size_that_changes(server: Server) -> None:
    remote = a_remote(server)
    remote.embed(["x"])
    server.faults = [answering(200, rows([1.0] * 8))]
    with pytest.raises(EmbedderFailed, match="8 numbers, not of 16"):
        remote.embed(["x"], is_query=True)


def test_size_that_changes_between_batches(server: Server) -> None:
    server.faults = [answering(200, rows(*[[1.0] * 8] * 128))]
    with pytest.raises(EmbedderFailed, match="different sizes"):
        a_remote(server).embed(["x"] * 129)


def test_flood(server: Server) -> None:
    server.faults = [flood]
    with pytest.raises(EmbedderFailed, match="more than 32 MB"):
        a_remote(server).embed(["x"])
    assert server.flooded < 50  # hung up on before it was done


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: Server, status: int) -> None:
    server.faults = [answering(status, b"", Location=f"{server.url}/openai/v1/embeddings")]
    with pytest.raises(EmbedderFailed, match=f"redirect .{status}"):
        a_remote(server).embed(["x"])
    assert len(server.requests) == 1


# --- Trying again ---------------------------------------------------------------------------------------------------


def test_retry_after(server: Server) -> None:
    server.faults = [answering(429, {"error": {"message": "slow down"}}, Retry_After="3")]
    pauses: list[float] = []
    assert len(a_remote(server, sleep=pauses.append).embed(["x"])) == 1
    assert pauses == [3]


@pytest.mark.parametrize(
    ("value", "low", "high"),
    [
        ("9999", 20, 20),
        ("inf", 20, 20),
        (format_datetime(NOW.replace(year=2999), usegmt=True), 20, 20),
        (format_datetime(NOW.replace(year=1999), usegmt=True), 0, 0.25),
        ("-5", 0, 0.25),
        ("nan", 0, 0.25),
        ("soon", 0, 0.25),
        ("", 0, 0.25),
    ],
)
def test_retry_after_of_any_kind(server: Server, value: str, low: float, high: float) -> None:
    server.faults = [answering(503, b"", Retry_After=value)]
    pauses: list[float] = []
    a_remote(server, sleep=pauses.append).embed(["x"])
    assert len(pauses) == 1
    assert low <= pauses[0] <= high


def test_no_waiting_past_the_deadline(server: Server) -> None:
    server.faults = [answering(429, b"", Retry_After="60")]
    pauses: list[float] = []
    with pytest.raises(EmbedderFailed, match="429"):
        a_remote(server, sleep=pauses.append, timeout=10).embed(["x"])
    assert not pauses


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
def test_three_failures_then_an_answer(server: Server, status: int) -> None:
    server.faults = [answering(status, b"")] * 3
    pauses: list[float] = []
    assert len(a_remote(server, sleep=pauses.append).embed(["x"])) == 1
    assert len(server.requests) == 4
    assert all(0.125 * 2**turn <= pause <= 0.25 * 2**turn for turn, pause in enumerate(pauses))


def test_failures_without_end(server: Server) -> None:
    server.faults = [answering(500, {"error": "llm embedding error: unsupported value: NaN"})] * 9
    with pytest.raises(EmbedderFailed, match="500: llm embedding error"):
        a_remote(server, "ollama").embed(["x"])
    assert len(server.requests) == 4


def test_a_query_gives_up_earlier(server: Server) -> None:
    server.faults = [answering(500, b"")] * 9
    with pytest.raises(EmbedderFailed, match="500"):
        a_remote(server).embed(["x"], is_query=True)
    assert len(server.requests) == 2


@pytest.mark.parametrize("fault", [hang_up, break_off])
def test_broken_connection(server: Server, fault: Fault) -> None:
    server.faults = [fault]
    assert len(a_remote(server).embed(["x"])) == 1
    server.faults = [fault] * 9
    with pytest.raises(EmbedderFailed, match="cannot be reached"):
        a_remote(server).embed(["x"])


def test_connection_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port, and nobody answers on it
        port = taken.getsockname()[1]
        pauses: list[float] = []
        remote = Remote("ollama", base_url=f"http://127.0.0.1:{port}", sleep=pauses.append)
        with pytest.raises(EmbedderFailed, match="cannot be reached"):
            remote.embed(["x"])
    assert len(pauses) == 3


def test_tls_to_a_server_without(server: Server) -> None:
    remote = Remote("ollama", base_url=server.url.replace("http:", "https:"), sleep=lambda seconds: None)
    with pytest.raises(EmbedderFailed, match="cannot be reached"):
        remote.embed(["x"])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_no_retry_when_it_is_our_fault(server: Server, status: int) -> None:
    server.faults = [answering(status, {"error": {"message": "no"}})]
    with pytest.raises(EmbedderFailed, match=f"{status}: no"):
        a_remote(server).embed(["x"])
    assert len(server.requests) == 1


# --- Keys stay out of sight -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "gemini"])  # the two headers that carry a key
@pytest.mark.parametrize("status", [200, 401, 500])
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"Incorrect API key provided: {KEY}."}},
        {"error": {"message": f"Incorrect API key provided: {KEY[:20]}..."}},
        {"error": f"Bearer {KEY}"},
        {"detail": f"{KEY}{KEY}"},
        {"message": "x" * 190 + KEY},
        f"<html>{KEY}</html>".encode(),
        "\u200b".join(KEY).encode(),
        b"\x00" * 1000 + KEY.encode(),
    ],
    ids=lambda body: repr(body)[:30],
)
def test_an_echoed_key_is_masked(
    server: Server, provider: str, status: int, body: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.faults = [answering(status, body)] * 4
    remote = a_remote(server, provider)
    with pytest.raises(EmbedderFailed) as caught:
        remote.embed(["x"])
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.hint + repr(caught.value) + caplog.text
    shown += repr(remote) + remote.key
    assert not any(KEY[at : at + 8] in shown for at in range(len(KEY) - 7))


def test_what_a_server_says_is_short_and_printable(server: Server) -> None:
    server.faults = [answering(400, {"error": "line\n\x1b[31mred\u202e " + "long " * 1000})]
    with pytest.raises(EmbedderFailed) as caught:
        a_remote(server).embed(["x"])
    said = caught.value.message.partition(": ")[2]
    assert said.startswith("line [31mred long")
    assert len(said) <= 200
    assert said.isprintable()


def test_somebody_elses_key_is_masked(server: Server) -> None:
    other = "ghp_" + "a1B2c3D4e5F6" * 3
    server.faults = [answering(400, {"error": f"upstream token {other} has expired"})]
    with pytest.raises(EmbedderFailed) as caught:
        a_remote(server).embed(["x"])
    assert other not in caught.value.message
    assert "upstream token" in caught.value.message


# --- checked --------------------------------------------------------------------------------------------------------


def test_checked_makes_unit_vectors() -> None:
    (vector, zero) = validate_vectors([[3, 4], [0, 0]], 2, who="it")
    assert list(vector) == pytest.approx([0.6, 0.8])
    assert list(zero) == [0, 0]
    (tiny,) = validate_vectors([[3e-30, 4e-30]], 1, who="it")
    assert length(tiny) == pytest.approx(1)


@pytest.mark.parametrize("vectors", [[[1]], [[1], [1, 2]], [[], []], [None, None], [[1], [float("nan")]], ["ab", "cd"]])
def test_checked_refuses(vectors: Any) -> None:
    with pytest.raises(EmbedderFailed, match="it returned"):
        validate_vectors(vectors, 2, who="it")


# --- Transformers ---------------------------------------------------------------------------------------------------


def mean_of(tokens: Sequence[str]) -> list[float]:
    """The expected vector: the mean of the rows of these tokens, at unit length."""
    names = (*SPECIAL, *LETTERS)
    weights = table()
    pooled = sum(weights[names.index(token)] for token in tokens) / len(tokens)
    return [float(value) for value in pooled / float((pooled**2).sum()) ** 0.5]


def expect(vector: array[float], tokens: Sequence[str]) -> None:
    assert apart(vector, array("f", mean_of(tokens))) < 1e-5


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_mean_over_tokens_and_not_padding(tmp_path: Path, name: str) -> None:
    write_tokenizer(tmp_path)
    write_model(tmp_path / name)
    short, long = Transformer(tmp_path).embed(["ab", "abcdefgh" * 9])
    expect(short, ["[CLS]", "a", "b", "[SEP]"])
    expect(long, ["[CLS]", *"abcdefgh" * 9, "[SEP]"])


@pytest.mark.parametrize(
    "config",
    [
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False},
        {"pooling_mode": "cls", "embedding_dimension": 16},
    ],
)
def test_cls_pooling(tmp_path: Path, config: dict[str, Any]) -> None:
    a_model(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    expect(Transformer(tmp_path).embed(["abc"])[0], ["[CLS]"])


def test_sentence_output_is_used_as_it_is(tmp_path: Path) -> None:
    a_model(tmp_path, outputs=("token_embeddings", "sentence_embedding"))
    (tmp_path / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    expect(Transformer(tmp_path).embed(["ab"])[0], ["[CLS]", "a", "b", "[SEP]"])


@pytest.mark.parametrize("kind", ["INT64", "INT32"])
def test_inputs_that_the_model_asks_for(tmp_path: Path, kind: str) -> None:
    a_model(tmp_path / "few", inputs=("input_ids",), kind=kind)
    every = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
    a_model(tmp_path / "all", inputs=every, kind=kind)
    few, many = (Transformer(tmp_path / name).embed(["ab", "c"]) for name in ("few", "all"))
    assert few == many


def test_prompts(tmp_path: Path) -> None:
    a_model(tmp_path)
    prompts = {"prompts": {"query": "q-", "document": "d-"}, "default_prompt_name": None}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    embedder = Transformer(tmp_path)
    expect(embedder.embed(["a"], is_query=True)[0], ["[CLS]", *"q-a", "[SEP]"])
    expect(embedder.embed(["a"])[0], ["[CLS]", *"d-a", "[SEP]"])


@pytest.mark.parametrize(
    ("most", "config", "kept"), [(10, {}, 8), (None, {}, 510), (None, {"n": 20}, 18), (10, {"n": 20}, 8)]
)
def test_length_from_tokenizer_and_model(tmp_path: Path, most: int | None, config: dict[str, int], kept: int) -> None:
    write_tokenizer(tmp_path, most=most)
    write_model(tmp_path / "model.onnx")
    if config:
        (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": config["n"]}))
    expect(Transformer(tmp_path).embed(["a" * kept + "b" * 600])[0], ["[CLS]", *"a" * kept, "[SEP]"])


def test_a_text_without_tokens(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, special=False)
    write_model(tmp_path / "model.onnx")
    assert not any(Transformer(tmp_path).embed([""])[0])
    empty, full = Transformer(tmp_path).embed(["", "ab"])
    assert not any(empty)
    expect(full, ["a", "b"])


def test_transformer_key_follows_the_files(tmp_path: Path) -> None:
    a_model(tmp_path / "one")
    a_model(tmp_path / "two")
    first = Transformer(tmp_path / "one")
    assert first.key == Transformer(tmp_path / "two").key  # wherever they are
    assert first.model == "one"
    keys = {first.key}
    write_model(tmp_path / "one" / "model.onnx", scale=2.0)
    os.utime(tmp_path / "one" / "model.onnx", ns=(1, 1))
    keys.add(Transformer(tmp_path / "one").key)
    write_tokenizer(tmp_path / "one", most=7)
    os.utime(tmp_path / "one" / "tokenizer.json", ns=(1, 1))
    keys.add(Transformer(tmp_path / "one").key)
    (tmp_path / "one" / "config_sentence_transformers.json").write_text('{"prompts": {"query": "q"}}')
    keys.add(Transformer(tmp_path / "one").key)
    (tmp_path / "one" / "model.onnx_data").write_bytes(b"weights")
    keys.add(Transformer(tmp_path / "one").key)
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("spoil", "needle"),
    [
        (lambda folder: (folder / "model.onnx").unlink(), "model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"not a model"), "cannot be loaded"),
        (lambda folder: (folder / "model.onnx").write_bytes(b""), "cannot be loaded"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "cannot be loaded"),
        (lambda folder: (folder / "config.json").write_text("{"), "config.json"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config.json"),
        (lambda folder: (folder / "modules.json").write_text('[{"type": "models.Dense"}]'), "layer after pooling"),
        (lambda folder: write_model(folder / "model.onnx", inputs=("input_ids", "past_key")), "past_key"),
        (lambda folder: write_model(folder / "model.onnx", outputs=("logits",)), "shape"),
    ],
)
def test_spoilt_model(tmp_path: Path, spoil: Callable[[Path], object], needle: str) -> None:
    spoil(a_model(tmp_path / "tiny"))
    with pytest.raises(EmbedderFailed, match=needle):
        Transformer(tmp_path / "tiny").embed(["x"])


@pytest.mark.parametrize(
    "config",
    [
        {"pooling_mode_lasttoken": True},
        {"pooling_mode_max_tokens": True},
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": "weightedmean"},
    ],
)
def test_other_pooling_is_refused(tmp_path: Path, config: dict[str, Any]) -> None:
    a_model(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
    with pytest.raises(EmbedderFailed, match="pooled by"):
        Transformer(tmp_path)


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "numpy"])
def test_missing_package(tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Transformer(a_model(tmp_path))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EmbedderFailed, match=package) as caught:
        embedder.embed(["x"])
    assert "truekeep[transformer]" in caught.value.hint


def test_a_model_is_a_directory(tmp_path: Path) -> None:
    with pytest.raises(EmbedderFailed, match="no directory") as caught:
        Transformer(tmp_path / "none")
    assert "directory of an ONNX model" in caught.value.hint


def test_static_vectors_are_the_same_before_and_after_numpy_is_loaded(tmp_path: Path) -> None:
    """A process that stays loads it; its answers must not change by that."""
    lexicon = str(tmp_path / "lexicon.bin")
    Static(lexicon=lexicon).embed(["making it loads numpy"])
    script = """
import sys
from truekeep.search.embedders.static import Static, pack
texts = ["which port does staging use", "zemlun hempim keamtumfu", "", "x", "\u6570\u636e\u5e93 caf\u00e9"]
static = Static(lexicon=sys.argv[1])
def answer():
    vectors = [static._sum_up(text.split()) for text in texts]
    return [(vector.tobytes(), pack(vector)) for vector in vectors]
static._open()
first, was_loaded = answer(), "numpy" in sys.modules
import numpy
print(was_loaded, first == answer())
"""
    done = subprocess.run([sys.executable, "-c", script, lexicon], capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"
