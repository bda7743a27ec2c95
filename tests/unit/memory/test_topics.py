"""A topic is one card's within its repository, and no further."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.helpers import CLAUDE, Place, a_card, a_handoff, git_repo, run_cli
from truekeep.handoffs.format import default_card_name


def other_repo(place: Place, name: str, owner: str = "acme") -> Path:
    repo = git_repo(place.base / "repos" / name, remote=f"https://git.example/{owner}/{name}.git")
    (repo / CLAUDE).mkdir(parents=True, exist_ok=True)
    return repo


def release(place: Place, repo: Path, card: str, body: str, hour: int, topic: str = "Release") -> str:
    name = f"2026-11-14-{hour:02}00-release.md"
    place.leave(a_handoff(title=topic, card=card, content=a_card(topic=topic, body=body)), name, inbox=repo / CLAUDE)
    return name


def lines(place: Place) -> list[str]:
    return [line for line in place.index().split("\n") if line.startswith("- [")]


@pytest.mark.slow
@pytest.mark.parametrize("is_one_run", [True, False])
def test_two_repositories_have_a_card_each_for_one_topic(place: Place, is_one_run: bool) -> None:
    llm, flask = other_repo(place, "llm"), other_repo(place, "flask")
    release(place, llm, "llm-release.md", "Uploads happen by hand.", 9)
    if not is_one_run:
        place.ingest()
    release(place, flask, "flask-release.md", "Tags are signed.", 10)
    place.ingest()
    assert place.cards() == ["flask-release.md", "llm-release.md"]
    assert lines(place) == [
        "- [Release (llm)](memory/cards/llm-release.md)",
        "- [Release (flask)](memory/cards/flask-release.md)",
    ]
    for command in (["reconcile"], ["tidy", "duplicates"], ["status"]):
        done = run_cli(*command, "--workspace", str(place.workspace), cwd=place.base)
        assert "Release (" not in done.stdout, (command, done.stdout)
        assert "twice" not in done.stdout.replace("no topic twice", ""), (command, done.stdout)


def test_repositories_of_one_name_are_told_apart_in_the_index(place: Place) -> None:
    release(place, other_repo(place, "app", owner="a"), "one.md", "Uploads happen by hand.", 9)
    place.ingest()
    fork = git_repo(place.base / "repos" / "app-fork", remote="https://git.example/b/app.git")
    release(place, fork, "two.md", "Tags are signed.", 10)
    place.ingest()
    assert lines(place) == [
        "- [Release (git.example/a/app)](memory/cards/one.md)",
        "- [Release (git.example/b/app)](memory/cards/two.md)",
    ]


def test_within_one_repository_a_topic_is_one_cards(place: Place) -> None:
    llm = other_repo(place, "llm")
    release(place, llm, "llm-release.md", "Uploads happen by hand.", 9)
    second = release(place, llm, "again.md", "Tags are signed.", 10)
    place.ingest()
    assert place.outcomes()[second] == "review"
    assert "same-topic" in place.codes(second)


def test_cards_of_no_repository_are_a_scope_of_their_own(place: Place) -> None:
    folder = place.workspace / "memory" / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "release.md").write_text(a_card(topic="Release", body="In general, on Mondays."))
    (place.workspace / "MEMORY.md").write_text("# Memory\n\n## Cards\n\n- [Release](memory/cards/release.md)\n")
    release(place, other_repo(place, "flask"), "flask-release.md", "Tags are signed.", 10)
    place.ingest()
    assert lines(place) == [
        "- [Release](memory/cards/release.md)",
        "- [Release (flask)](memory/cards/flask-release.md)",
    ]


def test_a_line_that_a_person_wrote_or_took_out_stays_so(place: Place) -> None:
    release(place, other_repo(place, "llm"), "llm-release.md", "Uploads happen by hand.", 9)
    place.ingest()
    (place.workspace / "MEMORY.md").write_text("# Memory\n\n## Cards\n\n- See the drawer.\n")
    release(place, other_repo(place, "flask"), "flask-release.md", "Tags are signed.", 10)
    place.ingest()
    assert "llm-release.md" not in place.index()


def test_a_new_topic_takes_the_line_along(place: Place) -> None:
    llm, flask = other_repo(place, "llm"), other_repo(place, "flask")
    release(place, llm, "llm-release.md", "Uploads happen by hand.", 9)
    release(place, flask, "flask-release.md", "Tags are signed.", 10)
    place.ingest()
    text = a_card(topic="Releases", body="Tags are signed.\n\nBy two people.")
    handoff = a_handoff(action="update-card", card="flask-release.md", content=text)
    place.leave(handoff, "2026-11-15-1000-more.md", inbox=flask / CLAUDE)
    assert place.ingest().count("promoted") == 1
    assert lines(place)[1] == "- [Releases](memory/cards/flask-release.md)"


def rename(place: Place, repo: Path, card: str, topic: str, hour: int) -> None:
    handoff = a_handoff(action="update-card", card=card, content=a_card(topic=topic, body="Tags are signed.\n\nTwice."))
    place.leave(handoff, f"2026-11-15-{hour:02}00-more.md", inbox=repo / CLAUDE)
    assert place.ingest().count("promoted") == 1


def test_a_shared_topic_with_a_dash_takes_its_line_along(place: Place) -> None:
    llm, flask = other_repo(place, "llm"), other_repo(place, "flask")
    release(place, llm, "llm-release.md", "Uploads happen by hand.", 9, topic="Release — how")
    release(place, flask, "flask-release.md", "Tags are signed.", 10, topic="Release — how")
    place.ingest()
    rename(place, flask, "flask-release.md", "Signing", 10)
    assert lines(place)[1] == "- [Signing](memory/cards/flask-release.md)"


def test_a_full_repository_name_goes_with_the_old_topic(place: Place) -> None:
    app = other_repo(place, "app", owner="a")
    fork = git_repo(place.base / "repos" / "app-fork", remote="https://git.example/b/app.git")
    release(place, app, "one.md", "Uploads happen by hand.", 9)
    release(place, fork, "two.md", "Tags are signed.", 10)
    release(place, other_repo(place, "llm"), "three.md", "Signatures are checked by two.", 11, topic="Signing")
    place.ingest()
    rename(place, fork, "two.md", "Signing", 10)
    assert lines(place)[1] == "- [Signing (app)](memory/cards/two.md)"


def test_of_three_repositories_two_of_one_name_are_told_apart(place: Place) -> None:
    fork = git_repo(place.base / "repos" / "app-fork", remote="https://git.example/b/app.git")
    for hour, repo in ((9, other_repo(place, "llm")), (10, other_repo(place, "app", owner="a")), (11, fork)):
        release(place, repo, f"at-{hour}.md", f"Number {hour} is released by hand.", hour)
        place.ingest()
    assert lines(place) == [
        "- [Release (llm)](memory/cards/at-9.md)",
        "- [Release (git.example/a/app)](memory/cards/at-10.md)",
        "- [Release (git.example/b/app)](memory/cards/at-11.md)",
    ]


@pytest.mark.parametrize(
    ("topic", "repository", "name"),
    [
        ("Release", "git.example/acme/flask", "flask-release.md"),
        ("Flask: release", "git.example/acme/flask", "flask-release.md"),
        ("Release", "", "release.md"),
        ("Tools", "", "notes-tools.md"),
        ("Tools", "shop", "shop-tools.md"),
        ("???", "shop", "shop-card.md"),
    ],
)
def test_a_new_card_is_called_by_its_repository_and_topic(topic: str, repository: str, name: str) -> None:
    assert default_card_name(topic, repository) == name


SAME_NAME = [(("me", "shop", "Release"), ("other", "shop", "Release")), (("me", "a", "B c"), ("me", "a-b", "C"))]


@pytest.mark.parametrize("is_one_run", [True, False])
@pytest.mark.parametrize(("one", "other"), SAME_NAME)
def test_cards_of_two_repositories_whose_default_names_are_the_same(
    place: Place, one: tuple[str, str, str], other: tuple[str, str, str], is_one_run: bool
) -> None:
    """Left on machines without a workspace, where nobody knows which names are taken."""
    for hour, (owner, name, topic) in enumerate((one, other), 9):
        repository = f"git.example/{owner}/{name}"
        repo = git_repo(place.base / "repos" / f"{owner}-{name}", remote=f"https://{repository}.git")
        release(place, repo, default_card_name(topic, repository), f"By {owner} of {name}.", hour, topic=topic)
        if not is_one_run:
            place.ingest()
    place.ingest()
    first, second = default_card_name(one[2], one[1]), f"{other[0]}-{default_card_name(other[2], other[1])}"
    assert place.cards() == sorted((first, second))
    assert f"By {other[0]} of {other[1]}." in place.card(second)
    update = a_handoff(
        action="update-card", card=first, content=a_card(topic=other[2], body=f"By {other[0]} of {other[1]}. Twice.")
    )
    place.leave(update, "2026-11-15-1000-more.md", inbox=place.base / "repos" / f"{other[0]}-{other[1]}" / CLAUDE)
    assert place.ingest().count("promoted") == 1
    assert "Twice." in place.card(second)
    assert "Twice." not in place.card(first)


class TestHandoffNew:
    @pytest.mark.slow
    def test_another_repositorys_card_is_never_offered_for_an_update(self, place: Place) -> None:
        release(place, other_repo(place, "shop", owner="me"), "shop-release.md", "Uploads happen by hand.", 9)
        place.ingest()
        shop = git_repo(place.base / "repos" / "shop-2", remote="https://git.example/other/shop.git")
        code, told, wrong = self.new(place, shop)
        assert (code, "memory/cards/other-shop-release.md" in told) == (0, True), wrong
        code, _, wrong = self.new(place, shop, "--card", "shop-release.md", "--topic", "Signing")
        assert code == 3
        assert "--update" not in wrong
        assert "git.example/me/shop" in wrong

    def new(self, place: Place, repo: Path, *more: str) -> tuple[int, str, str]:
        given = ("--title", "Release", "--fact", "Tags are signed", "--workspace", str(place.workspace))
        done = run_cli("handoff", "new", *given, *more, cwd=repo)
        return done.returncode, done.stdout, done.stderr

    @pytest.mark.slow
    def test_the_second_repository_is_not_refused(self, place: Place) -> None:
        release(place, other_repo(place, "llm"), "llm-release.md", "Uploads happen by hand.", 9)
        place.ingest()
        code, told, wrong = self.new(place, other_repo(place, "flask"))
        assert code == 0, wrong
        assert "memory/cards/flask-release.md" in told

    @pytest.mark.slow
    def test_the_refusal_names_the_way_out_and_no_line(self, place: Place) -> None:
        llm = other_repo(place, "llm")
        release(place, llm, "llm-how-we-release.md", "Uploads happen by hand.", 9)
        place.ingest()
        code, _, wrong = self.new(place, llm)
        assert code == 3
        assert "line " not in wrong
        assert "same-topic" in wrong
        assert "`--topic TEXT`" in wrong
        assert "`--update --card llm-how-we-release.md`" in wrong
        assert self.new(place, llm, "--topic", "Signing")[0] == 0

    @pytest.mark.slow
    def test_a_chosen_name_stays_and_an_old_card_is_found_for_an_update(self, place: Place) -> None:
        llm = other_repo(place, "llm")
        assert "memory/cards/mine.md" in self.new(place, llm, "--card", "mine.md", "--topic", "Mine")[1]
        release(place, llm, "release.md", "Tags are signed", 9)
        place.ingest()
        code, told, wrong = self.new(place, llm, "--update", "--fact", "By two people")
        assert (code, "memory/cards/release.md" in told) == (0, True), wrong

    @pytest.mark.slow
    def test_titles_in_any_script_have_a_card_each(self, place: Place) -> None:
        llm = other_repo(place, "llm")
        for title, fact in (
            ("发布流程", "标签已签名"),
            ("数据库", "端口是五四三二"),
            ("Релиз v2", "Теги"),
            ("База v2", "Порт"),
        ):
            code, _, wrong = self.new(place, llm, "--title", title, "--fact", fact)
            assert code == 0, wrong
            assert place.ingest().count("promoted") == 1
        assert len(place.cards()) == 4
        assert all(name.startswith("llm-") and name.isascii() for name in place.cards())

    @pytest.mark.slow
    def test_an_update_that_drops_most_says_how_to_keep_it(self, place: Place) -> None:
        llm = other_repo(place, "llm")
        release(place, llm, "llm-release.md", "Uploads happen by hand, from the machine of whoever is on duty.", 9)
        place.ingest()
        code, _, wrong = self.new(place, llm, "--update", "--card", "llm-release.md")
        assert (code, "drops-most" in wrong) == (3, True)
        assert "`truekeep card show llm-release.md`" in wrong
        assert "correct it and try again" not in wrong


def test_a_latin_topic_keeps_its_name() -> None:
    assert default_card_name("Größe der Straße", "acme/llm") == "llm-grsse-der-strasse.md"
    assert default_card_name("发布流程", "acme/llm") != default_card_name("数据库", "acme/llm")


@pytest.mark.slow
def test_card_write_names_the_repository_and_knows_topics_of_its_own(place: Place) -> None:
    release(place, other_repo(place, "llm"), "llm-release.md", "Uploads happen by hand.", 9)
    place.ingest()
    flask = other_repo(place, "flask")
    done = run_cli(
        *("card", "write", "--topic", "Release", "--json", "--workspace", str(place.workspace)),
        cwd=flask,
        stdin="Tags are signed by the maintainers.\n",
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == "memory/cards/flask-release.md"
    assert "- [Release (flask)](memory/cards/flask-release.md)" in place.index()


def two_releases(place: Place) -> None:
    release(place, other_repo(place, "llm"), "llm-release.md", "Uploads happen by hand.", 9)
    place.ingest()
    release(place, other_repo(place, "flask"), "flask-release.md", "Tags are signed.", 10)
    place.ingest()


def test_a_line_that_a_later_handoff_labelled_goes_with_undo(place: Place) -> None:
    two_releases(place)
    with place.open() as workspace:
        _, notes = workspace.history.undo(1)
        assert notes == []
        assert lines(place) == ["- [Release (flask)](memory/cards/flask-release.md)"]
        _, notes = workspace.history.undo(2)
    assert notes == []
    assert lines(place) == []
    assert place.cards() == []


def test_a_label_that_tells_two_cards_apart_makes_nobody_the_author(place: Place) -> None:
    two_releases(place)
    with place.open() as workspace:
        authors = {line.text: line.entry.id for line in workspace.history.blame("MEMORY.md") if line.entry}
    assert [authors[line] for line in lines(place)] == [1, 2]


def test_undo_says_nothing_of_a_line_that_a_person_removed(place: Place) -> None:
    two_releases(place)
    index = place.workspace / "MEMORY.md"
    index.write_text("".join(line for line in index.read_text().splitlines(keepends=True) if "llm-rel" not in line))
    with place.open() as workspace:
        _, notes = workspace.history.undo(1)
    assert notes == []
    assert lines(place) == ["- [Release (flask)](memory/cards/flask-release.md)"]
