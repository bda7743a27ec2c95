"""Public sets of conversations with an agent, as sessions: BEAM, SWE-ContextBench and PersonaMem.

Each session is rendered by the product's own parser, a line for each part of a turn, and is indexed as a transcript.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path, PurePosixPath
from typing import Any

from bench.cache import digest_files, keep_value
from bench.corpus import (
    MONTHS,
    Corpus,
    Evidence,
    FolderSource,
    Question,
    Source,
    line_count,
    one_line,
    part_of,
    read_folder,
    read_sources,
)
from truekeep.transcripts import injected_text, parser
from truekeep.transcripts.parser import Role, Turn, iter_dialogue, iter_turns

BEAM_COMMIT = "b2a3ee8ba12d68f83143dda191097dc3e028ddd3"
BEAM_100K = FolderSource(
    "beam",
    "mohammadtavakoli78/BEAM",
    BEAM_COMMIT,
    ("chats/100K",),
    ("chats/100K/*/chat.json", "chats/100K/*/probing_questions/probing_questions.json"),
    "6ed10435c1d1bae9bec44fb8f93d7627a69296d4ef1bec57db0e3321016416eb",
)
BEAM_500K = FolderSource(
    "beam",
    "mohammadtavakoli78/BEAM",
    BEAM_COMMIT,
    ("chats/500K",),
    ("chats/500K/*/chat.json", "chats/500K/*/probing_questions/probing_questions.json"),
    "dc261a88e6f542d4bf90018aef0c97745cf0337515f913173bf9239d1459904a",
)
PAST = "cases/SWEContextBench Lite Past Experience"
TASKS = "cases/SWEContextBench Lite"
SWE = FolderSource(
    "swe-contextbench",
    "jiayuanz3/SWEContextBench",
    "31bb04155f52b184bf31b220e3cff0607ac9c953",
    (PAST, TASKS),
    (f"{PAST}/*.jsonl", f"{TASKS}/*.json"),
    "241b18e10b517b2835e2933465ddfb5960709dac5225df74bac8a53009b88b85",
)
PERSONAMEM_DOCUMENTS = Source(
    "personamem-32k-documents.json.gz",
    "vectorize-io/agent-memory-benchmark",
    "de83fa7816ab6bbb8a0ed63916f49f65300fb74b",
    "data/personamem/32k/documents.json.gz",
    "26b7eaa63a55c8957f411360b2dcd1e898a9dcdd14885c43bf063a4e431262b5",
)
PERSONAMEM_QUERIES = Source(
    "personamem-32k-queries.json.gz",
    "vectorize-io/agent-memory-benchmark",
    "de83fa7816ab6bbb8a0ed63916f49f65300fb74b",
    "data/personamem/32k/queries.json.gz",
    "a5207c2c29a5b60cf2311c2413b14dcc67e8f889a75f1e3760dc931ee09f866a",
)


def kept(
    name: str, parse: Callable[[str, Mapping[str, bytes]], list[Corpus]], contents: Mapping[str, bytes]
) -> list[Corpus]:
    """What is parsed from files that were checked by digest; from the cache, if the same code has parsed it before."""
    code = digest_files([Path(__file__), Path(parser.__file__), Path(injected_text.__file__)])
    found: list[Corpus] = keep_value(f"set-{name}-{code}", lambda: parse(name, contents))
    return found


# BEAM: long chats with an assistant, and the messages that answer each question


def beam_100k(folder: Path) -> list[Corpus]:
    return kept("beam-100k", parse_beam, read_folder("beam-100k", folder, BEAM_100K))


def beam_500k(folder: Path) -> list[Corpus]:
    return kept("beam-500k", parse_beam, read_folder("beam-500k", folder, BEAM_500K))


def parse_beam(name: str, contents: Mapping[str, bytes]) -> list[Corpus]:
    """A corpus for each chat, in the order of their numbers."""
    chats = sorted((path for path in contents if path.endswith("/chat.json")), key=lambda path: int(chat_number(path)))
    return [
        parse_chat(
            f"{name}/{chat_number(path)}",
            json.loads(contents[path]),
            json.loads(contents[path.replace("chat.json", "probing_questions/probing_questions.json")]),
        )
        for path in chats
    ]


def chat_number(path: str) -> str:
    return PurePosixPath(path).parent.name


def parse_chat(
    name: str, batches: Sequence[Mapping[str, Any]], asked: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Corpus:
    """Each batch of a day a session. A message is found with its exchange: what the user said, and the answer."""
    files: dict[str, str] = {}
    days: dict[str, str] = {}
    units: dict[str, tuple[int, ...]] = {}
    places: dict[int, Evidence] = {}
    for batch in batches:
        messages = [message for turn in batch["turns"] for message in turn]
        path = f"sessions/{batch['batch_number']:02}.jsonl"
        days[path] = beam_day(next((one["time_anchor"] for one in messages if one.get("time_anchor")), ""))
        turns = [Turn(role_of(one["role"]), one["content"], at, "") for at, one in enumerate(messages, start=1)]
        lines = list(iter_dialogue(turns))
        files[path] = "\n".join(line for line, _ in lines) + "\n"
        starts: list[int] = []
        for first, last in exchanges([turn.role for turn in turns]):
            within = [at for at, (_, turn) in enumerate(lines, start=1) if first <= turn <= last]
            if within:
                starts.append(within[0])
                for message in messages[first - 1 : last]:
                    places[message["id"]] = Evidence(path, within[0], within[-1])
        units[path] = tuple(starts)
    questions = []
    for kind, rows in asked.items():
        for number, row in enumerate(rows, start=1):
            ids = iter_numbers(row.get("source_chat_ids"))
            if evidence := tuple(dict.fromkeys(places[one] for one in ids if one in places)):
                text = one_line(row["question"])
                questions.append(Question(f"{name}/{kind}/{number}", kind, text, evidence, part_of(name)))
    return Corpus(name, files, tuple(questions), days, units)


def role_of(name: str) -> Role:
    return "user" if name == "user" else "assistant"


def beam_day(anchor: str) -> str:
    """The day of an anchor such as "March-15-2024"; empty if it is none."""
    match = re.fullmatch(r"([A-Z][a-z]+)-(\d{1,2})-(\d{4})", anchor.strip())
    if match is None or match[1] not in MONTHS:
        return ""
    return date(int(match[3]), MONTHS.index(match[1]) + 1, int(match[2])).isoformat()


def exchanges(roles: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first and the last turn, from 1, of each exchange: a user's turns, and the answers up to the next."""
    start = 1
    for at, role in enumerate(roles, start=1):
        if at > 1 and role == "user" and roles[at - 2] != "user":
            yield start, at - 1
            start = at
    if roles:
        yield start, len(roles)


