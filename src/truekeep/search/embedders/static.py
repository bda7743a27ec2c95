"""The embedded embedder: static word vectors that come inside a package, so that meaning needs no key and no download.

The vectors are those of wordllama (32,000 word pieces, 256 numbers each), read straight from its files. A text's vector
is the sum over its distinct words; a word that is no piece itself is the sum of its pieces. Because nothing depends on
word order, indexing a text costs little more than finding its words.

Beside whole texts it compares single words: `neighbours` finds the known words nearest to a question's words, which is
how a question about a "database" finds a line about "sqlite". What that needs is kept in one small file, the lexicon,
made on first use and safe to delete.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import sys
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from truekeep.search.embedders import EmbedderFailed, Vector, load_numpy, multiply
from truekeep.text.words import WORD, fold_words

if TYPE_CHECKING:
    import mmap

DIMENSIONS = 256
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_FORMAT = b"truekeep lexicon 4\n"
_PIECES = 32_000
_HASH_SLOTS = 65_536  # twice as many as pieces
_SLOT = struct.Struct("<QH")
_MIN_COSINE = 0.35  # below, two words are unrelated
_UNIT = 65_536 / _MIN_COSINE  # the product of a vector with itself
_SCALE = _UNIT**0.5  # a unit vector's numbers as 8 bits: nearly five standard deviations fit
_HIGH = (b"\x01", b"\x02", b"\x03")  # third bytes of scores that are near; no score reaches 2**18
_MAX_CACHED_WORDS = 60_000  # 60 MB of vectors
_FIRST_ROWS = 4096
_TEXTS_PER_SUM = 64
_MAX_TEXTS_WITHOUT_NUMPY = 12  # loading numpy takes longer
_LONGEST_WORD = 64
_BLANK = "▁"


class StaticNearness:
    """The cosine of known words with a question; 0 for all others."""

    def __init__(self, places: Mapping[str, int], scores: memoryview) -> None:
        self._places = places
        self._scores = scores

    def of(self, words: Iterable[str]) -> float:
        """Return about the cosine of a short text: words are nearly orthogonal, so squared lengths add up."""
        places, scores = self._places, self._scores
        found = [scores[at] for at in map(places.get, words) if at is not None]
        return sum(found) / _UNIT / len(found) ** 0.5 if found else 0.0


class Static:
    """Static vectors from the package's own files."""

    provider = "static"
    model = "wordllama-l2-supercat-256"

    def __init__(self, folder: str | None = None, *, lexicon: str = "") -> None:
        """Take the folder of the package (searched if empty) and the lexicon file (in memory if empty)."""
        self._folder = folder or _package_folder()
        self._weights_path = os.path.join(self._folder, _WEIGHTS)
        self._lexicon_path = lexicon
        try:
            info = os.stat(self._weights_path)
        except OSError as error:
            raise EmbedderFailed(
                "the static vectors are missing", hint="pip install --force-reinstall wordllama"
            ) from error
        self.key = f"{info.st_size}-words-1"
        self._weights: mmap.mmap | None = None
        self._offset = 0
        self._table_bytes = memoryview(b"")
        self._known: list[str] = []
        self._places: dict[str, int] = {}
        self._known_bytes = memoryview(b"")
        self._known_vectors = memoryview(b"")
        self._rows: dict[str, int] = {}
        self._cuts: dict[str, tuple[int, ...]] = {}  # not a module cache, which would keep the table alive
        self._table: Any = None

    # Texts.

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:  # noqa: ARG002
        if not texts:
            return []
        self._open()
        if len(texts) <= _MAX_TEXTS_WITHOUT_NUMPY:
            return [self._sum_up(sorted(_words(text))) for text in texts]
        table = self.embed_table(texts)
        vectors = []
        for row in table:
            vector = array("f")
            vector.frombytes(row.tobytes())
            vectors.append(vector)
        return vectors

    def embed_table(self, texts: Sequence[str]) -> Any:
        """Return the vectors of many texts as one numpy table."""
        np = load_numpy()

        self._open()
        sums = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(texts), _TEXTS_PER_SUM):
            part = texts[start : start + _TEXTS_PER_SUM]
            sums[start : start + len(part)] = self._sum_table(part)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        return sums / lengths

    def _sum_table(self, texts: Sequence[str]) -> Any:
        """Multiply the text-word incidence table with the vectors of the words."""
        np = load_numpy()

        if len(self._rows) > _MAX_CACHED_WORDS:
            self._rows.clear()
        rows = self._rows
        indices: list[int] = []
        counts: list[int] = []
        for text in texts:
            words = _words(text)
            counts.append(len(words))
            try:
                indices += [rows[word] for word in words]
            except KeyError:
                self._learn(words)
                indices += [rows[word] for word in words]
        used, columns = np.unique(np.array(indices, dtype=np.int64), return_inverse=True)
        ones = np.zeros((len(texts), len(used)), dtype=np.float32)
        ones[np.repeat(np.arange(len(texts)), counts), columns] = 1
        return ones @ self._table[used] if len(used) else 0

    def _learn(self, words: Iterable[str]) -> None:
        """Add words to the table of word vectors; its first row is empty."""
        np = load_numpy()

        if self._table is None:
            self._table = np.zeros((_FIRST_ROWS, DIMENSIONS), dtype=np.float32)
        if not self._rows:
            self._rows[""] = 0
        weights = np.frombuffer(self._mapped(), dtype="<f2", offset=self._offset).reshape(-1, DIMENSIONS)
        for word in words:
            if word in self._rows:
                continue
            row = len(self._rows)
            if row == len(self._table):
                self._table = np.concatenate((self._table, np.zeros_like(self._table)))
            self._table[row] = weights[list(self.pieces_of(word))].astype(np.float32).sum(axis=0)
            self._rows[word] = row

    def forget_words(self) -> None:
        """Give back the memory of the words of many texts. A few are kept, for the next small change."""
        if len(self._rows) > _FIRST_ROWS:
            self._rows, self._cuts, self._table = {}, {}, None

    def _sum_up(self, words: Iterable[str]) -> Vector:
        pieces = [piece for word in words for piece in self.pieces_of(word)]
        if "numpy" not in sys.modules:
            return _unit(list(map(sum, zip(*map(self._piece, pieces), strict=True))) or [0.0] * DIMENSIONS)
        np = load_numpy()  # in the same order, so that the sums are the same to the last digit

        weights = np.frombuffer(self._mapped(), dtype="<f2", offset=self._offset).reshape(-1, DIMENSIONS)
        return _unit(weights[pieces].astype(np.float64).sum(axis=0).tolist())

    # Words.

    def knows(self, word: str) -> bool:
        """Whether the table has a vector of its own for a word, as for most English ones."""
        self._open()
        return word in self._places

    def neighbours(self, words: Sequence[str], question: Vector) -> tuple[list[dict[str, float]], StaticNearness]:
        """Return the known words near each word with their cosine, and the nearness of any word to the question."""
        self._open()
        packed = bytearray(pack(question))
        for word in words:
            at = self._places.get(word)
            packed += pack(self._sum_up((word,))) if at is None else self._known_bytes[at * DIMENSIONS :][:DIMENSIONS]
        count = len(self._known)
        asked = memoryview(packed).cast("b", (len(words) + 1, DIMENSIONS))
        scores = multiply(asked, self._known_vectors, kind="int8", out="int32")
        flat = scores.cast("i")
        # A score from 2**16 on, and none below, has something in its third byte that is no sign: found without a loop.
        thirds = bytes(scores)[2::4] if sys.byteorder == "little" else bytes(scores)[1::4]
        near: list[dict[str, float]] = [{} for _ in words]
        for high in _HIGH:
            place = thirds.find(high, count)
            while place >= 0:
                row, at = divmod(place, count)
                if self._known[at] != words[row - 1]:
                    near[row - 1][self._known[at]] = flat[place] / _UNIT
                place = thirds.find(high, place + 1)
        return near, StaticNearness(self._places, flat)

    def pieces_of(self, word: str) -> tuple[int, ...]:
        """Return the pieces of a word by byte-pair encoding: always join the pair with the lowest rank."""
        word = word[:_LONGEST_WORD]
        found = self._cuts.get(word)
        if found is None:
            if len(self._cuts) > _MAX_CACHED_WORDS:
                self._cuts.clear()
            found = self._cuts[word] = _cut(_BLANK + word, self)
        return found

    def find_piece(self, text: str) -> int | None:
        """Return the number of a piece, read from the file: a question needs a hundred of 32,000."""
        data = text.encode("utf-8", "replace")
        mark = zlib.adler32(data) << 32 | zlib.crc32(data)
        slot = mark % _HASH_SLOTS
        while True:
            found, number = _SLOT.unpack_from(self._table_bytes, slot * _SLOT.size)
            if found == mark:
                return int(number)
            if not found:
                return None
            slot = (slot + 1) % _HASH_SLOTS

    # Files.

    def _open(self) -> None:
        if self._weights is not None:
            return
        try:
            with open(self._weights_path, "rb") as file:
                weights = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._offset = 8 + int.from_bytes(weights[:8], "little")
            if len(weights) - self._offset != _PIECES * DIMENSIONS * 2:
                raise EmbedderFailed(f"{self._weights_path} is not what it should be", hint="reinstall wordllama")
            lexicon = self._read_lexicon()
            if lexicon is None:
                lexicon = self._make_lexicon(weights)
        except (OSError, ValueError, KeyError) as error:
            raise EmbedderFailed(f"the static vectors cannot be read: {error}", hint="reinstall wordllama") from error
        start = len(self._head())
        count = int.from_bytes(lexicon[start : start + 4], "little")
        names = int.from_bytes(lexicon[start + 4 : start + 8], "little")
        table = start + 8
        vectors = table + _HASH_SLOTS * _SLOT.size
        words = vectors + count * DIMENSIONS
        whole = memoryview(lexicon)
        self._table_bytes = whole[table:vectors]
        self._known_bytes = whole[vectors:words]
        self._known_vectors = self._known_bytes.cast("b", (count, DIMENSIONS))
        self._known = bytes(whole[words : words + names]).decode().split("\n")
        self._places = dict(zip(self._known, range(len(self._known)), strict=True))
        self._weights = weights

    def _mapped(self) -> mmap.mmap:
        assert self._weights is not None
        return self._weights

    def _piece(self, number: int) -> tuple[float, ...]:
        return struct.unpack_from("<256e", self._mapped(), self._offset + number * DIMENSIONS * 2)

    def _head(self) -> bytes:
        return _FORMAT + self.key.encode() + b"\n"

    def _read_lexicon(self) -> mmap.mmap | bytes | None:
        """Return the lexicon file if it is complete."""
        head = self._head()
        try:
            with open(self._lexicon_path, "rb") as file:
                data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return None
        start = len(head)
        if data[:start] != head:
            return None
        count, names = (int.from_bytes(data[at : at + 4], "little") for at in (start, start + 4))
        return data if len(data) == start + 8 + _HASH_SLOTS * _SLOT.size + count * DIMENSIONS + names else None

    def _make_lexicon(self, weights: mmap.mmap) -> bytes:
        """Read the tokenizer's vocabulary; the pieces that are whole words become the known ones."""
        np = load_numpy()
        with open(os.path.join(self._folder, _TOKENIZER), encoding="utf-8") as file:
            vocabulary: dict[str, int] = json.load(file)["model"]["vocab"]
        table = bytearray(_HASH_SLOTS * _SLOT.size)
        known: dict[str, int] = {}
        for piece, number in vocabulary.items():
            data = piece.encode()
            mark = zlib.adler32(data) << 32 | zlib.crc32(data)
            slot = mark % _HASH_SLOTS
            while table[slot * _SLOT.size : slot * _SLOT.size + 8] != bytes(8):
                slot = (slot + 1) % _HASH_SLOTS
            _SLOT.pack_into(table, slot * _SLOT.size, mark, number)
            word = piece[1:]
            if piece.startswith(_BLANK) and len(word) > 1 and word.isalpha():
                folded = word.lower()
                if folded not in known or word == folded:
                    known[folded] = number
        pieces = np.frombuffer(weights, dtype="<f2", offset=self._offset).reshape(-1, DIMENSIONS)
        chosen = pieces[list(known.values())].astype(np.float32)
        chosen /= np.linalg.norm(chosen, axis=1, keepdims=True)
        vectors = np.clip(np.rint(chosen * _SCALE), -127, 127).astype(np.int8).tobytes()
        words = "\n".join(known).encode()
        sizes = len(known).to_bytes(4, "little") + len(words).to_bytes(4, "little")
        made = b"".join((self._head(), sizes, bytes(table), vectors, words))
        if self._lexicon_path:
            _write(self._lexicon_path, made)
        return made


