"""A baseline: alarms that are known and accepted, so that a check reports only new ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from truekeep.check.alarm import FalseClaim
from truekeep.core.errors import BadInput
from truekeep.core.file_io import read_regular, write_whole

DEFAULT_FILE = ".truekeep-baseline.json"
_SCHEMA = "truekeep.baseline/1"
_KEYS = ("path", "kind", "verdict", "claim")


def read_baseline(path: Path, shown: str) -> Counter[tuple[str, ...]]:
    """How often each known alarm may be reported before it is a new one."""
    try:
        table = json.loads(read_regular(path))
        if table["schema"] != _SCHEMA:
            raise BadInput(f"{shown} has the format {table['schema']}", hint="update truekeep, or write it anew")
        return Counter({tuple(str(item[key]) for key in _KEYS): int(item["count"]) for item in table["alarms"]})
    except FileNotFoundError as error:
        raise BadInput(f"there is no baseline {shown}", hint="`truekeep check --write-baseline` writes one") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{shown} is not a baseline", hint="write it anew with --write-baseline") from error


def write_baseline(path: Path, alarms: Sequence[FalseClaim]) -> None:
    """Write the alarms in an order that makes small differences, without lines, which change."""
    counts = Counter(alarm.identity for alarm in alarms)
    items = [dict(zip(_KEYS, key, strict=True)) | {"count": count} for key, count in sorted(counts.items())]
    text = json.dumps({"schema": _SCHEMA, "alarms": items}, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text.encode("utf-8", "surrogateescape"), mode=0o644)


def without_known(alarms: Sequence[FalseClaim], known: Counter[tuple[str, ...]]) -> list[FalseClaim]:
    """The alarms that are not in the baseline, or there more often than it says."""
    left = Counter(known)
    new = []
    for alarm in alarms:
        if left[alarm.identity] > 0:
            left[alarm.identity] -= 1
        else:
            new.append(alarm)
    return new