def iter_numbers(found: object) -> Iterator[int]:
    """The numbers in a number, a list or a dictionary, at any depth."""
    if isinstance(found, int):
        yield found
    elif isinstance(found, list | dict):
        for one in found.values() if isinstance(found, dict) else found:
            yield from iter_numbers(one)


# SWE-ContextBench: sessions of Claude Code, and new tasks that touch a file which one of them edited

EDITS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
CHANGED = re.compile(r"^diff --git a/(\S+) b/", re.MULTILINE)


def swe(folder: Path) -> list[Corpus]:
    return kept("swe", parse_swe, read_folder("swe", folder, SWE))


def swe_titles(folder: Path) -> list[Corpus]:
    return kept("swe-titles", parse_swe_titles, read_folder("swe-titles", folder, SWE))


def parse_swe_titles(name: str, contents: Mapping[str, bytes]) -> list[Corpus]:
    return parse_swe(name, contents, is_title=True)


def parse_swe(name: str, contents: Mapping[str, bytes], *, is_title: bool = False) -> list[Corpus]:
    """The question is the text of an issue, or its first line. Sessions that edited a file of its patch answer it."""
    files: dict[str, str] = {}
    days: dict[str, str] = {}
    edited: dict[str, set[str]] = {}
    for source, content in contents.items():
        if not source.endswith(".jsonl"):
            continue
        path = f"sessions/{PurePosixPath(source).name}"
        lines = content.splitlines()
        turns = list(iter_turns(lines, "claude"))
        files[path] = "\n".join(line for line, _ in iter_dialogue(turns)) + "\n"
        days[path] = next((turn.at[:10] for turn in reversed(turns) if turn.at), "")
        edited[path] = set(iter_edited(lines))
    questions = []
    for source, content in contents.items():
        if source.endswith(".jsonl"):
            continue
        task = json.loads(content)
        changed = [f"/{path}" for path in CHANGED.findall(task["patch"]) if path.endswith(".py")]
        evidence = tuple(
            Evidence(path, 1, line_count(files[path]))
            for path, places in edited.items()
            if any(place.endswith(one) for place in places for one in changed)
        )
        text = task["problem_statement"].strip()
        text = text.split("\n", 1)[0] if is_title else text
        if evidence and text:
            key = task["instance_id"]
            questions.append(Question(f"{name}/{key}", "task", one_line(text), evidence, part_of(key)))
    return [Corpus(name, files, tuple(questions), days, dict.fromkeys(files, (1,)))]


