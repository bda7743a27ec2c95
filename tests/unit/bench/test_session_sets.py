"""Sets of conversations: what becomes a session, which lines answer; the windows they are compared with; the cache."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from bench import cache, recall_quality, windows
from bench.corpus import Corpus, Evidence, FolderSource, Question, Unavailable, part_of, read_folder
from bench.score import Scores
from bench.session_sets import exchanges, iter_numbers, parse_beam, parse_personamem, parse_swe

from truekeep.search.embedders.static import Static


def a_message(number: int, role: str, content: str, **more: str) -> dict[str, Any]:
    return {"id": number, "role": role, "content": content, **more}


def test_a_batch_is_a_session_and_a_message_is_found_with_its_exchange() -> None:
    first = [a_message(0, "user", "Plan\nit.", time_anchor="March-05-2024"), a_message(1, "assistant", "Done.")]
    second = [a_message(2, "user", "Why?"), a_message(3, "assistant", "So.")]
    third = [a_message(4, "user", "Next day.", time_anchor="Someday"), a_message(5, "assistant", "Yes.")]
    chat = [{"batch_number": 1, "turns": [first, second]}, {"batch_number": 2, "turns": [third]}]
    asked = {
        "update": [
            {"question": "When?", "source_chat_ids": {"old": [1], "new": [2, 4]}},
            {"question": "Never?", "source_chat_ids": []},
        ],
        "abstention": [{"question": "Unknown?"}],
    }
    contents = {
        "chats/100K/7/chat.json": json.dumps(chat).encode(),
        "chats/100K/7/probing_questions/probing_questions.json": json.dumps(asked).encode(),
    }
    (corpus,) = parse_beam("beam", contents)
    assert corpus.name == "beam/7"
    assert corpus.files == {
        "sessions/01.jsonl": "User: Plan it.\nAssistant: Done.\nUser: Why?\nAssistant: So.\n",
        "sessions/02.jsonl": "User: Next day.\nAssistant: Yes.\n",
    }
    assert corpus.days == {"sessions/01.jsonl": "2024-03-05", "sessions/02.jsonl": ""}
    assert corpus.units == {"sessions/01.jsonl": (1, 3), "sessions/02.jsonl": (1,)}
    evidence = (
        Evidence("sessions/01.jsonl", 1, 2),
        Evidence("sessions/01.jsonl", 3, 4),
        Evidence("sessions/02.jsonl", 1, 2),
    )
    assert corpus.questions == (Question("beam/7/update/1", "update", "When?", evidence, part_of("beam/7")),)


def test_exchanges_begin_with_the_user() -> None:
    assert list(exchanges(["user", "assistant", "user", "user", "assistant", "assistant", "user"])) == [
        (1, 2),
        (3, 6),
        (7, 7),
    ]
    assert list(exchanges([])) == []
    assert list(iter_numbers({"a": [1, [2]], "b": 3, "c": None})) == [1, 2, 3]


def a_session(said: str, edited: str) -> bytes:
    rows: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": said}, "timestamp": "2025-12-12T10:00:00Z"},
        {
            "type": "assistant",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I will."},
                    {"type": "tool_use", "name": "Edit", "input": {"file_path": edited}},
                    {"type": "tool_use", "name": "Read", "input": {"file_path": "/w/pkg/other.py"}},
                ],
            },
            "timestamp": "2025-12-13T10:00:00Z",
        },
    ]
    return "\n".join(["", *map(json.dumps, rows)]).encode()


def test_a_task_is_answered_by_sessions_that_edited_a_file_of_its_patch() -> None:
    def a_task(path: str) -> bytes:
        patch = f"diff --git a/{path} b/{path}\n--- a/{path}\ndiff --git a/docs/x.md b/docs/x.md\n"
        return json.dumps({"instance_id": path, "patch": patch, "problem_statement": "Crash.\nA long\nstory"}).encode()

    contents = {
        "past/one.jsonl": a_session("Fix the crash.", "/w/pkg/core.py"),
        "past/two.jsonl": a_session("Write docs.", "/w/docs/x.md"),
        "tasks/a.json": a_task("pkg/core.py"),
        "tasks/b.json": a_task("pkg/other.py"),
        "tasks/c.json": a_task("kg/core.py"),
    }
    (corpus,) = parse_swe("swe", contents)
    assert corpus.units == {"sessions/one.jsonl": (1,), "sessions/two.jsonl": (1,)}
    assert corpus.files["sessions/one.jsonl"] == "User: Fix the crash.\nAssistant: I will.\n"
    assert corpus.days["sessions/one.jsonl"] == "2025-12-13"
    (question,) = corpus.questions
    assert (question.text, question.evidence) == ("Crash. A long story", (Evidence("sessions/one.jsonl", 1, 2),))
    (titles,) = parse_swe("swe-titles", contents, is_title=True)
    assert titles.questions[0].text == "Crash."


def test_of_a_person_who_is_there_twice_the_longer_history_is_taken() -> None:
    def a_document(user: str, number: int, text: str) -> dict[str, str]:
        said = f"[SYSTEM] You are with Ann.\n\n[USER] User: {text}\n\n[ASSISTANT] Assistant: I see."
        return {"id": f"{user}_{number}", "user_id": user, "content": said}

    def a_query(user: str, person: str, text: str) -> dict[str, Any]:
        about = {"persona_id": person, "question_type": "fact", "retrieval_query": f"User: Ann\n\n{text}"}
        return {"id": f"{user}/{text}", "user_id": user, "meta": about}

    documents = [a_document("x", 0, "Tea."), a_document("y", 0, "Tea, green."), a_document("z", 0, "Milk.")]
    queries = [a_query("x", "0", "A drink?"), a_query("y", "0", "A drink?"), a_query("z", "1", "A drink?")]
    corpus = parse_personamem(documents, queries)
    assert corpus.files == {
        "sessions/0-1.jsonl": "User: Tea, green.\nAssistant: I see.\n",
        "sessions/1-1.jsonl": "User: Milk.\nAssistant: I see.\n",
    }
    assert [(one.text, one.evidence[0].path) for one in corpus.questions] == [
        ("A drink?", "sessions/0-1.jsonl"),
        ("A drink?", "sessions/1-1.jsonl"),
    ]


def test_a_folder_is_read_if_all_of_it_is_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "set" / "in").mkdir(parents=True)
    (tmp_path / "set" / "in" / "b.json").write_bytes(b"2")
    (tmp_path / "set" / "in" / "a.json").write_bytes(b"1")
    lines = "".join(
        f"{hashlib.sha256(text).hexdigest()}  in/{name}.json\n" for name, text in (("a", b"1"), ("b", b"2"))
    )
    digest = hashlib.sha256(lines.encode()).hexdigest()
    source = FolderSource("set", "owner/name", "c0ffee", ("in dir",), ("in/*.json",), digest)
    assert read_folder("some", tmp_path, source) == {"in/a.json": b"1", "in/b.json": b"2"}
    assert source.how(tmp_path).endswith("checkout c0ffee -- 'in dir'")
    (tmp_path / "set" / "in" / "b.json").write_bytes(b"3")
    with pytest.raises(
        Unavailable, match=r"some: the 2 files of set have SHA-256 .*, not .* to get it again: git clone"
    ):
        read_folder("some", tmp_path, source)


def test_windows_are_whole_lines_up_to_400_characters() -> None:
    text = "a" * 150 + "\n" + "b" * 200 + "\n" + "c" * 100 + "\n" + "word " * 200 + "\n" + "x" * 900
    found = [text[window.start : window.end] for window in windows.iter_windows(text)]
    assert "".join(found) == text
    assert max(map(len, found)) <= 400
    assert found[0] == text[:352]
    assert all(piece.strip(" ").endswith("word") for piece in found[2:4])


def test_a_window_grows_by_whole_words_on_both_sides() -> None:
    text = "word " * 400
    start, end = windows.grow(text, windows.Window(1000, 1400))
    assert 590 <= end - start <= 600
    assert text[start - 1] == text[end] == " "
    assert windows.grow("short", windows.Window(0, 5)) == (0, 5)


def test_an_interval_holds_the_mean_and_a_sure_difference_is_told() -> None:
    question = Question("q", "kind", "?", (Evidence("a.md", 1, 1),), "report")

    def trials(*values: float) -> list[recall_quality.Trial]:
        return [recall_quality.Trial(question, Scores(1, *[value] * 6), 0.0) for value in values]

    (found, *_) = recall_quality.measure(trials(*[0.0, 1.0] * 50))
    assert found.low < found.value == 0.5 < found.high
    assert found.high - found.low == pytest.approx(0.2, abs=0.03)
    ours, level, better = trials(*[0.0, 1.0] * 50), trials(*[1.0, 0.0] * 50, 1.0)[:100], trials(*[1.0] * 100)
    assert recall_quality.find_better({"set": {"words": level, "ours": ours}}) == []
    behind = recall_quality.find_better({"set": {"words": better, "rank fusion": level, "ours": ours}})
    assert len(behind) == 6
    assert {(one.ranking, one.is_sure) for one in behind} == {("words", True)}


def test_a_corpus_is_indexed_once_and_asked_as_sessions_or_as_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path))
    files = {"sessions/1.jsonl": "User: Where is the kettle?\nAssistant: In the kitchen.\n"}
    question = Question("q", "kind", "where is the kettle", (Evidence("sessions/1.jsonl", 1, 1),), "tune")
    sessions = Corpus("some", files, (question,), {"sessions/1.jsonl": "2024-03-05"})
    notes = Corpus("some", {"memory/cards/a.md": "The kettle is in the kitchen.\n"}, (question,))
    embedder = Static(lexicon=str(tmp_path / "lexicon.bin"))
    for corpus, path in ((sessions, "sessions/1.jsonl"), (notes, "memory/cards/a.md")):
        for ranking in recall_quality.RANKINGS.values():
            with recall_quality.indexed(corpus, embedder) as memory:
                assert [hit.path for hit in ranking(memory, question.text)] == [path]
    assert len(list(cache.cache_folder().glob("*.sqlite"))) == 4  # an index and its windows, for each
    first = recall_quality.ask("some", [sessions], "tune", 9, embedder, ["ours"])
    assert {name: [trial.scores.mrr for trial in trials] for name, trials in first.items()} == {
        **{name: [1.0] for name in recall_quality.PLAIN},
        "ours": [1.0],
    }
    monkeypatch.setitem(recall_quality.RANKINGS, "words", lambda *_: [])
    again = recall_quality.ask("some", [sessions], "tune", 9, embedder, ["ours"])
    assert again["words"] == first["words"]


def test_a_value_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_CACHE", str(tmp_path))
    made: list[int] = []

    def make() -> int:
        made.append(len(made))
        return 7

    assert [cache.keep_value("one", make), cache.keep_value("one", make)] == [7, 7]
    assert made == [0]

    def fail() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.keep_value("two", fail)
    assert cache.keep_value("two", make) == 7
