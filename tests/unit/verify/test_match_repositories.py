"""Cards that name no repository: which one they are about, found on real repositories, or honestly not found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.helpers import Place, a_card, run_cli
from tests.support.histories import History, git
from tests.support.memories import remember
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.match_repositories import Match, is_distinctive
from truekeep.verify.repository import World

BILLING, LEDGER = "github.com/bob/billing", "github.com/bob/bookkeeper"
INVOICES = (
    "def render_invoice(order):\n    return order\n\n\ndef dunning_letter(order):\n    return DUNNING_GRACE_DAYS\n"
)
COMMON = {
    "README.md": "# A project\n",
    "package.json": '{"name": "web"}\n',
    "src/main.py": "def main():\n    return 0\n",
    "src/utils/logger.py": "def get_logger(name):\n    return name\n",
    ".github/workflows/ci.yml": "on: push\n",
}
ABOUT_BILLING = "`render_invoice()` is in `src/invoices.py`, and `src/dunning/letters.py` writes to those who owe."


@pytest.fixture
def two(place: Place) -> Place:
    """A workspace and two repositories, one of which has what everybody has."""
    (place.repo / ".git" / "HEAD").unlink()
    (place.repo / ".git").rmdir()
    billing = History()
    billing.commit("2026-01-05", {**COMMON, "src/invoices.py": INVOICES, "src/dunning/letters.py": "GRACE = 3\n"})
    billing.commit("2026-01-06", {"src/reminders.py": "def remind_debtor(name):\n    return name * 2 + 'please'\n"})
    billing.commit("2026-03-05", {"src/reminders.py": None}, renames={"src/invoices.py": "src/bills/invoices.py"})
    billing.write(place.base / "repos" / "billing", remote=f"git@github.com:{BILLING.partition('/')[2]}.git")
    books = History()
    books.commit("2026-01-05", {"src/postings.py": "def reverse_posting(entry):\n    return entry\n"})
    books.commit("2026-01-06", {"src/periods/closing.py": "def close_fiscal_year(year):\n    return year\n"})
    books.write(place.base / "repos" / "books", remote=f"https://{LEDGER}.git")
    return place


def note(place: Place, body: str, name: str = "note.md", **keys: str) -> Path:
    keys = {"created": "2026-02-01", "updated": "2026-02-01", **keys}
    return remember(place, f"memory/cards/{name}", a_card(name.removesuffix(".md"), body, **keys))


def find(place: Place, *files: str) -> list[Match]:
    with place.open() as workspace:
        return workspace.repositories.match(files)[0]


def told(place: Place) -> tuple[str, str]:
    (match,) = find(place)
    return match.outcome, match.repository


class TestFinding:
    def test_what_only_one_repository_knows_is_its_own(self, two: Place) -> None:
        note(two, ABOUT_BILLING)
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("matched", BILLING)
        (candidate,) = match.candidates
        assert {(proof.claim.name, proof.verdict.verdict) for proof in candidate.proofs} == {
            ("render_invoice", "moved"),
            ("src/invoices.py", "moved"),
            ("src/dunning/letters.py", "confirmed"),
        }
        assert "in no other checkout here" in match.why

    @pytest.mark.slow
    def test_what_is_gone_from_it_was_its_own(self, two: Place) -> None:
        note(two, "`remind_debtor()` in `src/reminders.py` is called by `src/dunning/letters.py`.")
        assert told(two) == ("matched", BILLING)

    def test_a_commit_speaks_for_two(self, two: Place) -> None:
        commit = git(two.base / "repos" / "billing", "rev-parse", "HEAD")
        note(two, f"Letters moved in commit {commit[:10]}, see `src/dunning/letters.py`.")
        assert told(two) == ("matched", BILLING)

    def test_one_or_two_claims_are_too_thin(self, two: Place) -> None:
        note(two, "`render_invoice()` is in `src/bills/invoices.py`.")
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("thin", "")
        assert [candidate.repository for candidate in match.candidates] == [BILLING]
        assert "3 are needed" in match.why

    def test_variables_and_flags_alone_are_too_thin(self, two: Place) -> None:
        code = "A, B, C = 'OVERDUE_GRACE', 'DUNNING_RATE', 'ESCROW_HOLDER'\n"
        (two.base / "repos" / "billing" / "src" / "limits.py").write_text(code)
        git(two.base / "repos" / "billing", "add", "-A")
        git(two.base / "repos" / "billing", "commit", "-q", "-m", "limits")
        note(two, "Set `OVERDUE_GRACE`, `DUNNING_RATE` and `ESCROW_HOLDER`.")
        assert told(two) == ("thin", "")

    @pytest.mark.slow
    def test_a_card_about_two_is_about_neither(self, two: Place) -> None:
        note(two, f"{ABOUT_BILLING} Then `reverse_posting()` in `src/postings.py` books it.")
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("ambiguous", "")
        assert [candidate.repository for candidate in match.candidates] == [BILLING, LEDGER]

    def test_a_fork_has_it_all_as_well(self, two: Place) -> None:
        git(two.base / "repos", "clone", "-q", str(two.base / "repos" / "billing"), str(two.base / "repos" / "fork"))
        git(two.base / "repos" / "fork", "remote", "set-url", "origin", "https://github.com/eve/billing")
        note(two, ABOUT_BILLING)
        assert told(two) == ("thin", "")

    @pytest.mark.slow
    def test_worktrees_and_clones_of_one_repository_are_one(self, two: Place) -> None:
        git(two.base / "repos" / "billing", "worktree", "add", "-q", str(two.base / "repos" / "side"))
        note(two, ABOUT_BILLING)
        assert told(two) == ("matched", BILLING)

    def test_a_worktree_of_a_clone_without_a_remote_is_that_clone(self, two: Place) -> None:
        git(two.base / "repos" / "billing", "remote", "remove", "origin")
        git(two.base / "repos" / "billing", "worktree", "add", "-q", str(two.base / "repos" / "side"))
        note(two, ABOUT_BILLING)
        assert told(two) == ("matched", "billing")

    @pytest.mark.slow
    def test_folders_of_one_name_cannot_be_told_apart_by_it(self, two: Place) -> None:
        git(two.base / "repos" / "billing", "remote", "remove", "origin")
        other = History()
        other.commit("2026-01-05", {"src/else.py": "ELSE = 1\n"})
        other.write(two.base / "more" / "billing", remote="")
        two.configure(f'[verify]\ncheckouts = ["{two.base}/more/*"]\n')
        note(two, ABOUT_BILLING)
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("ambiguous", "")
        assert "no name that tells it from another" in match.why

    @pytest.mark.slow
    def test_a_checkout_that_cannot_be_read_is_told(self, two: Place) -> None:
        (two.base / "repos" / "broken" / ".git").mkdir(parents=True)
        note(two, ABOUT_BILLING)
        done = run_cli("repos", "match", "-w", str(two.workspace))
        assert f"{two.base}/repos/broken was not asked: " in done.stderr
        assert "1 card without a repository: 1 matched" in done.stdout


class TestHostile:
    def test_what_everybody_has_matches_nobody(self, two: Place) -> None:
        note(
            two,
            "`README.md`, `package.json`, `src/main.py`, `src/utils/logger.py` and `.github/workflows/ci.yml` are as"
            " usual; `get_logger()` and `main()` too, with `--verbose` and `NODE_ENV`.",
        )
        (match,) = find(two)
        assert (match.outcome, match.candidates) == ("thin", ())

    @pytest.mark.slow
    def test_another_project_that_shares_a_little_is_not_taken_for_this_one(self, two: Place) -> None:
        strange = "`src/orchard/trees.py`, `src/orchard/apples.py`, `prune_branches()` and `graft_scion()`"
        note(two, f"{ABOUT_BILLING} But {strange} are what it is about.")
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("thin", "")
        assert "are not there" in match.why

    def test_a_name_that_a_repository_only_uses_may_be_a_librarys(self, two: Place) -> None:
        code = "from sqlalchemy import declarative_base, hybrid_property, joined_eager\n"
        code += "declarative_base()\nhybrid_property()\njoined_eager()\n"
        (two.base / "repos" / "billing" / "src" / "tables.py").write_text(code)
        git(two.base / "repos" / "billing", "add", "-A")
        git(two.base / "repos" / "billing", "commit", "-q", "-m", "tables")
        note(two, "Use `declarative_base()`, `hybrid_property()` and `joined_eager()`.")
        assert told(two) == ("thin", "")

    def test_a_text_cannot_choose_what_is_not_configured(self, two: Place) -> None:
        elsewhere = History()
        elsewhere.commit("2026-01-05", {"src/vineyard.py": "def press_grapes():\n    return 1\n"})
        elsewhere.write(two.base / "elsewhere", remote="https://github.com/eve/vineyard")
        note(
            two, f"See github.com/eve/vineyard, {two.base}/elsewhere/src/vineyard.py and ../elsewhere/src/vineyard.py."
        )
        (match,) = find(two)
        assert (match.outcome, match.candidates) == ("thin", ())

    @pytest.mark.parametrize(
        "text", ["src/utils/helpers.ts", "./package.json", "/etc/nginx/sites/shop.conf", "../billing/src/invoices.py"]
    )
    def test_paths_that_tell_nothing(self, text: str) -> None:
        claims = extract_claims(f"See `{text}`.\n").claims
        assert claims
        assert not any(is_distinctive(claim) for claim in claims)


class TestNames:
    @pytest.mark.parametrize(
        "text",
        [
            "How it is done in github.com/bob/billing.",
            "See https://github.com/bob/billing/blob/main/README.md for it.",
            "Clone git@github.com:bob/billing.git first.",
            "This is about bob/billing: be careful.",
            "This is about `bob/billing#12`.",
        ],
    )
    def test_a_full_name_is_enough(self, two: Place, text: str) -> None:
        note(two, text)
        (match,) = find(two)
        assert (match.outcome, match.repository) == ("matched", BILLING)
        assert match.why == f"its text names {BILLING}"

    def test_a_tag_is_a_part_of_the_text(self, two: Place) -> None:
        remember(two, "memory/cards/a.md", "---\ntopic: A\ntags: [bob/billing]\n---\n\nBe careful.\n")
        assert told(two) == ("matched", BILLING)

    @pytest.mark.parametrize(
        "text",
        [
            "This is about billing.",
            "See github.com/bob/billing-portal.",
            "See github.com/bob/billing.example.org.",
            "See evil.example/github.com/bob/billing.",
            "See notgithub.com/bob/billing.",
            "See gitlab.com/bob/billing.",
            "See `vendor/bob/billing/tax.py`.",
        ],
    )
    def test_half_a_name_is_none(self, two: Place, text: str) -> None:
        note(two, text)
        assert told(two)[0] == "thin"

    def test_two_names_are_one_too_many(self, two: Place) -> None:
        note(two, f"Unlike {LEDGER}, {BILLING} has no periods.")
        assert told(two) == ("ambiguous", "")

    def test_a_name_beside_one_that_is_not_here_needs_a_claim(self, two: Place) -> None:
        note(two, f"Unlike {BILLING}, github.com/eve/vineyard uses yarn.")
        assert told(two) == ("ambiguous", "")
        note(two, f"In {BILLING}, `src/dunning/letters.py` works round https://github.com/eve/vineyard/issues/3.")
        assert told(two) == ("matched", BILLING)

    def test_a_name_does_not_outweigh_what_another_one_knows(self, two: Place) -> None:
        note(two, f"Unlike in {LEDGER}: {ABOUT_BILLING}")
        assert told(two) == ("ambiguous", "")

    @pytest.mark.slow
    def test_a_name_does_not_outweigh_that_it_knows_nothing(self, two: Place) -> None:
        note(two, f"Other than {BILLING}: `src/orchard/trees.py` and `graft_scion()`.")
        assert told(two) == ("ambiguous", "")

    def test_claims_of_a_namesake_that_is_not_here(self, two: Place) -> None:
        note(two, f"In github.com/eve/billing: {ABOUT_BILLING}")
        assert told(two) == ("ambiguous", "")


class TestFixing:
    def fix(self, place: Place, *more: str) -> Any:
        done = run_cli("repos", "match", "--fix", "--json", *more, "-w", str(place.workspace))
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    @pytest.mark.slow
    @pytest.mark.parametrize("newline", ["\n", "\r\n"])
    def test_one_line_is_written_and_undone(self, two: Place, newline: str) -> None:
        old = f"\ufeff---\ntopic: A\nupdated: 2026-02-01\nown: [x]\n---\n{ABOUT_BILLING}".replace(
            "\n", newline
        ).encode()
        card = remember(two, "memory/cards/a.md", old)
        other = note(two, "Nothing of note.", "b.md").read_bytes()
        data = self.fix(two)
        (done,) = [item for item in data["cards"] if item["entry"]]
        line = f"repository: {BILLING}{newline}".encode()
        behind = f"updated: 2026-02-01{newline}".encode()
        assert card.read_bytes() == old.replace(behind, behind + line)
        assert (two.workspace / "memory/cards/b.md").read_bytes() == other
        with two.open() as workspace:
            assert [item.repository for item in workspace.verification.verify(["a.md"], system=False)] == [BILLING]
            entry, _ = next(workspace.history.entries(limit=1))
            assert (entry.verb, entry.id) == ("assigned", done["entry"])
            workspace.history.undo(entry.id)
        assert card.read_bytes() == old

    @pytest.mark.slow
    def test_an_empty_key_is_filled(self, two: Place) -> None:
        card = note(two, ABOUT_BILLING, repository="")
        self.fix(two)
        assert card.read_text().count("repository:") == 1
        assert f"\nrepository: {BILLING}\n" in card.read_text()

    @pytest.mark.slow
    def test_each_card_has_its_own_entry_and_a_second_run_nothing_to_do(self, two: Place) -> None:
        note(two, ABOUT_BILLING, "a.md")
        note(two, f"All of {LEDGER}.", "b.md")
        data = self.fix(two)
        assert len({item["entry"] for item in data["cards"]}) == 2
        assert self.fix(two)["cards"] == []
        assert "every card names its repository" in run_cli("repos", "match", "-w", str(two.workspace)).stdout

    @pytest.mark.slow
    def test_a_dry_run_writes_nothing(self, two: Place) -> None:
        card = note(two, ABOUT_BILLING)
        old = card.read_bytes()
        done = run_cli("repos", "match", "--fix", "--dry-run", "-w", str(two.workspace))
        assert f"would write repository: {BILLING}" in done.stdout
        assert card.read_bytes() == old
        assert run_cli("repos", "match", "--dry-run", "-w", str(two.workspace)).returncode == 2

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("text", "why"),
        [
            (ABOUT_BILLING + "\n", "it has no frontmatter"),
            (f"---\ntopic: A\ntopic: B\n---\n{ABOUT_BILLING}\n", "its frontmatter cannot be read (line 3"),
            (f"---\nrepository:\n  name: x\n---\n{ABOUT_BILLING}\n", "something nested as repository"),
            (f"---\nRepository: mine\n---\n{ABOUT_BILLING}\n", "in another way"),
        ],
    )
    def test_what_cannot_take_the_line_is_told_and_left_alone(self, two: Place, text: str, why: str) -> None:
        card = remember(two, "memory/cards/a.md", text)
        (item,) = self.fix(two)["cards"]
        assert (item["outcome"], item["entry"]) == ("matched", None)
        assert why in item["problem"]
        assert card.read_text() == text

    def test_the_edit_of_a_person_wins(self, two: Place) -> None:
        card = note(two, ABOUT_BILLING)
        with two.open() as workspace:
            found, _ = workspace.repositories.match()
            card.write_text(card.read_text() + "By hand.\n")
            (done,) = workspace.repositories.assign(found)
        assert done.entry is None
        assert "edited meanwhile" in done.message
        assert "repository" not in card.read_text()


class TestCommand:
    @pytest.mark.slow
    def test_repos_alone_is_as_it_was(self, two: Place) -> None:
        done = run_cli("repos", "-w", str(two.workspace))
        assert BILLING in done.stdout
        assert json.loads(run_cli("repos", "--json", "-w", str(two.workspace)).stdout)["schema"] == "truekeep.repos/1"

    @pytest.mark.slow
    def test_named_cards_only(self, two: Place) -> None:
        note(two, ABOUT_BILLING, "a.md")
        note(two, ABOUT_BILLING, "b.md")
        note(two, ABOUT_BILLING, "c.md", repository=LEDGER)
        remember(two, "TOOLS.md", ABOUT_BILLING)
        done = run_cli("repos", "match", "a", "c.md", "TOOLS.md", "-w", str(two.workspace))
        assert "matched   memory/cards/a.md" in done.stdout
        assert "b.md" not in done.stdout
        assert f"memory/cards/c.md: it says already that it is about {LEDGER}" in done.stderr
        assert "TOOLS.md: not a card" in done.stderr

    @pytest.mark.slow
    def test_candidates_are_named_and_the_next_step_too(self, two: Place) -> None:
        note(two, f"{ABOUT_BILLING} Then `reverse_posting()` in `src/postings.py` books it.", "a.md")
        note(two, ABOUT_BILLING, "b.md")
        said = run_cli("repos", "match", "-w", str(two.workspace)).stdout
        assert f"{BILLING}: 3 claims" in said
        assert f"{LEDGER}: 2 claims" in said
        assert "2 cards without a repository: 1 matched, 1 ambiguous" in said
        assert "next: run `truekeep repos match --fix`" in said

    def test_a_repository_is_read_once_for_all_cards(self, two: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        read: list[str] = []
        look = World.__init__

        def count(self: World, root: str, *given: Any, **more: Any) -> None:
            read.append(root)
            look(self, root, *given, **more)

        monkeypatch.setattr(World, "__init__", count)
        for number in range(5):
            note(two, ABOUT_BILLING, f"{number}.md")
        assert {match.outcome for match in find(two)} == {"matched"}
        assert sorted(Path(root).name for root in read) == ["billing", "books"]
        note(two, ABOUT_BILLING, "named.md", repository=BILLING)
        read.clear()
        with two.open() as workspace:
            assert workspace.repositories.match(["named.md"])[0] == []
        assert read == []