def iter_edited(lines: Iterable[bytes]) -> Iterator[str]:
    """The files that a session of Claude Code edited."""
    for line in lines:
        if not line.strip() or b'"tool_use"' not in line:
            continue
        content = (json.loads(line).get("message") or {}).get("content")
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") in EDITS:
                yield str(block["input"].get("file_path") or block["input"].get("notebook_path") or "")


# PersonaMem: what people told an assistant about themselves; the sessions of the one who asks are to be found

SPEECH = re.compile(r"^\[(SYSTEM|USER|ASSISTANT)\] ?(?:User: |Assistant: )?", re.MULTILINE)
ASKER = re.compile(r"\AUser: [^\n]*\n\s*")
PERSONAMEM_START = date(2026, 1, 1)  # the set has no days; the sessions of a person follow each other


def personamem(folder: Path) -> list[Corpus]:
    documents, queries = read_sources("personamem-32k", folder, PERSONAMEM_DOCUMENTS, PERSONAMEM_QUERIES)
    return [parse_personamem(json.loads(gzip.decompress(documents)), json.loads(gzip.decompress(queries)))]


def parse_personamem(documents: Sequence[Mapping[str, Any]], queries: Sequence[Mapping[str, Any]]) -> Corpus:
    """The sessions of all people together. What the system was told of a person, and the name, is left out.

    The set has most people twice, with much the same sessions; of each, the longer history is taken, and every
    question once.
    """
    people = {row["user_id"]: row["meta"]["persona_id"] for row in queries}
    histories: dict[str, list[Mapping[str, Any]]] = {}
    for row in documents:
        histories.setdefault(row["user_id"], []).append(row)
    taken: dict[str, str] = {}
    for user in sorted(people, key=lambda user: sum(len(row["content"]) for row in histories[user])):
        taken[people[user]] = user
    files: dict[str, str] = {}
    days: dict[str, str] = {}
    places: dict[str, list[Evidence]] = {}
    for person, user in sorted(taken.items()):
        for number, row in enumerate(histories[user], start=1):
            if lines := [line for line, _ in iter_dialogue(iter_speech(row["content"]))]:
                path = f"sessions/{person}-{number}.jsonl"
                files[path] = "\n".join(lines) + "\n"
                days[path] = (PERSONAMEM_START + timedelta(days=number)).isoformat()
                places.setdefault(person, []).append(Evidence(path, 1, len(lines)))
    asked: dict[tuple[str, str], Question] = {}
    for row in queries:
        person, text = row["meta"]["persona_id"], one_line(ASKER.sub("", row["meta"]["retrieval_query"]))
        question = Question(row["id"], row["meta"]["question_type"], text, tuple(places[person]), part_of(person))
        asked.setdefault((person, text), question)
    return Corpus("personamem-32k", files, tuple(asked.values()), days, dict.fromkeys(files, (1,)))


def iter_speech(text: str) -> Iterator[Turn]:
    """The turns of a text in which each begins with its role in brackets; what the system said is left out."""
    marks = list(SPEECH.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for number, (mark, end) in enumerate(zip(marks, ends, strict=True), start=1):
        if mark[1] != "SYSTEM":
            yield Turn(role_of(mark[1].lower()), text[mark.end() : end].strip(), number, "")
