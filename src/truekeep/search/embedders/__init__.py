"""Embedders: text → vectors. One small protocol, several implementations, each in a module that is loaded when chosen.

An embedder may fail in any way (hang, NaN, half a batch, another model under the same name). Its vectors are validated
here, once, before they are stored or compared. Nothing in this folder reads memory or writes the index.
"""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    Vector = array[float]  # array("f"), of unit length
else:
    Vector = array


def load_numpy() -> Any:
    """Import numpy with one thread: more cost start-up time, and the batches are too small to gain."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import numpy

    return numpy


def multiply(asked: memoryview, table: memoryview, *, kind: str, out: str) -> memoryview:
    """Return the dot products of every asked row with every row of a table, as plain bytes."""
    import simsimd

    scores: Any = simsimd.cdist(asked, table, "dot", dtype=kind, out_dtype=out)  # type: ignore[arg-type]
    return memoryview(scores).cast("B")


class EmbedderFailed(Exception):
    """An embedder cannot answer. Search then uses words only and reports this."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def told(self) -> str:
        """The message with its hint."""
        return f"{self.message} ({self.hint})" if self.hint else self.message


class Embedder(Protocol):
    """Turns texts into vectors of unit length, always the same ones for the same text."""

    provider: str  # static, transformer, openai, ollama, ...
    model: str
    key: str  # what else decides the vectors: endpoint, dimensions, a digest of the weights; never a credential

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        """Return one vector for each text, in order. Raises EmbedderFailed."""
        ...


def validate_vectors(vectors: Sequence[Sequence[float]], count: int, *, who: str) -> list[Vector]:
    """Return unit vectors. Raises EmbedderFailed unless there are `count`, of one size, with finite numbers.

    A vector of zeros is kept: the embedder knows nothing in that text.
    """
    if len(vectors) != count:
        raise EmbedderFailed(f"{who} returned {len(vectors)} vectors for {count} texts")
    unit: list[Vector] = []
    for values in vectors:
        try:
            vector = array("f", values)
        except (TypeError, ValueError, OverflowError) as error:  # JSON can hold anything
            raise EmbedderFailed(f"{who} returned something that is not a vector") from error
        if not vector or (unit and len(vector) != len(unit[0])):
            raise EmbedderFailed(f"{who} returned vectors of different sizes")
        length = math.hypot(*vector)
        if not math.isfinite(length):
            raise EmbedderFailed(f"{who} returned a vector that is not finite")
        unit.append(array("f", [value / length for value in vector]) if length else vector)
    return unit


class VersionedEmbedder:
    """An embedder whose model changed under the same name: each change gives it another key."""

    def __init__(self, embedder: Embedder, epoch: int) -> None:
        self._embedder = embedder
        self.provider = embedder.provider
        self.model = embedder.model
        self.key = f"{embedder.key} #{epoch}" if epoch else embedder.key

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        return self._embedder.embed(texts, is_query=is_query)
