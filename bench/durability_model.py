"""A linear model beside the phrases of the durability filter, on the same labelled lines.

It is what a learned filter without a dependency at run time could be: logistic regression over hashed words, pairs of
words and the shape of a line. It is measured, not shipped: docs/decisions.md says why. Both are compared at the same
share of lasting lines stopped, by repository: tuning by cross-validation, held out after training on all of tuning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any
from zlib import crc32

from bench.durability import LASTING, LabelledLine, is_stopped
from bench.promises import CannotRun

BITS = 16
FOLDS = 8
SHARES = (0.03, 0.06)  # of the lasting lines
SOURCES = "py|tsx?|jsx?|mjs|go|rs|java|kt|rb|php|cc?|cpp|cs|swift|sql|sh|css|html|vue"
NORMAL = (
    (re.compile(r"https?://\S+"), " \x01url "),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b"), " \x01hash "),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), " \x01date "),
    (re.compile(rf"[\w@*~./\\-]*\.(?:{SOURCES})\b"), " \x01source "),
    (re.compile(r"(?:[\w@.*-]+/)+[\w@.*-]*"), " \x01path "),
    (re.compile(r"\d+"), "0"),
)
OPENING = re.compile(r"^(?:([-*+]) |(\d+[.)]) |(>) )?(?:(\[ \])|(\[x\]))?\s*", re.IGNORECASE)
TOKEN = re.compile(r"\x01\w+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+|[^\w\s]")


def compare(lines: Sequence[LabelledLine]) -> None:
    """Print what the phrases stop, and what the model stops of each kind at fixed shares of lasting lines."""
    numpy, linear, selection = _load("numpy"), _load("sklearn.linear_model"), _load("sklearn.model_selection")
    matrix = hashed(lines)
    stops = numpy.array([line.label != LASTING for line in lines])
    tuning = numpy.flatnonzero([line.half == "tuning" for line in lines])
    held = numpy.flatnonzero([line.half != "tuning" for line in lines])
    score = numpy.zeros(len(lines))

    def learn(train: Any, test: Any) -> None:
        model = linear.LogisticRegression(C=10, solver="liblinear").fit(matrix[train], stops[train])
        score[test] = model.decision_function(matrix[test])

    groups = [lines[index].repository for index in tuning]
    for train, test in selection.GroupKFold(FOLDS).split(tuning, groups=groups):
        learn(tuning[train], tuning[test])
    lasting = score[tuning[~stops[tuning]]]
    limits = [float(numpy.quantile(lasting, 1 - share)) for share in SHARES]
    learn(tuning, held)
    phrases = numpy.array([is_stopped(line.text) for line in lines])
    for name, part in (("tuning", tuning), ("held out", held)):
        _show(f"{name}, phrases", lines, part, phrases)
        for share, limit in zip(SHARES, limits, strict=True):
            _show(f"{name}, model at {share:.0%}", lines, part, score > limit)


def features(line: str) -> Iterator[str]:
    """Words and pairs of a line, its first words, and its shape."""
    opening = OPENING.match(line)
    assert opening is not None
    body = line[opening.end() :] or line
    yield f"open {opening.lastindex}"
    yield f"length {min(len(body) // 25, 8)}"
    yield f"code {min(body.count('`') // 2, 4)}"
    yield f"bold {body.startswith('**')}"
    text = body.lower()
    for pattern, replacement in NORMAL:
        text = pattern.sub(replacement, text)
    before = "^"
    for number, token in enumerate(TOKEN.findall(text)):
        yield token
        yield f"{before} {token}"
        if number < 2:
            yield f"{number} {token}"
        if len(token) > 5:
            yield f"{token[:5]}~"
        before = token
    yield f"{before} $"


def hashed(lines: Sequence[LabelledLine]) -> Any:
    numpy, sparse = _load("numpy"), _load("scipy.sparse")
    indices: list[int] = []
    ends = [0]
    values: list[float] = []
    for line in lines:
        found = sorted({crc32(feature.encode()) % (1 << BITS) for feature in features(line.text)})
        indices += found
        values += [len(found) ** -0.5] * len(found)
        ends.append(len(indices))
    return sparse.csr_matrix((numpy.array(values), indices, ends), shape=(len(lines), 1 << BITS))


def _show(title: str, lines: Sequence[LabelledLine], part: Any, stopped: Any) -> None:
    counts: dict[str, list[int]] = {}
    for index in part:
        count = counts.setdefault(lines[index].label, [0, 0])
        count[0] += bool(stopped[index])
        count[1] += 1
    print(f"{title:<24}", "  ".join(f"{label} {hit}/{total}" for label, (hit, total) in sorted(counts.items())))


def _load(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise CannotRun(f"--model needs {name.partition('.')[0]} (uv pip install scikit-learn)") from error
