"""The sets that search is measured on, as values: the files of a workspace, and questions with the lines that answer.

Our own set is in the repository. The public ones are not: each is read from the folder that TRUEKEEP_BENCH_DATA names
(bench/data without it), checked by digest, and left out with a line on how to get it. Nothing here searches or scores.

What of each set may be looked at while a setting is chosen is marked "tune"; what is reported is marked "report".

python -m bench.sets lists what is at hand.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from bench import session_sets
from bench.corpus import (
    HERE,
    MONTHS,
    PARTS,
    Corpus,
    Evidence,
    Question,
    Source,
    Unavailable,
    data_folder,
    line_count,
    number_of,
    one_line,
    part_of,
    read_sources,
)
from bench.measure import table

OWN = HERE / "memory_set"
MOST_DOCUMENTS = 6_000


LOCOMO = Source(
    "locomo10.json",
    "snap-research/locomo",
    "cbfbc1dba6bc53d00625212a0f22d55ffee7c1fc",
    "data/locomo10.json",
    "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
)
LOCOMO_AUDIT = Source(
    "locomo-errors.json",
    "dial481/locomo-audit",
    "9493fb4b4af4256ed17a18e8fd0b3cfdeec29539",
    "errors.json",
    "f298ef46263fada20688a1d672be37d4f488c6da3b19343eea55ae5c1b5fe55e",
)
# SciFact as its authors gave it out, in CSV. Claims and judgements are those of BEIR, whose test part is called
# validation here.
SCIFACT = Source(
    "scifact.zip",
    "sumithra-p-v/claimverifier",
    "c89fe399bf3e91aa4502b10d673b07db27891526",
    "data/scifact.zip",
    "a798a7046af0f6fa04476448459ce7cafeea5bd90d4d99c53a0e27dc5e1a4673",
)
FAQ_DOCUMENTS = Source(
    "zoomcamp-documents.json",
    "DataTalksClub/llm-zoomcamp",
    "41ab425828a687cfb59a6cffd43bc3f980a5f284",
    "06-best-practices/documents-with-ids.json",
    "bdd5bcb576cc2bee4a82b5311b5eb2a45d97a236ddd434c5ff64764146782268",
)
FAQ_QUESTIONS = Source(
    "zoomcamp-questions.csv",
    "DataTalksClub/llm-zoomcamp",
    "41ab425828a687cfb59a6cffd43bc3f980a5f284",
    "06-best-practices/ground-truth-data.csv",
    "9f7b02f994770c163c4de3254defbefd499a5b4087b131e6d7ce3f8d8cf38815",
)
COSQA_CODE = Source(
    "cosqa-code.json",
    "Jun-jie-Huang/CoCLR",
    "14ebcacf9e9bc3e7109102632bc63047876f27d2",
    "data/search/code_idx_map.txt",
    "be8a910ca03cb9f1b38a0eba6dc8109eeb8040a40aaba1a467a7b8426d261f3f",
)
COSQA_DEV = Source(
    "cosqa-dev.json",
    "Jun-jie-Huang/CoCLR",
    "14ebcacf9e9bc3e7109102632bc63047876f27d2",
    "data/search/cosqa-retrieval-dev-500.json",
    "ccdfffee7ae1f1cf1a0406566a61c984f4fbce678c8ea108eedd03d11bff9518",
)
COSQA_TEST = Source(
    "cosqa-test.json",
    "Jun-jie-Huang/CoCLR",
    "14ebcacf9e9bc3e7109102632bc63047876f27d2",
    "data/search/cosqa-retrieval-test-500.json",
    "27d3552b2e7dd86cf9f9a0b3c135e6777d4faafa9c29fb1b9b01ece945974ad6",
)


def load(*names: str, folder: Path | None = None) -> dict[str, list[Corpus]]:
    """The sets of these names, or all of them. One that is not at hand is named in a line, and left out."""
    found = {}
    for name in names or SETS:
        try:
            found[name] = SETS[name](folder or data_folder())
        except Unavailable as problem:
            print(problem)
    return found


# Our own set


def memory_set(folder: Path = OWN) -> list[Corpus]:
    """The memory of a made-up project, written for this benchmark."""
    path = folder / "questions.jsonl"
    if not path.is_file():
        raise Unavailable([f"memory: no {path.name} in {folder}, so it is left out; it belongs to the repository"])
    workspace = folder / "workspace"
    files = {
        found.relative_to(workspace).as_posix(): found.read_text(encoding="utf-8")
        for found in sorted(workspace.rglob("*.md"))
    }
    return [Corpus("memory", files, parse_questions(path.read_text(encoding="utf-8"), files))]


def parse_questions(text: str, files: Mapping[str, str]) -> tuple[Question, ...]:
    """One JSON object a line. Evidence that points at nothing would make a search look bad, so it is refused."""
    lengths = {path: line_count(content) for path, content in files.items()}
    questions: list[Question] = []
    problems: list[str] = []
    seen: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        row = json.loads(line)
        evidence = tuple(Evidence(item["path"], item["first"], item["last"]) for item in row["evidence"])
        question = Question(row["id"], row["kind"], row["text"], evidence, row["part"])
        if question.id in seen:
            problems.append(f"line {number}: id {question.id} is there twice")
        if question.part not in PARTS:
            problems.append(f"line {number}: part {question.part!r} is neither of {PARTS}")
        if not evidence:
            problems.append(f"line {number}: no evidence")
        problems += [
            f"line {number}: no lines {item.first}-{item.last} in {item.path}"
            for item in evidence
            if not 1 <= item.first <= item.last <= lengths.get(item.path, 0)
        ]
        seen.add(question.id)
        questions.append(question)
    if problems:
        raise ValueError("\n".join(problems))
    return tuple(questions)


# LoCoMo: long conversations of two people, with the utterances that answer each question

LOCOMO_TUNE = frozenset({"conv-30", "conv-43", "conv-49"})  # a short, a long and a middling one
LOCOMO_KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}  # 5: has no answer on purpose
SESSION = re.compile(r"session_(\d+)")
DAY = re.compile(r"(\d+) (\w+), (\d{4})")
UTTERANCE = re.compile(r"D:?(\d+):(\d+)")  # the set has "D8:6; D9:17", "D:11:26" and "D30:05", too


def locomo(folder: Path) -> list[Corpus]:
    content, audit = read_sources("locomo", folder, LOCOMO, LOCOMO_AUDIT)
    return parse_locomo(content.decode(), audit.decode())


def parse_locomo(text: str, audit: str = "[]") -> list[Corpus]:
    """All conversations. The audit names questions with a wrong answer, and such with only a wrong citation."""
    errors = {row["question_id"]: row for row in json.loads(audit)}
    corpora = []
    for number, sample in enumerate(json.loads(text)):
        ids = (f"locomo_{number}_qa{at}" for at in range(len(sample["qa"])))
        corpora.append(parse_conversation(sample, [errors.get(one) for one in ids]))
    return corpora


def parse_conversation(sample: Mapping[str, Any], errors: Sequence[Mapping[str, Any] | None] = ()) -> Corpus:
    """Each session a daily log, each utterance a line of it. With errors, one or none for each question."""
    conversation = sample["conversation"]
    files: dict[str, str] = {}
    places: dict[tuple[int, int], Evidence] = {}
    for number in sorted(int(match[1]) for key in conversation if (match := SESSION.fullmatch(key))):
        when = conversation[f"session_{number}_date_time"]
        path = log_path(when, files)
        lines = [f"# {when}", ""]
        for turn in conversation[f"session_{number}"]:
            lines.append(render_utterance(turn))
            for place in utterances([turn["dia_id"]]):
                places[place] = Evidence(path, len(lines), len(lines))
        files[path] = "\n".join(lines) + "\n"
    name = sample["sample_id"]
    part = "tune" if name in LOCOMO_TUNE else "report"
    questions = []
    for number, (row, error) in enumerate(zip_longest(sample["qa"], errors), start=1):
        if error and error["error_type"] != "WRONG_CITATION":
            continue  # its answer is wrong
        cited = error["correct_evidence"] if error else row.get("evidence", ())
        evidence = tuple(places[place] for place in utterances(cited) if place in places)
        if evidence and row["category"] in LOCOMO_KINDS:
            kind = LOCOMO_KINDS[row["category"]]
            questions.append(Question(f"{name}/{number}", kind, one_line(row["question"]), evidence, part))
    return Corpus(f"locomo/{name}", files, tuple(questions))


def log_path(when: str, taken: Mapping[str, str]) -> str:
    """The daily log of a time such as "1:56 pm on 8 May, 2023"; another one if that day has a log already."""
    match = DAY.search(when)
    if match is None:
        raise ValueError(f"no day in {when!r}")
    day = date(int(match[3]), MONTHS.index(match[2]) + 1, int(match[1])).isoformat()
    path, number = f"memory/{day}.md", 1
    while path in taken:
        number += 1
        path = f"memory/{day}-{number}.md"
    return path


def render_utterance(turn: Mapping[str, str]) -> str:
    shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return one_line(f"{turn['speaker']}: {turn['text']}{shared}")


def utterances(ids: Iterable[str]) -> list[tuple[int, int]]:
    """(session, utterance) of every dialogue id, each once."""
    found = (match for text in ids for match in UTTERANCE.finditer(text))
    return list(dict.fromkeys((int(match[1]), int(match[2])) for match in found))


# Sets of documents: each document a card, and all of it is evidence


class Document(NamedTuple):
    title: str
    text: str


class Asked(NamedTuple):
    """A question before it is known where the documents lie."""

    id: str
    text: str
    relevant: tuple[str, ...]  # ids of documents
    part: str


def make_cards(name: str, kind: str, documents: Mapping[str, Document], asked: Iterable[Asked]) -> Corpus:
    """A card for each document. Of a large set all that answer something stay, and others up to a limit."""
    rows = [row for row in asked if row.relevant]
    kept = sample_documents(documents, {one for row in rows for one in row.relevant})
    files, places = {}, {}
    for one in kept:
        path, text = f"memory/cards/{one}.md", f"# {one_line(documents[one].title)}\n\n{documents[one].text.strip()}\n"
        files[path] = text
        places[one] = Evidence(path, 1, line_count(text))
    questions = [
        Question(row.id, kind, one_line(row.text), tuple(places[one] for one in row.relevant), row.part) for row in rows
    ]
    return Corpus(name, files, tuple(questions))


def sample_documents(documents: Iterable[str], relevant: set[str], most: int = MOST_DOCUMENTS) -> list[str]:
    """The same ones every time, on every machine, in the order of the set."""
    ids = list(documents)
    others = sorted((one for one in ids if one not in relevant), key=number_of)
    kept = relevant.union(others[: max(0, most - len(relevant))])
    return [one for one in ids if one in kept]


# SciFact: claims of science, and the abstracts that they were cited with

LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)


def scifact(folder: Path) -> list[Corpus]:
    (content,) = read_sources("scifact", folder, SCIFACT)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        abstracts = archive.read("corpus_train.csv").decode()
        claims = {
            "tune": archive.read("claims_train.csv").decode(),
            "report": archive.read("claims_validation.csv").decode(),
        }
    return [parse_scifact(abstracts, claims)]


def parse_scifact(abstracts: str, claims: Mapping[str, str]) -> Corpus:
    documents = {
        row["doc_id"]: Document(row["title"], "\n".join(parse_sentences(row["abstract"])))
        for row in read_csv(abstracts)
    }
    asked = {}  # a claim has a row for each piece of its evidence
    for part, text in claims.items():
        for row in read_csv(text):
            asked[row["id"]] = Asked(row["id"], row["claim"], tuple(re.findall(r"\d+", row["cited_doc_ids"])), part)
    return make_cards("scifact", "claim", documents, asked.values())


def parse_sentences(text: str) -> list[str]:
    """The sentences of an array as numpy prints it: quoted one by one as Python does, with nothing in between."""
    return [one_line(ast.literal_eval(literal)) for literal in LITERAL.findall(text)]


# The questions and answers of the DataTalksClub courses: Docker, Terraform, Spark, Kafka, deployment


def faq(folder: Path) -> list[Corpus]:
    documents, questions = read_sources("faq", folder, FAQ_DOCUMENTS, FAQ_QUESTIONS)
    return parse_faq(documents.decode(), questions.decode())


def parse_faq(documents: str, questions: str) -> list[Corpus]:
    """A workspace for each course: a question belongs to one, and does not say to which."""
    courses: dict[str, dict[str, Document]] = {}
    for row in json.loads(documents):
        known = courses.setdefault(row["course"], {})
        known.setdefault(row["id"], Document(row["question"], row["text"]))
    asked: dict[str, list[Asked]] = {course: [] for course in courses}
    for number, row in enumerate(read_csv(questions), start=1):
        one = row["document"]  # by document, so that five ways to ask the same are in the same part
        asked[row["course"]].append(Asked(f"faq/{number}", row["question"], (one,), part_of(one)))
    return [make_cards(f"faq/{course}", "faq", known, asked[course]) for course, known in courses.items()]


# CoSQA: what people typed into a web search, and the Python function that answers it

FUNCTION = re.compile(r"\bdef\s+(\w+)")


def cosqa(folder: Path) -> list[Corpus]:
    code, dev, test = read_sources("cosqa", folder, COSQA_CODE, COSQA_DEV, COSQA_TEST)
    return [parse_cosqa(code.decode(), {"tune": dev.decode(), "report": test.decode()})]


def parse_cosqa(code: str, queries: Mapping[str, str]) -> Corpus:
    documents = {}
    for text, number in json.loads(code).items():
        match = FUNCTION.search(text)
        documents[str(number)] = Document(match[1] if match else "code", f"~~~python\n{text}\n~~~")
    asked = [
        Asked(row["idx"], row["doc"], (str(row["retrieval_idx"]),), part)
        for part, text in queries.items()
        for row in json.loads(text)
    ]
    return make_cards("cosqa", "code", documents, asked)


# Text


def read_csv(text: str) -> Iterable[dict[str, str]]:
    return csv.DictReader(io.StringIO(text, newline=""))


SETS: dict[str, Callable[[Path], list[Corpus]]] = {
    "memory": lambda _: memory_set(),
    "locomo": locomo,
    "faq": faq,
    "cosqa": cosqa,
    "scifact": scifact,
    "beam-100k": session_sets.beam_100k,
    "beam-500k": session_sets.beam_500k,
    "swe": session_sets.swe,
    "swe-titles": session_sets.swe_titles,
    "personamem-32k": session_sets.personamem,
}


def main() -> None:
    rows = []
    for corpora in load().values():
        for corpus in corpora:
            parts = [question.part for question in corpus.questions]
            characters = sum(map(len, corpus.files.values()))
            counts = [len(corpus.files), characters, parts.count("tune"), parts.count("report")]
            rows.append([corpus.name, *(f"{count:,}" for count in counts)])
    table(["set", "files", "characters", "to tune", "to report"], rows)


if __name__ == "__main__":
    main()
