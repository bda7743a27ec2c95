"""The measures of the search benchmark, worked out by hand; its sets: what is read, and what is said when absent."""

from __future__ import annotations

import hashlib
import json
from math import log2
from pathlib import Path

import pytest
from bench import sets
from bench.corpus import Evidence, Question, Source, Unavailable, data_folder, part_of, read_sources
from bench.score import Hit, Scores, mean, score, score_all, score_by_kind, within
from bench.sets import Asked, Document


def a_hit(path: str, first: int = 1, last: int = 1, text: str = "x\n") -> Hit:
    return Hit(path, first, last, text)


def misses(count: int) -> list[Hit]:
    return [a_hit(f"other-{number}.md") for number in range(count)]


# Measures


def test_evidence_is_found_by_the_first_hit_of_its_file_that_shares_a_line() -> None:
    hits = [a_hit("a.md", 1, 4), a_hit("b.md", 5, 9), a_hit("a.md", 7, 9), a_hit("a.md", 5, 7), a_hit("a.md", 5, 5)]
    scores = score([Evidence("a.md", 5, 6)], hits)
    assert scores.mrr == 1 / 4
    assert scores.recall_5 == 1
    assert scores.ndcg_10 == pytest.approx(1 / log2(5))


@pytest.mark.parametrize(("first", "last", "found"), [(1, 4, 0), (1, 5, 1), (5, 5, 1), (6, 9, 1), (7, 9, 0), (1, 9, 1)])
def test_lines_overlap_at_their_ends(first: int, last: int, found: int) -> None:
    assert score([Evidence("a.md", 5, 6)], [a_hit("a.md", first, last)]).recall_5 == found


def test_recall_counts_items_within_five_and_ten() -> None:
    evidence = [Evidence("a.md", 1, 1), Evidence("b.md", 1, 1), Evidence("c.md", 1, 1), Evidence("d.md", 1, 1)]
    hits = [*misses(4), a_hit("a.md"), a_hit("b.md"), *misses(3), a_hit("c.md"), a_hit("d.md")]  # 5, 6, 10 and 11
    scores = score(evidence, hits)
    assert scores.recall_5 == 1 / 4
    assert scores.recall_10 == 3 / 4
    assert scores.mrr == 1 / 5
    gain = 1 / log2(6) + 1 / log2(7) + 1 / log2(11)
    ideal = 1 + 1 / log2(3) + 1 / log2(4) + 1 / log2(5)
    assert scores.ndcg_10 == pytest.approx(gain / ideal)


def test_rank_beyond_ten_still_counts_for_the_first_hit_only() -> None:
    assert score([Evidence("a.md", 1, 1)], [*misses(19), a_hit("a.md")]) == Scores(1, 0, 0, 1 / 20, 0, 1, 0)


def test_an_item_gains_once() -> None:
    evidence = [Evidence("a.md", 1, 9), Evidence("b.md", 1, 9)]
    hits = [a_hit("a.md", 1, 3), a_hit("a.md", 4, 6), a_hit("b.md", 1, 1), a_hit("b.md", 2, 2)]
    assert score(evidence, hits).ndcg_10 == pytest.approx((1 + 1 / log2(4)) / (1 + 1 / log2(3)))


def test_one_hit_with_all_the_evidence_is_perfect_and_no_more() -> None:
    evidence = [Evidence("a.md", line, line) for line in (1, 2, 3)]
    assert score(evidence, [a_hit("a.md", 1, 3)]) == Scores(1, 1, 1, 1, 1, 1, 1)


def test_more_than_ten_items_are_ideal_when_all_ten_hits_find_one() -> None:
    evidence = [Evidence(f"{number}.md", 1, 1) for number in range(20)]
    scores = score(evidence, [a_hit(item.path) for item in evidence])
    assert scores.ndcg_10 == pytest.approx(1)
    assert scores.recall_10 == 1 / 2


