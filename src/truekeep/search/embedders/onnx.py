"""An embedder that runs a transformer on this machine, from a model directory that the user names.

The directory is laid out as sentence-transformers and its ONNX exports do it. Nothing is downloaded for it and nothing
in it is executed but the graph; what its settings ask for and this module cannot do is refused, because a vector pooled
the wrong way looks like any other. Of the packages needed none is loaded before the first text.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from truekeep.core.extras import install_command
from truekeep.search.embedders import EmbedderFailed, Vector, validate_vectors

_MODELS = ("model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_DEFAULT_MAX_TOKENS = 512
_BATCH = 32
_OFFSET_MODELS = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their positions begin at 2, so two fewer are left


class ModelSettings(NamedTuple):
    """How to use a model, from the files beside it."""

    pooling: str = "mean"
    query_prompt: str = ""
    document_prompt: str = ""
    most_positions: int | None = None
    has_dense: bool = False


class Transformer:
    """A transformer in a directory, through onnxruntime."""

    provider = "transformer"

    def __init__(self, folder: Path) -> None:
        self._model_path = _find_model(folder)
        self._tokenizer_path = folder / "tokenizer.json"
        if not self._tokenizer_path.is_file():
            raise EmbedderFailed(f"{folder} holds no tokenizer.json")
        self._settings = _read_settings(folder)
        self.model = folder.resolve().name
        self.key = self._make_key()
        # Dynamic quantization uses one scale for a batch, so the other texts of a batch would change a vector.
        self._batch = 1 if "quantized" in self._model_path.name else _BATCH
        self._graph: Graph | None = None

    def __repr__(self) -> str:
        return f"<Transformer {self.model}>"

    def embed(self, texts: Sequence[str], *, is_query: bool = False) -> list[Vector]:
        """Return one vector for each text, in order. Raises EmbedderFailed."""
        if not texts:
            return []
        if self._graph is None:
            self._graph = Graph(self._model_path, self._tokenizer_path, self._settings)
        prompt = self._settings.query_prompt if is_query else self._settings.document_prompt
        rows = self._graph.tokenize([prompt + _sound(text) for text in texts])
        # Texts of similar length share a batch, to save padding.
        order = sorted(range(len(rows)), key=lambda place: len(rows[place]))
        found: list[Any] = [None] * len(rows)
        for start in range(0, len(order), self._batch):
            places = order[start : start + self._batch]
            for place, vector in zip(places, self._graph.run([rows[place] for place in places]), strict=True):
                found[place] = vector
        return validate_vectors(found, len(texts), who=f"the transformer {self.model}")

    def _make_key(self) -> str:
        """Return a digest of all files in the directory that decide a vector."""
        digest = hashlib.sha256()
        for path in (*_iter_weights(self._model_path), self._tokenizer_path):
            digest.update(_read_digest(path).encode())
        digest.update(repr(self._settings).encode())
        return f"sha256:{digest.hexdigest()}"


class Graph:
    """A loaded model with its tokenizer."""

    def __init__(self, model_path: Path, tokenizer_path: Path, settings: ModelSettings) -> None:
        runtime, tokenizers = _load("onnxruntime"), _load("tokenizers")
        self._numpy = _load("numpy")
        self._settings = settings
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_path))
            self._padding = _set_limits(self._tokenizer, settings)
            options = runtime.SessionOptions()
            options.log_severity_level = 4  # it would write warnings about the graph to the terminal
            self._session = runtime.InferenceSession(str(model_path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both packages raise their own exceptions, with no common base
            raise EmbedderFailed(f"the model in {model_path.parent} cannot be loaded: {_brief(error)}") from error
        self._inputs = {value.name: value.type for value in self._session.get_inputs()}
        unknown = self._inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
        if unknown or "input_ids" not in self._inputs:
            raise EmbedderFailed(f"the model asks for {', '.join(sorted(self._inputs))}, which is not a text encoder's")
        outputs = [value.name for value in self._session.get_outputs()]
        # Exports that pool by themselves put it beside the tokens, and not always first.
        self._output = "sentence_embedding" if "sentence_embedding" in outputs else outputs[0]

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        try:
            return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        except Exception as error:  # see above
            raise EmbedderFailed(f"the tokenizer failed: {_brief(error)}") from error

    def run(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return a pooled vector for each row of token ids."""
        numpy = self._numpy
        width = max(1, *(len(row) for row in rows))  # a row may have no tokens
        ids = numpy.full((len(rows), width), self._padding, dtype=numpy.int64)
        mask = numpy.zeros((len(rows), width), dtype=numpy.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
            mask[place, : len(row)] = 1
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": numpy.zeros_like(ids),
            "position_ids": numpy.broadcast_to(numpy.arange(width, dtype=numpy.int64), ids.shape),
        }
        feed = {
            name: numpy.ascontiguousarray(given[name], dtype=numpy.int32 if "int32" in kind else numpy.int64)
            for name, kind in self._inputs.items()
        }
        try:
            (output,) = self._session.run([self._output], feed)
        except Exception as error:  # see above
            raise EmbedderFailed(f"the model failed: {_brief(error)}") from error
        return self._pool(numpy.asarray(output, dtype=numpy.float32), mask)

    def _pool(self, output: Any, mask: Any) -> list[list[float]]:
        if output.ndim == 2 and len(output) == len(mask):
            pooled = output
        elif output.ndim != 3 or output.shape[:2] != mask.shape:
            raise EmbedderFailed(f"the model returned something of shape {output.shape}, which is no text encoder's")
        elif self._settings.has_dense:
            raise EmbedderFailed("the model has a layer after pooling, which is outside of its ONNX file")
        elif self._settings.pooling == "cls":
            pooled = output[:, 0] * mask[:, :1]
        else:
            weights = mask[:, :, None].astype(output.dtype)
            pooled = (output * weights).sum(axis=1) / self._numpy.maximum(weights.sum(axis=1), 1)
        rows: list[list[float]] = pooled.tolist()
        return rows


