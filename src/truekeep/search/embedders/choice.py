"""Chooses and makes the embedder of the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from truekeep.search.embedders import Embedder, EmbedderFailed
from truekeep.search.embedders.static import Static

if TYPE_CHECKING:
    from truekeep.core.config import SearchConfig


def choose(settings: SearchConfig, environ: Mapping[str, str]) -> str:
    """Return the provider of the settings. `auto` prefers a local one, then the services in the documented order."""
    if settings.embedder != "auto":
        return settings.embedder
    if settings.model and os.path.isdir(os.path.expanduser(settings.model)):
        return "transformer"
    if settings.base_url:
        return "openai-compatible" if settings.model else "ollama"
    from truekeep.search.embedders.remote import has_key

    return next((name for name in ("openai", "gemini", "voyage", "mistral") if has_key(name, environ)), "static")


def make_embedder(
    provider: str, settings: SearchConfig, environ: Mapping[str, str], *, lexicon: str = ""
) -> Embedder | None:
    """Make the embedder of a provider; None for "none". Raises EmbedderFailed."""
    if provider == "none":
        return None
    if provider == "static":
        return Static(lexicon=lexicon)
    if provider == "transformer":
        from truekeep.search.embedders.onnx import Transformer

        if not settings.model:
            raise EmbedderFailed("recall.model is empty", hint="name the folder of the model in config.toml")
        return Transformer(Path(settings.model).expanduser())
    from truekeep.search.embedders.remote import make_remote

    return make_remote(
        provider,
        model=settings.model,
        base_url=settings.base_url,
        key_env=settings.key_env,
        dimensions=settings.dimensions or None,
        environ=environ,
    )
