"""Checks claims about symbols, flags and environment variables: defined, moved to another file, or gone.

A symbol that occurs only in comments, documents or tests does not count as defined. A symbol that never existed here
may belong to another project, so `gone` requires an old commit that had it.
"""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from truekeep.core.state_dir import STATE
from truekeep.verify.checkout import FileTree, StoredDefinition
from truekeep.verify.claim import Claim
from truekeep.verify.claims.inline_code import SEARCHED
from truekeep.verify.claims.patterns import bare_path
from truekeep.verify.file_kinds import FileKind, kind_of, language_for
from truekeep.verify.git_history import Commit
from truekeep.verify.languages import is_config
from truekeep.verify.own_settings import is_of_product
from truekeep.verify.path_claims import PathPlace, find_place, is_on_disk
from truekeep.verify.question import Question
from truekeep.verify.repository import World, is_code, prefer
from truekeep.verify.subject import IN_HEADING, IN_SECTION, NOT_NAMED, is_one_word, nearest, project_folder
from truekeep.verify.verdict import (
    CODE,
    GONE,
    GONE_BEFORE,
    NO_LONGER_USED,
    ONLY_IN_TESTS,
    PACKAGE_LEFT,
    REMOVED,
    REMOVED_VALUE,
    UNVERIFIABLE,
    Verdict,
    confirmed,
    gone,
    moved,
    unverifiable,
)

_MAX_FILES_PER_NAME = 8
_CONTAINER_KINDS = frozenset(
    ("class", "struct", "interface", "trait", "enum", "type", "object", "module", "namespace", "protocol", "extension",
     "union", "record", "impl", "mixin", "service", "message", "actor")
)  # fmt: skip
LIBRARY_NAMES = frozenset(
    "std core alloc Math JSON Object Array Promise Number String Date Reflect Symbol Map Set window document console "
    "process fs path os sys json asyncio subprocess re logging typing unittest pytest pathlib datetime collections "
    "itertools functools np pd plt sns tf cv2 torch requests axios java javax kotlin System Console".split()
)
GENERIC_VARIABLES = frozenset(
    "API_KEY API_TOKEN API_SECRET API_URL API_BASE API_HOST API_BASE_URL BASE_URL BASE_DIR ACCESS_TOKEN AUTH_TOKEN "
    "BOT_TOKEN CHAT_ID CLIENT_ID CLIENT_SECRET DATABASE_URL DATA_DIR DB_HOST DB_NAME DB_PASSWORD DB_PATH DB_PORT "
    "DB_URL DB_USER HOME_DIR LOG_DIR LOG_FILE LOG_LEVEL MAX_RETRIES MAX_TOKENS NODE_ENV OUTPUT_DIR PAGE_ID PRIVATE_KEY "
    "PUBLIC_KEY REDIS_URL ROOT_DIR SCRIPT_DIR SECRET_KEY SERVER_URL SESSION_ID USER_ID USER_NAME WEBHOOK_URL "
    "WORK_DIR".split()
)  # names that so many programs have that one of them says little
_OF_HARNESSES = ("OPENCLAW_", "CLAWDBOT_", "CLAUDE_CODE_", "CODEX_")  # how the agents' own programs name variables
_MAX_OLD_TREES = 12  # searched in one run
_MIN_WORDS_OF_LONG_NAME = 3
_CONFIG_KINDS = frozenset(("key",))
_HEADER_WORDS = frozenset(
    "class struct interface trait enum object record public private protected internal abstract final sealed static "
    "export default extends implements with pub type data open case metaclass typedef union".split()
)
_TYPE_KINDS = frozenset(
    ("class", "type", "struct", "trait", "interface", "enum", "module", "namespace", "object", "record")
)


_DATA_LANGUAGES = frozenset(("json", "html", "css"))  # whose keys and words are data, not names of code
_UNKNOWN_NAMES = ("only-mentioned", "never-seen", "owner-unknown", "of-others")
_SURELY_CODE = ("a call", "called a function", "a declaration", "an import", SEARCHED)
_VALUE_KINDS = frozenset(("variable", "key", "field", "property", "value"))


def _is_of_folder(question: Question, path: str) -> bool:
    """Whether a file is in the folder of a document, or the text around the claim names it."""
    is_below = bool(question.folder) and path.startswith(f"{question.folder}/")
    return is_below or question.subject.nearness(path) <= IN_HEADING