def test_with_units_a_hit_that_shows_nothing_new_has_no_rank_but_takes_room() -> None:
    lines = "y" * 99 + "\n"
    hits = [*(a_hit("a.md", at, at, lines * 20) for at in range(1, 7)), a_hit("b.md", 1, 1)]
    evidence = [Evidence("b.md", 1, 9)]
    assert score(evidence, hits) == Scores(1, 0, 1, 1 / 7, 1 / log2(8), 0, 0)
    assert score(evidence, hits, units={"a.md": (1,), "b.md": (1,)}) == Scores(1, 1, 1, 1 / 2, 1 / log2(3), 0, 1)
    parts = {"a.md": (1, 3, 6), "b.md": (1,)}  # hits 1 and 2 are of the first part, 3 to 5 of the second
    assert score(evidence, hits, units=parts).mrr == 1 / 4


def test_nothing_found() -> None:
    assert score([Evidence("a.md", 1, 1)], []) == Scores(1, 0, 0, 0, 0, 0, 0)
    assert score([Evidence("a.md", 1, 1)], misses(3)) == Scores(1, 0, 0, 0, 0, 0, 0)


def test_no_evidence_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        score([], [a_hit("a.md")])


def test_the_budget_cuts_the_hit_at_the_boundary_to_whole_lines() -> None:
    hits = [a_hit("a.md", 1, 1, "12345\n"), a_hit("b.md", 10, 12, "1234\n6789\n1234\n"), a_hit("c.md")]
    assert [hit[:3] for hit in within(hits, 19)] == [("a.md", 1, 1), ("b.md", 10, 11)]
    assert [hit[:3] for hit in within(hits, 20)] == [
        ("a.md", 1, 1),
        ("b.md", 10, 12),
    ]  # the last newline may be cut off
    assert [hit[:3] for hit in within(hits, 15)] == [("a.md", 1, 1), ("b.md", 10, 11)]
    assert [hit[:3] for hit in within(hits, 14)] == [("a.md", 1, 1), ("b.md", 10, 10)]
    assert [hit[:3] for hit in within(hits, 9)] == [("a.md", 1, 1)]
    assert within(hits, 4) == []
    assert len(within(hits, 1000)) == 3


def test_recall_within_the_budget() -> None:
    lines = "y" * 99 + "\n"
    evidence = [Evidence("b.md", 10, 10), Evidence("b.md", 11, 11)]
    hits = [a_hit("a.md", 1, 30, lines * 30), a_hit("b.md", 1, 20, lines * 20)]  # ten lines of the second fit
    scores = score(evidence, hits)
    assert scores.recall_5 == 1
    assert scores.recall_budget == 1 / 2


def test_a_long_first_hit_hides_all_that_follows() -> None:
    assert score([Evidence("b.md", 1, 1)], [a_hit("a.md", 1, 1, "y" * 4_001), a_hit("b.md")]).recall_budget == 0
    assert score([Evidence("b.md", 1, 1)], [a_hit("a.md", 1, 1, "y" * 3_998), a_hit("b.md")]).recall_budget == 1


def test_means_over_questions_and_by_kind() -> None:
    def ask(kind: str, path: str) -> Question:
        return Question(f"{kind}-{path}", kind, "?", (Evidence(path, 1, 1),), "report")

    hits = [a_hit("a.md"), a_hit("b.md")]
    ranked = [(ask("one", "a.md"), hits), (ask("two", "b.md"), hits), (ask("two", "c.md"), hits)]
    assert score_all(ranked).questions == 3
    assert score_all(ranked).mrr == pytest.approx((1 + 1 / 2) / 3)
    kinds = score_by_kind(ranked)
    assert list(kinds) == ["one", "two"]
    assert kinds["one"] == Scores(1, 1, 1, 1, 1, 1, 1)
    assert kinds["two"] == pytest.approx(Scores(2, 1 / 2, 1 / 2, 1 / 4, 1 / log2(3) / 2, 1 / 2, 1 / 2))
    assert mean(kinds.values()) == pytest.approx(score_all(ranked))
    assert score_all([]) == Scores(0, 0, 0, 0, 0, 0, 0)


# Sets that are absent, or another


def test_an_absent_file_is_named_in_one_line_with_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        sets.locomo(tmp_path)
    problem, audit = caught.value.problems
    assert audit.startswith("locomo: no locomo-errors.json here, so it is left out; to get it: curl ")
    assert "\n" not in problem
    assert problem.startswith("locomo: no locomo10.json here, so it is left out; to get it: curl ")
    assert str(tmp_path / "locomo10.json") in problem
    assert f"/snap-research/locomo/{sets.LOCOMO.commit}/data/locomo10.json" in problem


