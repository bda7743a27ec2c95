"""Lists the links that a check confirms, as JSON: python -m bench.check.confirmed_links ROOT"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from truekeep.check.documents import find_documents
from truekeep.check.settings import read_settings
from truekeep.core.git import Git
from truekeep.verify.memory_reader import read_memory
from truekeep.verify.options import Options
from truekeep.verify.standalone import open_facts
from truekeep.verify.verdict import CONFIRMED
from truekeep.verify.verifier import Verifier


def main(root: str) -> None:
    top = Path(root).resolve()
    os.chdir(top)
    store = open_facts()
    try:
        paths = find_documents(Git(str(top)), top, (), read_settings(top))
        texts = [text for path in paths if (text := read_memory(str(top / path), path)) is not None]
        texts = [text._replace(origin=text.origin._replace(repository="")) for text in texts]
        verifier = Verifier(store, [], options=Options(system=False, are_documents=True), reuse=True)
        checked = verifier.check(texts, root=str(top), keep=False)
    finally:
        store.close()
    links = [
        (item.path, verdict.claim.line, verdict.claim.text)
        for item in checked
        for verdict in item.verdicts
        if verdict.verdict == CONFIRMED
        and verdict.claim.why == "a link"
        and verdict.claim.kind in ("path", "directory")
    ]
    json.dump(links, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
