"""Which embedder answers: the one whose vectors the index has, even if the settings name another one now.

The index records its embedder and its rules for chunks. An embedder without vectors in the index waits until the index
is rebuilt. A model that changed under the same name is noticed by a probe text, which must give the same vector.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw

from truekeep.core.derived_db import read_meta, write_meta
from truekeep.core.sqlite import transaction
from truekeep.search.embedders import Embedder, EmbedderFailed, VersionedEmbedder
from truekeep.search.embedders.choice import choose, make_embedder

if TYPE_CHECKING:
    from truekeep.core.config import SearchConfig as Settings

LEXICON_FILE = "lexicon.bin"
CHUNKING = "sections 1, 1,200 characters; titles 1; days 1"  # what a chunk is; a change rebuilds the index
_PROBE = "truekeep keeps memory true"


class Embedders:
    """The embedders of one workspace, each made when it is first needed."""

    def __init__(
        self,
        settings: Settings,
        state: str,
        environ: Mapping[str, str],
        *,
        note: Callable[[str], None],
        index_in_background: Callable[[], object],
    ) -> None:
        self._settings = settings
        self._lexicon = os.path.join(state, LEXICON_FILE)
        self._environ = environ
        self._note = note
        self._index_in_background = index_in_background
        self._made: dict[str, Embedder | None] = {}

    def find_wanted(self) -> tuple[Embedder | None, str]:
        """The embedder that the settings ask for, or the reason why it cannot be used."""
        try:
            return self._make(choose(self._settings, self._environ)), ""
        except EmbedderFailed as error:
            return None, error.told

    def _make(self, provider: str) -> Embedder | None:
        if provider not in self._made:
            self._made[provider] = make_embedder(provider, self._settings, self._environ, lexicon=self._lexicon)
        return self._made[provider]

    def find_answering(self, db: apsw.Connection, *, for_writing: bool = False) -> Embedder | None:
        """The embedder whose vectors the index has; None to search by words alone.

        `for_writing`: the index is about to be brought up to date, so what it lacks is neither noted nor made.
        """
        noted = read_meta(db, "embedder")
        wanted, failure = self.find_wanted()
        if noted is None:  # nothing was indexed yet
            if failure:
                self._note_lack(f"{failure}; these are found by words alone", for_writing=for_writing)
                return None
            if wanted is None or is_built_in(wanted):
                with suppress(apsw.Error), transaction(db):
                    write_embedder(db, wanted)
                return wanted
            lack = f"nothing has a vector of {wanted.provider} yet; these are found by words alone"
            self._note_lack(lack, for_writing=for_writing, index=True)
            return None
        epoch = int(read_meta(db, "epoch", 0))
        if _name(_versioned(wanted, epoch)) == noted:
            return wanted
        try:
            known = self._make(noted.partition("\t")[0])
        except EmbedderFailed:
            known = None
        if _name(_versioned(known, epoch)) != noted:
            known = None
        who = f"{known.provider} answers" if known is not None else "words alone answer"
        if failure:
            self._note_lack(f"{failure}; {who} until then", for_writing=for_writing)
        else:
            lack = f"the index is not yet rebuilt for the embedder in the settings; {who} until then"
            self._note_lack(lack, for_writing=for_writing, index=True)
        return known

    def _note_lack(self, lack: str, *, for_writing: bool, index: bool = False) -> None:
        if for_writing:
            return
        self._note(lack)
        if index:
            self._index_in_background()

    def check_model(self, db: apsw.Connection, embedder: Embedder | None) -> tuple[Embedder | None, str]:
        """Embed the probe text; if its vector is not the one from before, count the model as a new one."""
        if embedder is None or is_built_in(embedder):
            return embedder, ""
        epoch = int(read_meta(db, "epoch", 0))
        try:
            (probe,) = embedder.embed([_PROBE])
        except EmbedderFailed as error:
            return VersionedEmbedder(embedder, epoch), error.told
        before = read_meta(db, "probe")
        name = _name(embedder)
        if before is not None and read_meta(db, "probe_of") == name:
            known = array("f", before)
            alike = sum(a * b for a, b in zip(known, probe, strict=False)) if len(known) == len(probe) else 0.0
            if alike < 0.999:
                epoch += 1
                self._note(
                    f"{embedder.provider} {embedder.model} is another model than before; everything is embedded again"
                )
        with transaction(db):
            write_meta(db, "probe", probe.tobytes())
            write_meta(db, "probe_of", name)
            write_meta(db, "epoch", epoch)
        return VersionedEmbedder(embedder, epoch), ""


def is_built_in(embedder: Embedder) -> bool:
    """Whether it is the embedder that comes with truekeep, which is cheap and never changes under its name."""
    return embedder.provider == "static"


def find_misfit(db: apsw.Connection, embedder: Embedder | None) -> str:
    """The reason to rebuild the index for this embedder; empty if it fits."""
    noted = read_meta(db, "fingerprint")
    if noted is None or noted == _fingerprint(embedder):
        return ""
    return "the embedder changed" if noted.partition("\n")[2] != _name(embedder) else "the chunking changed"


def write_embedder(db: apsw.Connection, embedder: Embedder | None) -> None:
    """Record the embedder of the index."""
    write_meta(db, "fingerprint", _fingerprint(embedder))
    write_meta(db, "embedder", _name(embedder))


def carry_vectors(old: apsw.Connection, new: apsw.Connection, embedder: Embedder | None) -> None:
    """Copy the probe, and vectors that cost something, into a rebuilt index."""
    with transaction(new):
        for key in ("epoch", "probe", "probe_of"):
            if (known := read_meta(old, key)) is not None:
                write_meta(new, key, known)
    if embedder is None or is_built_in(embedder):
        return
    rows = old.execute(
        "SELECT * FROM embedding_cache WHERE provider = ? AND model = ? AND key = ?",
        (embedder.provider, embedder.model, embedder.key),
    )
    with transaction(new):
        new.executemany("INSERT OR IGNORE INTO embedding_cache VALUES (?, ?, ?, ?, ?, ?)", rows)


def _fingerprint(embedder: Embedder | None) -> str:
    return f"{CHUNKING}\n{_name(embedder)}"


def _name(embedder: Embedder | None) -> str:
    return "\t".join((embedder.provider, embedder.model, embedder.key)) if embedder is not None else "none"


def _versioned(embedder: Embedder | None, epoch: int) -> Embedder | None:
    """An embedder by its name in the index."""
    return embedder if embedder is None or is_built_in(embedder) else VersionedEmbedder(embedder, epoch)