# --- Files ----------------------------------------------------------------------------------------------------------


def _find_model(folder: Path) -> Path:
    for name in _MODELS:
        if (folder / name).is_file():
            return folder / name
    raise EmbedderFailed(
        f"{folder} holds no {_MODELS[0]}" if folder.is_dir() else f"there is no directory {folder}",
        hint="Name the directory of an ONNX model with its tokenizer.json.",
    )


def _iter_weights(model_path: Path) -> Iterator[Path]:
    """Return the graph, and the files that hold the weights of a large one."""
    yield model_path
    for pattern in ("_data*", ".data*"):
        yield from sorted(model_path.parent.glob(model_path.name + pattern))


def _read_digest(path: Path) -> str:
    try:
        info = path.stat()
        return _digest_file(path, info.st_size, info.st_mtime_ns)
    except OSError as error:
        raise EmbedderFailed(f"{path} cannot be read: {error.strerror}") from error


@functools.lru_cache(maxsize=64)
def _digest_file(path: Path, size: int, mtime_ns: int) -> str:  # noqa: ARG001 - they make up the cache's key
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_settings(folder: Path) -> ModelSettings:
    model = _read_json(folder / "config.json", {})
    prompts = _read_json(folder / "config_sentence_transformers.json", {})
    modules = _read_json(folder / "modules.json", [])
    positions = model.get("max_position_embeddings")
    if isinstance(positions, int) and model.get("model_type") in _OFFSET_MODELS:
        positions -= 2
    return ModelSettings(
        pooling=_find_pooling(_read_json(folder / "1_Pooling" / "config.json", {})),
        query_prompt=_find_prompt(prompts, "query"),
        document_prompt=_find_prompt(prompts, "document", "passage"),
        most_positions=positions if isinstance(positions, int) and positions > 0 else None,
        has_dense=any(isinstance(module, dict) and str(module.get("type")).endswith("Dense") for module in modules),
    )


def _read_json(path: Path, missing: Any) -> Any:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return missing
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderFailed(f"{path} cannot be read: {_brief(error)}") from error
    if not isinstance(found, type(missing)):
        raise EmbedderFailed(f"{path} does not hold what it should")
    return found


def _find_pooling(config: dict[str, Any]) -> str:
    """Return `mean` or `cls`. Newer files name the mode, older ones have a switch for each."""
    named = config.get("pooling_mode")
    modes = (
        [named] if named else [name for name, on in config.items() if name.startswith("pooling_mode_") and on is True]
    )
    found = {str(mode).removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for mode in modes}
    if found - {"mean", "cls"} or len(found) > 1:
        raise EmbedderFailed(f"the model is pooled by {' and '.join(sorted(found))}, which is not known here")
    return found.pop() if found else "mean"


def _find_prompt(config: dict[str, Any], *names: str) -> str:
    prompts = config.get("prompts")
    if not isinstance(prompts, dict):
        return ""
    for name in (*names, config.get("default_prompt_name")):
        prompt = prompts.get(name) if isinstance(name, str) else None
        if isinstance(prompt, str):
            return prompt
    return ""


def _set_limits(tokenizer: Any, settings: ModelSettings) -> int:
    """Set the maximum length of the tokenizer; return the padding token."""
    most = (tokenizer.truncation or {}).get("max_length", _DEFAULT_MAX_TOKENS)
    most = min(most, settings.most_positions or most)
    padding: int | None = (tokenizer.padding or {}).get("pad_id")
    if padding is None:
        known = (tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>"))
        padding = next((token for token in known if token is not None), 0)
    tokenizer.no_padding()  # padding is done here, batch by batch
    tokenizer.enable_truncation(most)
    return padding


# --- Small things ---------------------------------------------------------------------------------------------------


def _load(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        problem = "is not installed" if error.name == package else f"cannot be loaded: {_brief(error)}"
        raise EmbedderFailed(
            f"the transformer needs {package}, which {problem}", hint=install_command("transformer")
        ) from error


def _sound(text: str) -> str:
    """Replace lone surrogates, which the tokenizer refuses."""
    return text.encode("utf-8", "replace").decode()


def _brief(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return "".join(char for char in words if char.isprintable())[:200]
