"""What every embedder must do. A test module subclasses `EmbedderContract` once for each implementation."""

from __future__ import annotations

import math
import subprocess
import sys
from array import array
from typing import ClassVar

import pytest

from truekeep.search.embedders import Embedder, Vector
from truekeep.text.secrets.scanner import find_secrets

TEXTS = (
    "Staging answers on port 8443 only.",
    "The cat sat on the mat",
    "Le café est fermé à midi",
    "数据库连接池已经耗尽，请稍后重试。",
    "日本語のメモ",
    "한국어 메모입니다",
    "🦊🚀 shipped 👩‍👩‍👧‍👦",
    "مرحبا بالعالم",
    "Z͑ͫ̓ͪ̂ͫ̽͏a̴̛l̸g̨o",
    "NUL\0in\0the\0middle",
    "lone \ud800 surrogate \udfff here",
    "\u202eright to left\u202c and \ufeff marks",
    "tabs\tand\r\nlines\n\n",
    "def f(x):\n    return x ** 2  # code",
    "zebra",
)

HEAVY = ("numpy", "httpx", "onnxruntime", "tokenizers", "apsw", "re2")


def length(vector: Vector) -> float:
    return math.hypot(*vector)


def apart(one: Vector, other: Vector) -> float:
    """The largest difference of two vectors in any place."""
    assert len(one) == len(other)
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


class EmbedderContract:
    """Subclasses name the module and provide an `embedder` fixture."""

    module: ClassVar[str]

    @pytest.fixture
    def embedder(self) -> Embedder:
        raise NotImplementedError

    def test_count_order_and_size(self, embedder: Embedder) -> None:
        vectors = embedder.embed(TEXTS)
        assert len(vectors) == len(TEXTS)
        assert len({len(vector) for vector in vectors}) == 1
        assert all(isinstance(vector, array) and vector.typecode == "f" for vector in vectors)
        for text, vector in list(zip(TEXTS, vectors, strict=True))[:3]:
            assert apart(embedder.embed([text])[0], vector) < 1e-4
        backwards = embedder.embed(TEXTS[::-1])
        assert all(apart(a, b) < 1e-4 for a, b in zip(vectors, reversed(backwards), strict=True))

    def test_different_texts_differ(self, embedder: Embedder) -> None:
        one, other = embedder.embed(["Staging answers on port 8443", "The cat sat on the mat"])
        assert apart(one, other) > 1e-3

    @pytest.mark.parametrize("is_query", [False, True])
    def test_unit_length(self, embedder: Embedder, is_query: bool) -> None:
        for vector in embedder.embed(TEXTS[:3], is_query=is_query):
            assert length(vector) == pytest.approx(1, abs=1e-5)

    @pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
    def test_any_text_has_a_vector(self, embedder: Embedder, text: str) -> None:
        """Of unit length, or of zeros when the embedder knows nothing in it; never of anything else."""
        for is_query in (False, True):
            (vector,) = embedder.embed([text], is_query=is_query)
            assert not any(vector) or length(vector) == pytest.approx(1, abs=1e-5)

    def test_same_text_same_vector(self, embedder: Embedder) -> None:
        first, second = embedder.embed([TEXTS[0], TEXTS[0]])
        assert first == second
        assert apart(first, embedder.embed([TEXTS[0]])[0]) < 1e-6

    def test_alone_or_among_many(self, embedder: Embedder) -> None:
        """Neither batching nor padding shows: 150 texts of all lengths are several batches for every embedder."""
        texts = [" ".join(TEXTS[:2] * (1 + number % 7)) + f" number {number}" for number in range(150)]
        together = embedder.embed(texts)
        for place in (0, 1, 31, 32, 99, 149):
            assert apart(embedder.embed([texts[place]])[0], together[place]) < 1e-4

    def test_no_texts(self, embedder: Embedder) -> None:
        assert embedder.embed([]) == []
        assert embedder.embed((), is_query=True) == []

    @pytest.mark.parametrize("blank", ["", " ", "\n\t \u00a0", "\0"], ids=["empty", "space", "spaces", "nul"])
    def test_blank_text_keeps_its_place(self, embedder: Embedder, blank: str) -> None:
        before, vector, after = embedder.embed(["one", blank, "two"])
        assert len(vector) == len(before)
        assert not any(vector) or length(vector) == pytest.approx(1, abs=1e-5)
        assert apart(before, embedder.embed(["one"])[0]) < 1e-4
        assert apart(after, embedder.embed(["two"])[0]) < 1e-4

    @pytest.mark.parametrize("piece", ["word ", "x", "数", "👩‍👩‍👧‍👦"], ids=["words", "one-word", "cjk", "emoji"])
    def test_long_text(self, embedder: Embedder, piece: str) -> None:
        text = piece * (100_000 // len(piece.encode()))
        (vector,) = embedder.embed([text])
        assert not any(vector) or length(vector) == pytest.approx(1, abs=1e-5)
        assert len(vector) == len(embedder.embed(["short"])[0])

    def test_queries_and_documents_compare(self, embedder: Embedder) -> None:
        (query,) = embedder.embed(["where is staging"], is_query=True)
        (document,) = embedder.embed(["Staging answers on port 8443 only."])
        assert len(query) == len(document)

    def test_names_are_there_and_hold_no_credential(self, embedder: Embedder) -> None:
        for name in (embedder.provider, embedder.model, embedder.key):
            assert name
            assert name.isprintable()
            assert not find_secrets(name)
        assert not find_secrets(repr(embedder))

    def test_names_are_stable(self, embedder: Embedder) -> None:
        before = (embedder.provider, embedder.model, embedder.key)
        embedder.embed(["anything"])
        assert (embedder.provider, embedder.model, embedder.key) == before

    def test_importing_is_cheap(self) -> None:
        script = f"import sys, {self.module}; print([name for name in {HEAVY!r} if name in sys.modules])"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"