def pack(vector: Sequence[float]) -> bytes:
    """Return a unit vector with 8 bits a number."""
    scale = _SCALE
    if "numpy" in sys.modules:
        np = load_numpy()

        rounded = np.rint(np.array(vector, dtype=np.float64) * scale)
        packed: bytes = np.clip(rounded, -127, 127).astype(np.int8).tobytes()
        return packed
    return bytes([(127 if (v := round(x * scale)) > 127 else -127 if v < -127 else v) & 0xFF for x in vector])


def _words(text: str) -> set[str]:
    return fold_words(text) or set(WORD.findall(text.lower()))


def _unit(sums: list[float]) -> Vector:
    length = sum(value * value for value in sums) ** 0.5
    return array("f", [value / length for value in sums] if length else sums)


def _cut(word: str, static: Static) -> tuple[int, ...]:
    parts = list(word)
    while len(parts) > 1:
        best: tuple[int, int] | None = None
        for at in range(len(parts) - 1):
            number = static.find_piece(parts[at] + parts[at + 1])
            if number is not None and (best is None or number < best[0]):
                best = (number, at)
        if best is None:
            break
        at = best[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    pieces: list[int] = []
    for part in parts:
        number = static.find_piece(part)
        if number is not None:
            pieces.append(number)
        else:  # a character that is not a piece is split into bytes
            pieces += [
                found
                for byte in part.encode("utf-8", "replace")
                if (found := static.find_piece(f"<0x{byte:02X}>")) is not None
            ]
    return tuple(pieces)


def _package_folder() -> str:
    try:
        spec = find_spec("wordllama")  # finds the folder without running the package
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise EmbedderFailed("the static vectors are not installed", hint="pip install wordllama")
    return spec.submodule_search_locations[0]


def _write(path: str, data: bytes) -> None:
    """Write the lexicon; a failure only costs time later."""
    beside = f"{path}.{os.getpid()}"
    try:
        with open(beside, "wb") as file:
            file.write(data)
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            os.unlink(beside)