@pytest.mark.parametrize(
    ("name", "files"),
    [("locomo", 2), ("faq", 2), ("cosqa", 3), ("scifact", 1), ("beam-100k", 1), ("swe", 1), ("personamem-32k", 2)],
)
def test_every_absent_file_is_named_at_once(name: str, files: int, tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        sets.SETS[name](tmp_path)
    assert len(caught.value.problems) == files
    assert all(problem.startswith(f"{name}: ") for problem in caught.value.problems)


def test_another_file_of_that_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "locomo10.json").write_text("[]")
    with pytest.raises(Unavailable) as caught:
        sets.locomo(tmp_path)
    problem, _ = caught.value.problems
    assert f"has SHA-256 {hashlib.sha256(b'[]').hexdigest()}, not {sets.LOCOMO.sha256}" in problem
    assert "to get it again: curl " in problem


def test_absent_sets_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sets.load("locomo", "scifact", folder=tmp_path) == {}
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["locomo", "locomo", "scifact"]


def test_the_folder_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUEKEEP_BENCH_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    monkeypatch.delenv("TRUEKEEP_BENCH_DATA")
    assert data_folder().parts[-2:] == ("bench", "data")


def test_a_file_with_the_right_digest_is_read(tmp_path: Path) -> None:
    source = Source("a b.txt", "owner/name", "c0ffee", "data/a.txt", hashlib.sha256(b"text").hexdigest())
    (tmp_path / source.name).write_bytes(b"text")
    assert read_sources("some", tmp_path, source) == [b"text"]
    assert f"'{tmp_path / source.name}'" in source.how(tmp_path)  # a space is quoted for the shell


# What is made of a set


def test_a_conversation_becomes_daily_logs() -> None:
    sample = {
        "sample_id": "conv-30",
        "conversation": {
            "session_2_date_time": "9:30 pm on 4 March, 2024",
            "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a red kite"}],
            "session_1_date_time": "8:05 am on 4 March, 2024",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "Morning."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Hi,\nAnn."},
            ],
            "session_3_date_time": "7:00 pm on 9 March, 2024",
        },
        "qa": [
            {"question": "Who greets Ann?", "evidence": ["D1:2"], "category": 4},
            {"question": "What was seen?", "evidence": ["D:1:02; D2:1", "D2:1", "D9:9"], "category": 1},
            {"question": "A trap?", "evidence": ["D1:1"], "category": 5},
            {"question": "Nowhere?", "evidence": ["D"], "category": 2},
            {"question": "None?", "evidence": [], "category": 3},
        ],
    }
    (corpus,) = sets.parse_locomo(json.dumps([sample]))
    assert corpus.files == {
        "memory/2024-03-04.md": "# 8:05 am on 4 March, 2024\n\nAnn: Morning.\nBob: Hi, Ann.\n",
        "memory/2024-03-04-2.md": "# 9:30 pm on 4 March, 2024\n\nAnn: Look! [shares a red kite]\n",
    }
    bob, kite = Evidence("memory/2024-03-04.md", 4, 4), Evidence("memory/2024-03-04-2.md", 3, 3)
    assert corpus.questions == (
        Question("conv-30/1", "single-hop", "Who greets Ann?", (bob,), "tune"),
        Question("conv-30/2", "multi-hop", "What was seen?", (bob, kite), "tune"),
    )


def test_questions_with_a_wrong_answer_are_left_out_and_wrong_citations_corrected() -> None:
    sample = {
        "sample_id": "conv-1",
        "conversation": {
            "session_1_date_time": "8:05 am on 4 March, 2024",
            "session_1": [
                {"speaker": "Ann", "dia_id": "D1:1", "text": "Morning."},
                {"speaker": "Bob", "dia_id": "D1:2", "text": "Hi."},
            ],
        },
        "qa": [{"question": name, "evidence": ["D1:1"], "category": 4} for name in ("right?", "wrong?", "elsewhere?")],
    }
    errors = [
        {"question_id": "locomo_0_qa1", "error_type": "HALLUCINATION", "correct_evidence": ["D1:1"]},
        {"question_id": "locomo_0_qa2", "error_type": "WRONG_CITATION", "correct_evidence": ["D1:2"]},
    ]
    (corpus,) = sets.parse_locomo(json.dumps([sample]), json.dumps(errors))
    assert [(one.id, one.text, one.evidence[0].first) for one in corpus.questions] == [
        ("conv-1/1", "right?", 3),
        ("conv-1/3", "elsewhere?", 4),
    ]