def _is_long_name(name: str) -> bool:
    """Whether a name has so many words that hardly two programs have it."""
    return len(re.findall(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+", name)) >= _MIN_WORDS_OF_LONG_NAME


def is_source(path: str) -> bool:
    """Whether a file is code, and neither configuration nor data."""
    language = language_for(path)
    return is_code(path) and not is_config(language) and language not in _DATA_LANGUAGES


class Spot(NamedTuple):
    """A definition and its file."""

    path: str
    outline: StoredDefinition
    tree: FileTree

    @property
    def digest(self) -> str:
        return self.tree.digest(self.path, self.outline)

    @property
    def cite(self) -> str:
        return f"{self.path}:{self.outline.line}"


class OldDefinitions(NamedTuple):
    """The definitions and uses of a name at an old commit."""

    commit: Commit
    spots: tuple[Spot, ...]  # definitions
    users: tuple[str, ...]  # files whose code contains the name


Wanted = tuple[str, int | None]  # a name, and when the memory was written


class Symbols:
    """The symbol claims of one run against one repository: looked up together, checked one by one."""

    def __init__(self, world: World, questions: Sequence[Question]) -> None:
        self.world = world
        self.questions = questions
        self._files = world.now.defining(self.find_names(question.claim for question in questions))
        self._users: dict[str, list[str]] = {}
        self._old_definitions: dict[Wanted, OldDefinitions] = {}
        self._outline_all()

    @staticmethod
    def find_names(claims: Iterable[Claim]) -> set[str]:
        """Return the names whose definitions are needed. A flag is looked up as a word first."""
        names = set()
        for claim in claims:
            if claim.kind != "flag":
                names.add(claim.name)
            if claim.owner and claim.kind == "method":
                names.add(claim.owner.rpartition(".")[2])
        return names

    def _outline_all(self) -> None:
        wanted: set[str] = set()
        for question in self.questions:
            wanted.update(self._likely_files(question))
        self._outlines = dict(self.world.now.outlines(wanted))

    def _likely_files(self, question: Question) -> list[str]:
        """Return the few files to read for one claim."""
        claim = question.claim
        files = self._files.get(claim.name, [])
        chosen = prefer(files)[:_MAX_FILES_PER_NAME]
        if (place := self._place(question)) is not None and place.path:
            chosen.append(place.path)
        if claim.kind == "method":
            owners = set(self._files.get(claim.owner.rpartition(".")[2], ()))
            chosen += prefer(owners & set(files))[:_MAX_FILES_PER_NAME]
            chosen += self._module_files(claim.owner)
        return chosen

    def _place(self, question: Question) -> PathPlace | None:
        """Find the file that a memory names for a symbol; None if it does not name exactly one."""
        claim = question.claim
        place = find_place(self.world, claim.place, question) if claim.place else None
        if place is not None and place.path and not self.world.now.has(place.path):
            return None  # a name that several files have, or a folder
        return place

    def _in_file_then(self, question: Question, then: OldDefinitions | None) -> list[Spot]:
        """Find old definitions in the named file: at the commit of the memory, or else at the checkpoints."""
        claim = question.claim
        if question.written_at is not None and then is not None and then.commit.id == self._commit_of(question):
            return [spot for spot in then.spots if spot.path == claim.place]
        past = self.world.past
        last = past.last_version(claim.place) if not self.world.now.has(claim.place) else None
        trees = [last] if last is not None else (past.file(commit, claim.place) for commit in past.checkpoints())
        for tree in trees:
            found = [Spot(claim.place, item, tree) for item in tree.named(claim.place, claim.name)]
            if found:
                return found
        return []

    def _commit_of(self, question: Question) -> str:
        commit = self.world.past.commit_at(question.written_at or 0)
        return commit.id if commit is not None else ""

    def outline(self, path: str) -> tuple[StoredDefinition, ...]:
        if path not in self._outlines:
            self._outlines[path] = self.world.outline(path)
        return self._outlines[path]

    def spots(self, name: str, paths: Iterable[str]) -> list[Spot]:
        now = self.world.now
        return [Spot(path, item, now) for path in paths for item in self.outline(path) if item.name == name]

    # Now.

    def check_now(self, question: Question) -> Verdict | None:
        """Return the verdict from the current files alone; None if history is needed."""
        claim = question.claim
        if claim.place:
            return self._in_named_file(question)
        if claim.kind == "symbol" and self.world.now.has(claim.name) and not self.world.is_home:
            return confirmed(question, "exists", "a file of that name is there", claim.name)
        if claim.kind == "method" and claim.owner:
            return self._method(question)
        spots = [spot for spot in self.spots(claim.name, self._likely_files(question)) if _can_define(claim, spot)]
        spots.sort(key=lambda spot: spot.outline.kind in _CONFIG_KINDS)
        if self.world.is_home:
            return self._defined_by_subject(question, spots)
        if spots:
            return self._defined(question, spots[0], len(spots))
        return None

    def _defined_by_subject(self, question: Question, spots: list[Spot]) -> Verdict | None:
        """Of the definitions of a workspace's projects, the one that the text is about; None if nothing says so."""
        spots = [spot for spot in spots if self._is_named(question, spot.path, spot.outline.kind)]
        if not spots:
            return None
        nearness = {spot.path: self._nearness(question, spot.path) for spot in spots}
        spots.sort(key=lambda spot: nearness[spot.path])
        best = [spot for spot in spots if nearness[spot.path] == nearness[spots[0].path]]
        if len({project_folder(spot.path) or spot.path for spot in best}) > 1:
            why = f"{len(best)} projects here define it, and nothing says which one is meant"
            return unverifiable(question, "several", why, candidates=tuple(spot.cite for spot in best[:5]))
        if nearness[best[0].path] == NOT_NAMED and not _is_long_name(question.claim.name):
            return None  # another project, of which nothing is here, may have such a name
        return self._defined(question, best[0], len(best))

    def _nearness(self, question: Question, path: str) -> int:
        return nearest(question.subject, question.folder, [path], question.claim.name)[0][0]

    def _is_named(self, question: Question, path: str, kind: str) -> bool:
        """Whether the text says enough that a name may be the one of this file: plain words and values need more."""
        claim = question.claim
        if is_one_word(claim.name):
            return claim.why in _SURELY_CODE and self._nearness(question, path) <= IN_HEADING
        return kind not in _VALUE_KINDS or self._nearness(question, path) < NOT_NAMED

    def _defined(self, question: Question, spot: Spot, count: int = 1, reason: str = "defined") -> Verdict:
        return confirmed(
            question, reason, f"defined in {spot.cite}" + (f" and {count - 1} more" if count > 1 else ""), spot.cite,
            is_dirty=self.world.now.is_dirty(spot.path),
        )  # fmt: skip

    def _in_named_file(self, question: Question) -> Verdict | None:
        """Check `name` in `file` against the current file; None if the file does not define it."""
        claim = question.claim
        place = self._place(question)
        if place is None or not place.path:
            return None
        spots = self.spots(claim.name, [place.path])
        if claim.owner:
            spots = [spot for spot in spots if _is_in_owner(spot.outline, claim.owner)] or spots
        if spots:
            if place.is_moved:
                return self._moved_with_file(question, spots[0], place)
            return self._defined(question, spots[0])
        return None

    def _moved_to(self, question: Question, spot: Spot, why: str = "") -> Verdict:
        dirty = self.world.now.is_dirty(spot.path)
        return moved(question, "defined-elsewhere", why or f"now defined in {spot.cite}", spot.cite, is_dirty=dirty)

    def _moved_with_file(self, question: Question, spot: Spot, place: PathPlace) -> Verdict:
        commit = place.trail.commit if place.trail else None
        why = f"its file is now {place.path}; defined at line {spot.outline.line}"
        return moved(
            question, "file-renamed", why, spot.cite, commit=commit.id if commit else "",
            day=commit.day if commit else "",
        )  # fmt: skip

    def _method(self, question: Question) -> Verdict | None:
        """Check `Owner.name`: defined in the body of that class or in that module."""
        claim = question.claim
        owner = claim.owner.rpartition(".")[2]
        files = set(self._files.get(claim.name, ()))
        both = prefer(files & set(self._files.get(owner, ())))[: _MAX_FILES_PER_NAME * 2]
        spots = [spot for spot in self.spots(claim.name, both) if _is_in_owner(spot.outline, claim.owner)]
        spots = [spot for spot in spots if is_source(spot.path)] or [
            spot for spot in spots if language_for(spot.path) not in _DATA_LANGUAGES
        ]
        if self.world.is_home and claim.why == "an import" and not self._module_files(claim.owner):
            return None  # of a library
        if self.world.is_home:  # where `agents.list` is as likely a setting of another program
            spots = [spot for spot in spots if spot.outline.kind not in _VALUE_KINDS]
        if not spots:
            # In Go, Rust and C++ methods may be outside their type; their scope names the owner.
            apart = self.spots(claim.name, prefer(files)[: _MAX_FILES_PER_NAME * 2])
            spots = [spot for spot in apart if _is_in_owner(spot.outline, claim.owner) and is_source(spot.path)]
        if spots:
            return self._defined(question, spots[0], len(spots))
        modules = self._module_files(claim.owner)
        spots = [spot for spot in self.spots(claim.name, modules) if not spot.outline.scope]
        if spots:
            return self._defined(question, spots[0])
        return None

    def _module_files(self, owner: str) -> list[str]:
        """Return the files that a dotted module name may refer to."""
        stem = owner.replace(".", "/").replace("::", "/")
        found = []
        now = self.world.now
        for base in (stem, f"src/{stem}", f"lib/{stem}"):
            found += [path for ending in _MODULE_ENDINGS if now.has(path := base + ending)]
        if not found and "/" in stem:
            last = stem.rpartition("/")[2]
            for ending in _MODULE_ENDINGS:
                name = (last + ending).rpartition("/")[2]
                tail = "/" + stem + ending
                found += [path for path in now.by_name.get(name, ()) if path.endswith(tail)][:2]
        return found[:4]

    # Then.

    def find_words(self, questions: Sequence[Question]) -> None:
        """Find the current files that contain these names as words."""
        self._users = self.world.now.find("words", {name for item in questions for name in spellings(item.claim)})
        claims = [item.claim for item in questions if item.claim.kind == "flag" and not self._users[item.claim.name]]
        self.world.now.defining({name for claim in claims for name in spellings(claim)[1:]})

    def prepare_past(self, questions: Sequence[Question]) -> None:
        """Search for missing names in the commits that their memories were written at, one tree at a time."""
        past = self.world.past
        self.world.now.find("mentions", {question.claim.name for question in questions})
        undated: set[Wanted] = set()
        dated: dict[str, set[Wanted]] = defaultdict(set)
        commits: dict[str, Commit] = {}
        for question in questions:
            commit = past.commit_at(question.written_at) if question.written_at is not None else None
            owner = question.claim.owner.rpartition(".")[2] if question.claim.kind == "method" else ""
            owners = [owner] if owner and not any(map(is_code, self._files.get(owner, ()))) else []
            for name in (*_old_spellings(question.claim), *owners):
                if commit is None or commit.id == past.state.head:
                    undated.add((name, question.written_at))
                elif past.cached_definitions(name, commit.id) is None:
                    commits[commit.id] = commit
                    dated[commit.id].add((name, question.written_at))
                elif not self._load_cached(name, question.written_at, commit.id):
                    undated.add((name, question.written_at))
        left = {name for name, _ in undated if past.cached_definitions(name, "") is None}
        past.set_names(left.union(*({name for name, _ in wanted} for wanted in dated.values())))
        most_wanted = sorted(dated, key=lambda oid: -len(dated[oid]))
        for number, oid in enumerate(most_wanted):
            undated |= self._search_tree(commits[oid], dated[oid], oid) if number < _MAX_OLD_TREES else dated[oid]
        self._search_checkpoints({wanted for wanted in undated if not self._load_cached(*wanted, "")})
        if self.world.options.are_documents:
            self._search_when_written(questions)
        for oid in most_wanted[_MAX_OLD_TREES:]:  # so that the next run gives the same result without a search
            for name, at in dated[oid]:
                past.remember_old_definitions(name, oid, _pack_old_definitions(self._old_definitions.get((name, at))))
        if self.world.options.deleting:
            lost = [(name, _places(then)[0], then.commit.at) for (name, _), then in self._old_definitions.items()]
            past.expect_removals(lost)

    def _search_checkpoints(self, wanted: set[Wanted]) -> None:
        """Search older and older trees for names without a date. Names found nowhere are cached as absent."""
        past = self.world.past
        until = {name: past.absent_until(name) for name, _ in wanted}
        for commit in past.checkpoints() if wanted else ():
            due = {item for item in wanted if commit.at > until[item[0]]}
            wanted -= due - self._search_tree(commit, due, "")
        past.remember_absent({name for name, _ in wanted if not self._files.get(name) and not self._users.get(name)})

    def _search_when_written(self, questions: Sequence[Question]) -> None:
        """Search the trees at which lines for contributors were written, for names between two checkpoints."""
        past, wanted = self.world.past, defaultdict[Commit, set[Wanted]](set)
        for question in questions:
            claim = question.claim
            key = (claim.name, question.written_at)
            if claim.is_weak or key in self._old_definitions:
                continue
            at = self.world.line_dates.written_at(question)
            commit = past.commit_at(at) if at is not None else None
            if commit is not None and not self._load_cached(*key, commit.id):
                wanted[commit].add(key)
        past.set_names({name for some in wanted.values() for name, _ in some})
        for commit in sorted(wanted, key=lambda commit: -len(wanted[commit]))[:_MAX_OLD_TREES]:
            new = {key for key in wanted[commit] if past.cached_definitions(key[0], commit.id) is None}
            self._search_tree(commit, new, commit.id)

    def _search_tree(self, commit: Commit, wanted: set[Wanted], base: str) -> set[Wanted]:
        """Search one old tree; return the names it does not have."""
        names = {name for name, _ in wanted}
        tree = self.world.past.tree(commit.id, names, self.world.now) if wanted else None
        if tree is None:
            return wanted
        defining = tree.defining(names)
        users = tree.find("words", {name for name in names if not defining[name]})
        left = set()
        for name, at in wanted:
            spots = tuple(
                Spot(path, item, tree.alone(path))
                for path in prefer(defining[name])[:_MAX_FILES_PER_NAME]
                for item in tree.named(path, name)
            )
            used = tuple(path for path in prefer(users.get(name, ())) if is_code(path))[:_MAX_FILES_PER_NAME]
            if spots or used:
                self._old_definitions[name, at] = then = OldDefinitions(commit, spots, used)
                self.world.past.remember_old_definitions(name, base, _pack_old_definitions(then))
            else:
                left.add((name, at))
                if base:
                    self.world.past.remember_old_definitions(name, base, "")
        return left

    def _load_cached(self, name: str, at: int | None, base: str) -> bool:
        """Load what an earlier run found for a name; return whether it found something."""
        known = self.world.past.cached_definitions(name, base)
        if not known:
            return False
        (oid, seconds), spots, used = json.loads(known)
        commit = Commit(oid, seconds)
        file = self.world.past.file
        found = tuple(Spot(path, StoredDefinition(*item), file(commit, path)) for path, item in spots)
        self._old_definitions[name, at] = OldDefinitions(commit, found, tuple(used))
        return True

    def is_word(self, claim: Claim) -> bool:
        """Whether any occurrence of the word in code confirms the claim."""
        return claim.kind == "flag" or (claim.kind == "env" and not (claim.place and self._files.get(claim.name)))

    def check_past(self, question: Question) -> Verdict | None:
        """Check a name that no current file defines; None for a weak claim that never existed here.

        A workspace names fields, tools and settings of many programs: only a call, or what the text puts into a file,
        is surely about code.
        """
        verdict, claim = self._check_past(question), question.claim
        if verdict is not None and verdict.verdict == GONE and (unlisted := self._unlisted_place(question)):
            return unverifiable(question, "unreadable", f"git does not list {unlisted}, so it was not read")
        is_surely_code = bool(claim.place) or claim.why == "a call" or not self.world.is_home
        is_unknown = verdict is not None and verdict.reason in _UNKNOWN_NAMES and verdict.verdict == UNVERIFIABLE
        if verdict is not None and verdict.reason == "used" and claim.kind == "method" and self.world.is_home:
            is_unknown = self._nearness(question, verdict.place.rpartition(":")[0]) > IN_SECTION
        return None if is_unknown and not is_surely_code else verdict

    def _unlisted_place(self, question: Question) -> str:
        """The file that is said to have a name, if it is here and git ignores it, such as `.env`."""
        place = find_place(self.world, question.claim.place, question) if question.claim.place else None
        if place is None or not place.path or self.world.now.has(place.path):
            return ""
        return place.path if is_on_disk(self.world, place.path) else ""

    def _check_past(self, question: Question) -> Verdict | None:
        claim = question.claim
        is_plain = self.world.is_home and claim.kind == "symbol" and not claim.place
        if is_plain and (is_one_word(claim.name) or self._files.get(claim.name)):
            return self._check_used_at_home(question, self._source_users(claim.name))
        then = self._old_definitions.get((claim.name, question.written_at))
        if self.is_word(claim):
            return self._check_missing_word(question)
        if claim.place:
            return self._check_left_file(question, then)
        if claim.kind == "method" and claim.owner:
            return self._check_missing_method(question, then)
        return self._check_missing(question, then)

    def _check_left_file(self, question: Question, then: OldDefinitions | None) -> Verdict | None:
        """Check `name` in `file` where the file no longer defines it or is gone."""
        claim = question.claim
        place = self._place(question)
        elsewhere = [spot for spot in self.spots(claim.name, self._likely_files(question)) if is_code(spot.path)]
        if claim.owner:
            elsewhere = [spot for spot in elsewhere if _is_in_owner(spot.outline, claim.owner)]
        before = self._in_file_then(question, then)
        line = self.world.find_word(place.path, claim.name) if not before and place is not None and place.path else 0
        if line and place is not None:
            cite = f"{place.path}:{line}"
            if claim.is_definite and len(elsewhere) == 1 and question.written_at is None:
                only = elsewhere[0]
                return self._moved_to(question, only)
            if place.is_moved:
                return moved(question, "file-renamed", f"its file is now {place.path}", cite)
            return confirmed(question, "used", f"named in {cite}, not defined there", cite)
        if not elsewhere:
            return self._check_missing(question, then)
        if not before:
            # The file never defined it, so check the name alone.
            fitting = [spot for spot in elsewhere if not self.world.is_home or _can_define(claim, spot)]
            return self._defined(question, fitting[0], len(fitting)) if fitting else self._check_missing(question, then)
        successor = _find_successor(before, elsewhere)
        if successor is not None:
            return self._moved_to(question, successor)
        cites = tuple(spot.cite for spot in elsewhere[:5])
        what = f"no longer in {claim.place}; {len(elsewhere)} other places define the name"
        return gone(question, "several", what, candidates=cites, rank=CODE)

    def _check_missing_method(self, question: Question, then: OldDefinitions | None) -> Verdict | None:
        """Check `Owner.name` where no such owner defines the name in its body."""
        claim = question.claim
        owner = claim.owner.rpartition(".")[2]
        now = [spot for spot in self.spots(claim.name, self._likely_files(question)) if is_code(spot.path)]
        now = [spot for spot in now if spot.outline.kind not in _CONFIG_KINDS and is_source(spot.path)]
        owned_then = [spot for spot in then.spots if _is_in_owner(spot.outline, claim.owner)] if then else []
        owned_then = [spot for spot in owned_then if is_source(spot.path)]
        owners = prefer(self._files.get(owner, ()))
        in_code = [path for path in owners if is_source(path)]
        modules = self._module_files(claim.owner)
        top = claim.owner.partition(".")[0]
        if top in LIBRARY_NAMES and not modules and not any(map(is_code, self._files.get(top, ()))):
            # Part of the language or of a common library.
            return None if claim.is_weak else unverifiable(question, "of-others", f"{top} is not made here")
        if now and in_code and not modules and not self._is_type(owner, in_code):
            # A variable, whose type is unknown.
            if cite := self._used_together(claim, [*in_code, *(spot.path for spot in now)]):
                return confirmed(question, "used", f"used in {cite}; defined in {now[0].cite}", now[0].cite)
            return self._without_owner(question, owner, now)
        if owned_then:
            successor = _find_successor(owned_then, now)
            if successor is not None and (not in_code or successor.outline.kind == owned_then[0].outline.kind):
                why = f"now {successor.outline.qualified} in {successor.cite}"
                if successor.outline.scope.rpartition(".")[2] != owner:
                    return self._gone_since(
                        question, then, f"{claim.owner} has no {claim.name} any more", (successor.cite,)
                    )
                return self._moved_to(question, successor, why)
            cites = tuple(spot.cite for spot in now[:5])
            return self._gone_since(question, then, f"{claim.owner} has no {claim.name} any more", cites)
        for path in modules:
            if line := self.world.find_word(path, claim.name):
                return confirmed(question, "used", f"named in {path}:{line}, not defined there", f"{path}:{line}")
        if now and in_code and (before := self._in_body_before(question, in_code, owner)) is not None:
            return self._gone_since(question, before, f"{owner} has no {claim.name} any more", ())
        if now and in_code and not modules and (why := self._cannot_inherit(in_code, owner, now)):
            return unverifiable(question, "not-in-body", why, candidates=(now[0].cite,))
        if now and (in_code or modules):
            why = f"both names are defined; {claim.name} at {now[0].cite}, not in the body of {owner}"
            return confirmed(question, "inherited", why, now[0].cite)
        if now:
            return self._without_owner(question, owner, now)
        if claim.is_weak and not in_code and not modules:
            return None
        return self._check_missing(question, then)

    def _is_type(self, name: str, files: Sequence[str]) -> bool:
        """Whether one of these files defines a class, type or module with this name."""
        return any(
            item.name == name and item.kind in _CONTAINER_KINDS for path in files[:4] for item in self.outline(path)
        )

    def _in_body_before(self, question: Question, owners: Sequence[str], owner: str) -> OldDefinitions | None:
        """Find the old class body that had this name, if the class has no bases to inherit it from."""
        past = self.world.past
        commit = past.commit_at(question.written_at) if question.written_at is not None else None
        dated = commit is not None and commit.id != past.state.head
        for path in owners[:2]:
            if not any(item.name == owner and not self._has_bases(path, item) for item in self.outline(path)):
                continue
            for then in [commit] if dated and commit is not None else past.checkpoints():
                tree = past.file(then, path)
                found = tree.named(path, question.claim.name)
                owned = tuple(Spot(path, item, tree) for item in found if _is_in_owner(item, owner))
                if owned:
                    return OldDefinitions(then, owned, ())
        return None

    def _cannot_inherit(self, owners: Sequence[str], owner: str, now: Sequence[Spot]) -> str:
        """Explain why a class cannot inherit a name that other code defines; empty if one of its bases has it."""
        scopes = {spot.outline.scope.rpartition(".")[2] for spot in now}
        asked, seen, unknown = [owner], set[str](), set[str]()
        files = {owner: list(owners)}
        while asked and len(seen) < 20:
            name = asked.pop()
            seen.add(name)
            if name not in files:
                files[name] = [path for path in prefer(self.world.now.defining([name])[name]) if is_code(path)]
            found = [(path, item) for path in files[name][:3] for item in self.outline(path) if item.name == name]
            if any(item.kind not in _TYPE_KINDS for _, item in found) and name == owner:
                return ""
            bases = {base for path, item in found for base in self._bases(path, item)}
            if bases & scopes:
                return ""
            unknown |= {name} if not found else set()
            asked += sorted(bases - seen)
        if unknown:
            return f"not in the body of {owner}; it may come from {sorted(unknown)[0]}, which is not here"
        return f"neither {owner} nor what it inherits from has it; {now[0].cite} defines the name elsewhere"

    def _bases(self, path: str, item: StoredDefinition) -> set[str]:
        """Return the names in a class header except its own."""
        head = re.split(rb"[{:]\s*\n|\{", self.world.now.code(path)[item.start : item.start + 600], maxsplit=1)[0]
        names = {name.decode() for name in re.findall(rb"[A-Za-z_]\w*", head)}
        return names - _HEADER_WORDS - {item.name}

    def _has_bases(self, path: str, item: StoredDefinition) -> bool:
        """Whether a class has bases or mixins that may define more names."""
        head = re.split(rb"[{:]\s*\n|\{", self.world.now.code(path)[item.start : item.start + 600], maxsplit=1)[0]
        bare = re.sub(rb"\(\s*(?:object\s*)?\)", b"", head)
        return re.search(rb"\(|\bextends\b|\bimplements\b|:|<\s*[A-Z]\w*\s*$|\bwith\b", bare) is not None

    def _without_owner(self, question: Question, owner: str, now: Sequence[Spot]) -> Verdict | None:
        """Check `owner.name` where only the name is defined: owner is a variable, another project's, or gone."""
        then = self._old_definitions.get((owner, question.written_at))
        if then is not None and any(is_code(spot.path) and spot.outline.kind in _TYPE_KINDS for spot in then.spots):
            return self._gone_since(question, then, f"{owner} is gone", tuple(spot.cite for spot in now[:3]))
        if question.claim.is_weak:
            return None
        why = f"nothing here is called {owner}; {question.claim.name} alone is defined in {now[0].cite}"
        return unverifiable(question, "owner-unknown", why, candidates=(now[0].cite,))

    def _check_missing(self, question: Question, then: OldDefinitions | None) -> Verdict | None:
        """Check a name that no code defines now."""
        claim = question.claim
        likely = [path for path in prefer(self._users.get(claim.name, ()))[:_MAX_FILES_PER_NAME] if is_code(path)]
        if claim.kind == "method" and claim.owner:
            in_code = self._used_together(claim, likely)
        else:
            places = ((path, self.world.find_word(path, claim.name)) for path in likely)
            in_code = next((f"{path}:{line}" for path, line in places if line), "")
        is_tied = bool(claim.place) and not (self.world.is_home and language_for(claim.place) in _DATA_LANGUAGES)
        defined_then = [spot for spot in then.spots if is_tied or is_source(spot.path)] if then else []
        defined_then = [spot for spot in defined_then if is_code(spot.path)]
        if claim.kind == "method" and claim.owner and self.world.options.are_documents:
            defined_then = [spot for spot in defined_then if _is_of_owner(spot, claim.owner)]
            if not defined_then and not in_code and then is not None and self._was_used_together(claim, then):
                return self._gone_since(question, then, "", ())
        users_then = [path for path in then.users if is_tied or is_source(path)] if then else []
        if claim.kind == "method" and claim.owner:
            users_then = []  # they used the name, and nothing tells of which owner
        tests = self.spots(claim.name, prefer(self._files.get(claim.name, ()))[:_MAX_FILES_PER_NAME])
        tests = [spot for spot in tests if is_tied or language_for(spot.path) not in _DATA_LANGUAGES]
        if claim.kind == "method" and claim.owner:
            tests = [spot for spot in tests if _is_in_owner(spot.outline, claim.owner)]
        is_used_here = in_code and (self.world.options.are_documents or not _has_function_or_type(defined_then))
        if defined_then and not is_used_here:
            return self._gone_since(question, then._replace(spots=tuple(defined_then)) if then else None, "", ())
        used_in = in_code.rpartition(":")[0]
        is_used = (is_tied and not self.world.is_home) or (not claim.is_weak and is_source(used_in))
        if is_tied and self.world.is_home and claim.kind == "symbol" and is_one_word(claim.name):
            is_used = False  # the text puts it into another file
        if self.world.is_home and not is_tied and claim.kind != "method":
            verdict = self._defined_by_subject(question, [spot for spot in tests if is_source(spot.path)])
            return verdict or self._check_used_at_home(question, self._source_users(claim.name))
        if in_code and is_used:
            return confirmed(question, "used", f"used in {in_code}; nothing here defines it", in_code)
        if tests and not users_then and (is_tied or not claim.is_weak or _has_function_or_type(tests)):
            return self._defined(question, tests[0], len(tests), "defined-in-tests")
        if then is not None and not in_code and not tests and ((users_then and not claim.is_weak) or defined_then):
            return self._gone_since(question, then, "", ())
        if claim.is_weak:
            return None
        if in_code:
            return unverifiable(question, "only-mentioned", f"only data has this word ({in_code})")
        return self._never_defined(question)

    def _source_users(self, name: str) -> list[str]:
        return [path for path in prefer(self._users.get(name, ()))[:_MAX_FILES_PER_NAME] if is_source(path)]

    def _check_used_at_home(self, question: Question, users: Sequence[str]) -> Verdict | None:
        """Check a name that no code of the workspace defines; None if nothing ties it to this code."""
        claim = question.claim
        for rank, path in nearest(question.subject, question.folder, users, claim.name):
            if claim.is_weak or rank > IN_HEADING or not _is_long_name(claim.name):
                break  # a word of the text or a name of a library, as likely as a name of this code
            if line := self.world.find_word(path, claim.name):
                cite = f"{path}:{line}"
                return confirmed(question, "used", f"used in {cite}; nothing here defines it", cite)
        if claim.is_weak or claim.why != "a call" or is_one_word(claim.name):
            return None  # a field, a tool, a table: of whatever program the text is about
        if users:
            why = f"used in {users[0]}, and nothing here defines it: it may be another project's"
            return unverifiable(question, "of-others", why, place=users[0])
        return self._never_defined(question)

    def _was_used_together(self, claim: Claim, then: OldDefinitions) -> bool:
        """Whether old code used a name with its owner, a type of this repository: a variant, a field, a constant."""
        owner = claim.owner.replace("::", ".").rpartition(".")[2]
        own = [path for path in prefer(self._files.get(owner, ())) if is_source(path)]
        if not owner[:1].isupper() or not self._is_type(owner, own):
            return False
        pattern = _with_owner(claim)
        file = self.world.past.file
        return any(pattern.search(file(then.commit, path).code(path)) for path in _places(then)[:_MAX_FILES_PER_NAME])

    def _used_together(self, claim: Claim, paths: Iterable[str]) -> str:
        """The first place in source code where a name is used with its owner: `owner.name`, `owner::name`."""
        pattern = _with_owner(claim)
        for path in dict.fromkeys(paths):
            if is_source(path) and (match := pattern.search(code := self.world.now.code(path))) is not None:
                line = code.count(b"\n", 0, match.start()) + 1
                return f"{path}:{line}"
        return ""

    def _gone_since(
        self, question: Question, then: OldDefinitions | None, what: str, candidates: tuple[str, ...]
    ) -> Verdict:
        """Return `gone` with the last place, the commit that removed it, and where it is still mentioned."""
        assert then is not None
        if not self.world.is_complete:
            return unverifiable(question, "incomplete", "not found, but this clone does not have everything")
        claim = question.claim
        spot = next((spot for spot in then.spots if is_code(spot.path)), then.spots[0] if then.spots else None)
        where = spot.path if spot else then.users[0]
        if unread := next((path for path in _places(then) if self._is_unread(path)), ""):
            return unverifiable(question, "unreadable", f"{unread} had it, and cannot be read as text now")
        commit = None
        if self.world.options.deleting:
            commit = self.world.past.find_removing_commit(claim.name, where, then.commit.at)
        said = f"{what}; " if what else ""
        had = f"was in {where} at {then.commit.id[:10]}"
        out = f", taken out in {commit.id[:10]} on {commit.day}" if commit else ""
        mention = "" if what else self._describe_mention(claim.name)
        reason = "only-mentioned" if mention else REMOVED
        if self.world.options.are_documents:
            reason = self._why_gone_from_documents(question, then, where, is_dated=commit is not None)
        return gone(
            question, reason, f"{said}{had}{out}{mention}", place=where,
            commit=commit.id if commit else "", day=commit.day if commit else "", candidates=candidates,
        )  # fmt: skip

    def _why_gone_from_documents(self, question: Question, then: OldDefinitions, where: str, *, is_dated: bool) -> str:
        """The reason that tells how surely a document meant what is gone."""
        world = self.world
        if any(kind_of(path) is FileKind.TEST for path in self._users.get(question.claim.name, ())):
            return ONLY_IN_TESTS
        if not is_dated and not world.line_dates.was_named_at(question, then.commit, world.past.name_then):
            return GONE_BEFORE
        top = where.partition("/")[0]
        if top != where and not world.now.has_folder(top):
            return PACKAGE_LEFT  # it may have become a project of its own, whose users read this
        return _what_was_removed(question.claim, then)

    def _is_unread(self, path: str) -> bool:
        """Whether a file exists but was not read."""
        now = self.world.now
        return bool(now.behind(path) or (not now.has(path) and now.became_submodule(path))) or (
            now.has(path) and not now.blob_of(path) and kind_of(path) is not FileKind.OPAQUE
        )

    def _describe_mention(self, name: str) -> str:
        """Describe where a word that no code has is still mentioned."""
        named = [*self.world.now.find("mentions", [name])[name]]
        named += [path for path in self._users.get(name, ()) if not is_code(path)]
        for path in [path for path in prefer(named) if not path.startswith(f"{STATE}/")][:3]:
            if line := self.world.find_mention(path, name):
                what = {FileKind.CODE: "comments", FileKind.TEST: "tests", FileKind.DOCUMENT: "documents"}.get(
                    kind_of(path), "other files"
                )
                return f"; now only named in {what} ({path}:{line})"
        return ""

    def _never_defined(self, question: Question) -> Verdict:
        if where := self._expected_file(question):
            why = f"{where} does not have it, and no code here does; since when is not known in this clone"
            return gone(question, "not-there", why, place=where, rank=CODE)
        mention = self._describe_mention(question.claim.name)
        if mention:
            return unverifiable(question, "only-mentioned", "no code here defines or uses it" + mention)
        return unverifiable(question, "never-seen", "no code here has this name, now or at the commits looked into")

    def _expected_file(self, question: Question) -> str:
        """In a clone without history, return the file that should have the name; empty if that is unknown."""
        claim, world = question.claim, self.world
        if claim.is_weak or not world.is_complete or not world.knows_absence(question.written_at):
            return ""
        if self._users.get(claim.name) and any(map(is_code, self._users[claim.name])):
            return ""
        place = self._place(question)
        if place is not None and place.path and is_code(place.path) and not self._is_unread(place.path):
            return place.path
        if claim.kind != "method":
            return ""
        owner = claim.owner.rpartition(".")[2]
        for path in prefer(self._files.get(owner, ()))[:_MAX_FILES_PER_NAME] if owner not in LIBRARY_NAMES else ():
            for item in self.outline(path) if is_code(path) else ():
                if item.name == owner and item.kind in _TYPE_KINDS and not self._has_bases(path, item):
                    return path
        return next((path for path in self._module_files(claim.owner) if is_code(path)), "")

    def check_word(self, question: Question) -> Verdict | None:
        """Check a flag, environment variable or constant by its exact word in code other than tests."""
        claim = question.claim
        place = self._place(question)
        if place is not None and place.is_moved and (line := self.world.find_word(place.path, claim.name)):
            return moved(question, "file-renamed", f"its file is now {place.path}", f"{place.path}:{line}")
        script = self._script_of_flag(question)
        if self.world.is_home and claim.kind == "flag" and not script and not self._is_own_flag(question):
            return None
        found = self._find_word(question)
        if found and script and found.rpartition(":")[0] != script:
            line = next((line for name in spellings(claim) if (line := self.world.find_word(script, name))), 0)
            if not line:
                why = f"{script} does not have it; {found} does"
                return unverifiable(question, "not-in-body", why, candidates=(found,))
            found = f"{script}:{line}"
        if found:
            return confirmed(question, "in-code", f"in {found}", found, rank=CODE)
        for name in spellings(claim)[1:]:
            # Some argument parsers derive the flag from a field or parameter name, without dashes.
            for spot in self.spots(name, prefer(self.world.now.defining([name])[name])[:_MAX_FILES_PER_NAME]):
                if is_code(spot.path) and not is_config(language_for(spot.path)):
                    return confirmed(question, "in-code", f"by its name in {spot.cite}", spot.cite, rank=CODE)
        return None

    def _is_own_flag(self, question: Question) -> bool:
        """Whether the text puts a flag into a file: the workspace's own scripts are few among all programs."""
        return bool(question.claim.place)

    def _script_of_flag(self, question: Question) -> str:
        """The file here whose flag this is said to be; empty if the command is no file of this repository."""
        claim = question.claim
        if claim.kind != "flag" or not claim.owner or "." not in claim.owner.rpartition("/")[2]:
            return ""
        name = self.world.own_path(claim.owner) or claim.owner
        place = find_place(self.world, bare_path(name), question)
        return place.path if place is not None and self.world.now.has(place.path) and is_code(place.path) else ""

    def _check_missing_word(self, question: Question) -> Verdict | None:
        claim = question.claim
        if self.world.is_home and claim.kind == "flag" and not self._script_of_flag(question) and not claim.place:
            return None
        is_still_here = ""
        for name in _old_spellings(claim):
            old = self._old_definitions.get((name, question.written_at))
            code = [path for path in _places(old) if is_code(path)] if old is not None else []
            if old is None or not any(claim.place or is_source(path) or _is_env_file(path) for path in code):
                continue
            if where := self._word_in_code(name):
                is_still_here = is_still_here or where
            elif claim.kind == "env" and name.startswith(_OF_HARNESSES) and not is_of_product(self.world, name):
                return unverifiable(question, "of-harness", f"a variable of the agent's own program; {code[0]} had it")
            else:
                return self._gone_since(question, old, "", ())
        if is_still_here:
            why = f"in {is_still_here}, and nothing says that this one is meant"
            return unverifiable(question, "several", why, candidates=(is_still_here,))
        if claim.is_weak:
            return None
        return self._never_defined(question)

    def _word_in_code(self, name: str) -> str:
        """The first place where code of now has a word, whatever the text is about: such a name is not gone."""
        for path in prefer(self._users.get(name, ())):
            if is_code(path) and (line := self.world.find_word(path, name)):
                return f"{path}:{line}"
        return ""

    def _find_word(self, question: Question) -> str:
        """Find the exact word in code: a flag with its dashes, or without them if it has a dash inside."""
        claim = question.claim
        exact = [name for name in spellings(claim) if name.startswith("--") or "-" in name or name == claim.name]
        for name in exact:
            paths = prefer(self._users.get(name, ()))
            if self.world.is_home and claim.kind == "env":
                paths = [path for path in paths if is_code(path)]
                ranked = nearest(question.subject, question.folder, paths)
                if claim.name in GENERIC_VARIABLES:  # only of what the text names, or of the document's own folder
                    paths = [path for path in paths if _is_of_folder(question, path)]
                else:
                    paths = [
                        path for rank, path in ranked if rank <= IN_HEADING or language_for(path) not in _DATA_LANGUAGES
                    ]
            for path in paths[:_MAX_FILES_PER_NAME]:
                if is_code(path) and (line := self.world.find_word(path, name)):
                    return f"{path}:{line}"
        return ""


def _with_owner(claim: Claim) -> re.Pattern[bytes]:
    owner = re.escape(claim.owner.rpartition(".")[2].encode())
    return re.compile(
        rb"(?<![\w$])" + owner + rb"\s?(?:\.|::|->|#|\?\.)\s?" + re.escape(claim.name.encode()) + rb"(?![\w$])"
    )


def _can_define(claim: Claim, spot: Spot) -> bool:
    """Whether a definition can be what a claim without a file means. A plain word is no variable, and no key of data.

    Data is full of words: that a file of preferences has one of them says nothing about the code.
    """
    if not is_code(spot.path) or language_for(spot.path) in _DATA_LANGUAGES:
        return False
    return not claim.is_weak or spot.outline.kind not in _VALUE_KINDS


def _is_env_file(path: str) -> bool:
    return language_for(path) == "env"


def _pack_old_definitions(then: OldDefinitions | None) -> str:
    """Serialize what was found for a name, for the cache."""
    return json.dumps([then.commit, [(spot.path, spot.outline) for spot in then.spots], then.users]) if then else ""


def _places(then: OldDefinitions) -> list[str]:
    return [*(spot.path for spot in then.spots), *then.users]


_MODULE_ENDINGS = (
    ".py", "/__init__.py", ".rs", "/mod.rs", ".ts", ".js", ".tsx", "/index.ts", "/index.js", ".go", ".rb", ".java",
    ".kt",
    ".php", ".ex", ".lua",
)  # fmt: skip


def spellings(claim: Claim) -> list[str]:
    """Return the ways code may spell a flag: with dashes, without them, or as a field name."""
    if claim.kind != "flag":
        return [claim.name]
    bare = claim.name.lstrip("-").removeprefix("no-") if claim.name.startswith("--no-") else claim.name.lstrip("-")
    head, *rest = bare.split("-")
    found = [claim.name, f"--{bare}", bare]
    if rest:
        found += ["_".join((head, *rest)), head + "".join(part.capitalize() for part in rest)]
    return list(dict.fromkeys(found))


def _old_spellings(claim: Claim) -> list[str]:
    """Return the spellings to search old code for; a one-word flag only with its dashes."""
    found = spellings(claim)
    is_bare = claim.kind == "flag" and "-" not in claim.name.lstrip("-")
    return found[:1] if is_bare else found


def _is_in_owner(item: StoredDefinition, owner: str) -> bool:
    """Whether a definition is in the body of this owner; for `a.B`, in the body of B."""
    scope = item.scope.split(".")
    parts = owner.replace("::", ".").split(".")
    return bool(item.scope) and parts[-1] in scope


def _is_of_owner(spot: Spot, owner: str) -> bool:
    """Whether a definition is in the body of this owner, or in the module of that name."""
    last = owner.replace("::", ".").rpartition(".")[2]
    folder, _, file = spot.path.rpartition("/")
    stem = file.partition(".")[0]
    return _is_in_owner(spot.outline, owner) or last in (stem, folder.rpartition("/")[2])


def _what_was_removed(claim: Claim, then: OldDefinitions) -> str:
    if not then.spots:
        return REMOVED_VALUE if claim.kind == "method" else NO_LONGER_USED
    return REMOVED if _has_function_or_type(then.spots) else REMOVED_VALUE


def _find_successor(old: Sequence[Spot], now: Sequence[Spot]) -> Spot | None:
    """Find the current definition that continues an old one: the same body, or the only one of its kind and scope."""
    if not now:
        return None
    digests = {spot.digest for spot in old}
    same = [spot for spot in now if spot.digest in digests]
    if len(same) == 1:
        return same[0]
    scopes = {spot.outline.scope.rpartition(".")[2] for spot in old}
    alike = [spot for spot in now if spot.outline.scope.rpartition(".")[2] in scopes] if scopes else list(now)
    kinds = {spot.outline.kind for spot in old}
    exact = [spot for spot in alike if spot.outline.kind in kinds] or alike
    return exact[0] if exact and len({spot.path for spot in exact}) == 1 else None


def _has_function_or_type(spots: Sequence[Spot]) -> bool:
    """Whether one of the definitions is a function or a type, whose removal outweighs remaining uses."""
    return any(
        spot.outline.kind in ("function", "method", "class", "type", "macro", "interface", "struct", "trait")
        for spot in spots
    )