def test_documents_become_cards_and_all_of_a_card_is_evidence() -> None:
    documents = {"7": Document("A\n title", "One.\nTwo.\n"), "8": Document("Other", "Three.")}
    corpus = sets.make_cards("some", "kind", documents, [Asked("q", "Which?", ("7",), "report")])
    assert corpus.files == {
        "memory/cards/7.md": "# A title\n\nOne.\nTwo.\n",
        "memory/cards/8.md": "# Other\n\nThree.\n",
    }
    assert corpus.questions == (Question("q", "kind", "Which?", (Evidence("memory/cards/7.md", 1, 4),), "report"),)


def test_a_large_set_keeps_what_answers_and_the_same_others_every_time() -> None:
    ids = [str(number) for number in range(100)]
    kept = sets.sample_documents(ids, {"3", "98"}, most=10)
    assert len(kept) == 10
    assert {"3", "98"} <= set(kept)
    assert kept == sorted(kept, key=int)
    assert set(kept) == set(sets.sample_documents(reversed(ids), {"3", "98"}, most=10))
    assert sets.sample_documents(ids, set(ids), most=10) == ids


def test_sentences_of_a_printed_array() -> None:
    assert sets.parse_sentences("['It\\'s one.'\n \"It's two.\" 'a\\nb']") == ["It's one.", "It's two.", "a b"]


def test_a_course_is_a_workspace_and_a_document_is_wholly_in_one_part() -> None:
    documents = [
        {"id": "a1", "course": "x", "question": "How?", "text": "So."},
        {"id": "a1", "course": "x", "question": "How?", "text": "So, too."},
        {"id": "b2", "course": "y", "question": "Why?", "text": "Thus."},
    ]
    questions = 'question,course,document\nHow so?,x,a1\n"How, then?",x,a1\nWhy so?,y,b2\n'
    x, y = sets.parse_faq(json.dumps(documents), questions)
    assert (x.name, list(x.files), y.name, list(y.files)) == (
        "faq/x",
        ["memory/cards/a1.md"],
        "faq/y",
        ["memory/cards/b2.md"],
    )
    assert [question.text for question in x.questions] == ["How so?", "How, then?"]
    assert {question.part for question in x.questions} == {part_of("a1")}


def test_our_own_set_is_read_and_what_points_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"^memory: no questions\.jsonl in "):
        sets.memory_set(tmp_path)
    (tmp_path / "workspace/.learnings").mkdir(parents=True)
    (tmp_path / "workspace/.learnings/a.md").write_text("one\ntwo\n")
    good = {"id": "1", "kind": "fact", "text": "?", "evidence": [{"path": ".learnings/a.md", "first": 2, "last": 2}]}
    (tmp_path / "questions.jsonl").write_text(json.dumps({**good, "part": "tune"}) + "\n")
    (corpus,) = sets.memory_set(tmp_path)
    assert corpus.files == {".learnings/a.md": "one\ntwo\n"}
    assert corpus.questions == (Question("1", "fact", "?", (Evidence(".learnings/a.md", 2, 2),), "tune"),)
    wrong = {**good, "part": "test", "evidence": [{"path": ".learnings/a.md", "first": 2, "last": 3}]}
    with pytest.raises(ValueError, match="line") as caught:
        sets.parse_questions("\n".join(map(json.dumps, [wrong, {**wrong, "evidence": []}])), corpus.files)
    assert str(caught.value).splitlines() == [
        "line 1: part 'test' is neither of ('tune', 'report')",
        "line 1: no lines 2-3 in .learnings/a.md",
        "line 2: id 1 is there twice",
        "line 2: part 'test' is neither of ('tune', 'report')",
        "line 2: no evidence",
    ]
