"""Checks claims about paths and folders: they exist, were renamed or deleted, are outside, or never existed."""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from truekeep.core.model import PROTECTED
from truekeep.core.repository import GitFailed
from truekeep.core.state_dir import STATE
from truekeep.memory.document_scan import is_backup
from truekeep.verify.claim import Claim
from truekeep.verify.claims.inline_code import ENTERED
from truekeep.verify.claims.patterns import FOLDERS_OF_ANY_PROJECT, OF_ANY_PROJECT, SYSTEM_FOLDERS, WELL_KNOWN, is_file
from truekeep.verify.claims.trees import IN_TREE
from truekeep.verify.file_kinds import is_for_contributors, language_for
from truekeep.verify.git_history import Trail
from truekeep.verify.question import Question
from truekeep.verify.repository import ELSEWHERE, HOME_FOLDER, World, is_code
from truekeep.verify.subject import IN_HEADING, IN_SECTION, NOT_NAMED, Subject, is_one_word, nearest, reduce_words
from truekeep.verify.verdict import (
    CODE,
    FOLDER_LEFT,
    GIT,
    NEVER_SEEN,
    NOT_THERE,
    Verdict,
    confirmed,
    gone,
    moved,
    unverifiable,
)


class PathPlace(NamedTuple):
    """The current place of a path that a memory names."""

    path: str  # empty if it is gone
    is_moved: bool = False
    trail: Trail | None = None


WORKSPACE_FILES = frozenset((*PROTECTED, "USER.md", "TOOLS.md", "DREAMS.md"))  # that OpenClaw reads, at the root
_SHARED_HOME_FOLDERS = (".config", ".cache", ".local", ".local/share", ".local/bin", ".local/state")
MADE_AT_RUN_TIME = re.compile(
    r"(?:^|/)(?:te?mp|logs?|\.?cache|run|out|output|downloads?|state)(?:/|\Z)|\.(?:log|pid|lock|sock|tmp|bak|jsonl|db)\Z",
    re.IGNORECASE,
)
PLACEHOLDER = re.compile(
    r"(?:test[_-])?(?:foo|bar|baz|qux|blah|xyz)(?:_test)?\b|(?:path|to|file|filename|example|sample|dummy)(?:\.|-name|\Z)"
    r"|(?:my|your|some|example|new)(?:[-_.A-Z]|command|file|module|plugin|app|test)"
    r"|(?:My|Your|Some|Example|New)[A-Z]|FeatureName|\w*path_to|[A-Z]{1,6}-\d+\b|x{2,}\b|.*(?:[-_]|\b)(?:123|xxx+|name|id|foo|bar|baz)\.\w+\Z",
)  # `tests/path/test_foo.py`, `src/my_module.py`
_IS_MADE = re.compile(
    r"-(?:compiled|generated|emitted|written|rendered|exported|downloaded|extracted|saved|cached|created|outputs?|writes"
    r"|generates|produces)-(?:in|into|to|at|by|under|from)-"
)
_SECTION = re.compile(r"#{1,2}[ \t]+(.*)")
_PLAIN_FOLDER = re.compile(r"(?<![\w./-])/?[\w.-]*[a-z][\w.-]*(?:/[\w.-]+)*/?(?![\w(])")
_FOLDER_IN_CODE = re.compile(r"`/?([\w.-]+(?:/[\w.-]+)*/?)`")
_MAX_NAMED_ABOVE = 20
_STATED = r"-(?:is|are|lives?|sits?|(?:is|are)-(?:defined|located|stored|kept|found|set))-(?:in|at|under)(?:-the)?"
_HEADERS = (".h", ".hh", ".hpp", ".hxx")
_LINES_TO_LONGER_PATH = 8
_PASSING_FOLDER = re.compile(r"/(?:(?:private/|var/)?tmp|dev|proc|run)/")
_ON_EVERY_MACHINE = re.compile(
    r"/(?:usr/(?:local/)?)?s?bin(?:/[\w.-]+)?\Z|/(?:etc|usr|var|opt|home|root|srv|mnt|lib|boot)(?:/(?:local|lib|log|share|www"
    r"|spool|cache|src|include))?\Z|/etc/(?:environment|hosts|hostname|resolv\.conf|passwd|group|shadow|fstab|profile|crontab"
    r"|sudoers|timezone|localtime|os-release|machine-id|ssh|systemd|apt|ssl|default|cron\.[a-z]+|logrotate\.d|init\.d"
    r"|security|skel|sysctl\.conf)(?:/(?:sshd?_config(?:\.d)?|system|user|certs|sources\.list(?:\.d)?|limits\.conf))?\Z"
)  # being there says nothing about the machine that is meant
_MAX_BRANCHES = 20
_MIN_MOVED_SHARE = 3  # one file in so many of a folder has to be in its new place
_MANUALS = ("doc", "docs", "documentation")  # of a program: they tell of everybody's files
_KEPT_COPY = re.compile(
    r"(?:^|[/_.-])(?:back-?ups?|bak|archived?s?|old|legacy|deprecated|trash|snapshots?)(?=[/_.-])", re.IGNORECASE
)


def words_above(lines: Sequence[str]) -> list[tuple[str, ...]]:
    """For each line, the words in code above it in its section that may be folders, and those of its headings."""
    found: list[tuple[str, ...]] = []
    words: tuple[str, ...] = ()
    for line in lines:
        if (heading := _SECTION.match(line)) is not None:
            words = tuple(word.strip("/") for word in _PLAIN_FOLDER.findall(heading[1]))
        found.append(words)
        if "`" in line:
            named = tuple(name for word in _FOLDER_IN_CODE.findall(line) if (name := word.strip("/")) not in words)
            words = (*words, *named)[-_MAX_NAMED_ABOVE:]
    return found


def find_longer_paths(claims: Sequence[Claim]) -> dict[Claim, tuple[str, ...]]:
    """For bare file names, the paths of the nearby lines that end with them: they say which file is meant."""
    paths: dict[str, list[Claim]] = defaultdict(list)
    bare = []
    for claim in claims:
        if claim.kind == "path" and "/" in claim.name:
            paths[claim.name.rpartition("/")[2]].append(claim)
        elif claim.kind == "path":
            bare.append(claim)
    found = {}
    for claim in bare:
        near = [one.name for one in paths.get(claim.name, ()) if abs(one.line - claim.line) <= _LINES_TO_LONGER_PATH]
        if near:
            found[claim] = tuple(dict.fromkeys(near))
    return found


def check_path(world: World, question: Question) -> Verdict | None:
    """Check a path or folder; None for a weak claim that the repository does not know."""
    claim = question.claim
    name = claim.name
    if name.startswith(("/", "~")):
        inside = _inside(world, name)
        if inside is None:
            is_common = world.is_home and _ON_EVERY_MACHINE.match(name)
            return None if is_common else outside(question, name, world.workspace)
        if world.is_home and claim.is_weak:
            return None  # `/api/tasks`: a route of a server, as likely as anything
        name, question = inside, question._replace(folder="", is_rooted=world.is_home)
    elif world.is_home and (declared := _in_declared_folder(world, name, question)):
        name, question = declared, question._replace(folder="", is_rooted=True)
    if name == "." or (world.is_home and name in ("workspace", world.name) and claim.kind == "directory"):
        return confirmed(question, "exists", "the workspace itself")
    is_folder = claim.kind == "directory"
    if world.is_home and is_folder and claim.is_weak and name in FOLDERS_OF_ANY_PROJECT and not question.is_rooted:
        return None
    place = find_place(world, name, question)
    if world.is_home and name in WORKSPACE_FILES and not question.is_rooted and claim.why != "a link":
        return _file_of_agent(world, question, place)
    is_lost = (place is None or not place.path) and not world.now.has(name.strip("/"))
    if is_lost and (there := judge_uncommitted(world, question, name.strip("/"))) is not None:
        return there
    if place is not None and place.path and not place.is_moved:
        return _exists(world, question, place.path)
    if place is not None and place.path:
        if world.is_home and not world.is_in_use and is_ignored_path(world, name.strip("/"), question):
            return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
        return _moved(question, place)
    if place is not None and place.trail is not None and (several := _several(world, name)):
        return unverifiable(question, "several", f"{len(several)} files end like this", candidates=several[:5])
    if place is not None and place.trail is not None:
        commit = place.trail.commit
        if link := world.now.became_submodule(place.trail.last or name):
            return unread(question, link)
        if not is_folder and (successor := _find_contents_successor(world, name.strip("/"))):
            why = f"its contents went to {successor} in {commit.id[:10]} on {commit.day}"
            return moved(question, "contents-moved", why, successor, commit=commit.id, day=commit.day, rank=GIT)
        what = f"deleted in {commit.id[:10]} on {commit.day}"
        if world.now.state.is_lazy:
            what = (
                f"not there since {commit.id[:10]} on {commit.day}; a partial clone cannot tell whether it was renamed"
            )
        if any(is_ignored_path(world, path, question) for path in _from_folder(name, question)) and not world.is_in_use:
            what = f"git ignores it since {commit.id[:10]} on {commit.day}, and it is not on this machine"
            return unverifiable(question, "ignored", what)
        if world.past.problem and not world.options.are_documents:
            return unverifiable(
                question, "incomplete", f"not there since {commit.id[:10]} on {commit.day}; {world.past.problem}"
            )
        near = tuple(world.now.by_name.get(name.rpartition("/")[2], ())[:5])
        if world.past.has_only_exact_renames and (near or _may_have_moved(world, name, commit.id)):
            what = f"{what}; it may have been moved: objects are missing in this clone"
            if not world.options.are_documents:
                return unverifiable(question, "incomplete", what, candidates=near)
        elif not world.now.state.is_lazy:
            near = ()
        return gone(
            question, "deleted", what, commit=commit.id, day=commit.day, place=place.trail.last, candidates=near
        )
    if name in world.now.deleted and world.now.state.head and not world.past.oids([f"{world.now.state.head}:{name}"]):
        return unverifiable(question, "incomplete", "git lists it, but its contents are missing in this clone")
    if name in world.now.deleted or _was_folder(world, name):
        return gone(question, "deleted-here", "deleted in the work tree, not committed", rank=CODE, is_dirty=True)
    verdict = _missing(world, question, name, is_folder=is_folder)
    if verdict is not None and verdict.reason == "never-seen":
        verdict = missing_here(question, claim.name, world.workspace) or verdict
    return verdict and verdict._replace(why=verdict.why + _mixed_alphabet_note(name))


def _in_declared_folder(world: World, name: str, question: Question) -> str:
    """The path of a name in the folder that its part of the document is about, if that has it now or had it."""
    base = world.base_of(question.declared)
    if not base or base == ELSEWHERE or ".." in name.split("/"):
        return ""
    path = f"{base}/{name.strip('/')}"
    is_here = world.now.has(path) or world.now.has_folder(path)
    return path if is_here or world.past.follow(path, question.written_at, world.now.position) is not None else ""


def _several(world: World, name: str) -> tuple[str, ...]:
    """The files of a repository that a path in one of its documents may mean just as well."""
    bare = name.strip("/")
    if not world.options.are_documents or "/" not in bare:
        return ()
    return tuple(path for path in world.now.by_name.get(bare.rpartition("/")[2], ()) if path.endswith("/" + bare))


def _may_have_moved(world: World, name: str, commit: str) -> bool:
    """Whether the commit that deleted a file added another one of its kind."""
    ending = os.path.splitext(name)[1]
    return any(path.endswith(ending) for path in world.past.files_added_by(commit))


def find_place(world: World, name: str, question: Question) -> PathPlace | None:
    """Find a path in the checkout or its history; None if neither has it."""
    if name.startswith(("/", "~")) and (own := world.own_path(name)) is not None:
        name, question = own, question._replace(folder="", is_rooted=True)
    place = _known_place(world, name, question)
    if (place is None or not place.path or place.is_moved) and (near := _below_folder_above(world, name, question)):
        return PathPlace(near)
    return place or _old_name(world, name, question)


def _below_folder_above(world: World, name: str, question: Question) -> str:
    """The path of a name in a folder that its section names above it: "Location: `server/`", then `src/main.rs`."""
    if not question.named_above or question.claim.why == "a link" or not _is_relative(name):
        return ""
    bare = name.strip("/")
    for folder in reversed(question.named_above):
        bases = [base for base in _from_folder(folder, question) if world.now.has_folder(base)]
        for base in bases or [one for one in [_by_ending(world, folder)] if world.now.has_folder(one)]:
            if world.now.has(path := f"{base}/{bare}") or world.now.has_folder(path):
                return path
    return ""


def _known_place(world: World, name: str, question: Question) -> PathPlace | None:
    """Find a path in the checkout or in the rename records since the memory's date. Cached."""
    if world.is_home and _is_bare(name):
        return _find_place(world, name, question)  # by what the line is about, so there is little to share
    is_link = question.claim.why == "a link"
    key = (name, question.written_at, question.claim.is_weak, question.folder, is_link, question.is_rooted)
    known: dict[tuple[object, ...], PathPlace | None] = world.places
    if key not in known:
        known[key] = _find_place(world, name, question)
    return known[key]


def unknown_path(world: World, question: Question) -> str:
    """Return the path of a claim if it must be looked up in all of history, otherwise an empty string."""
    claim = question.claim
    name = claim.name if claim.kind in ("path", "directory") else claim.place
    if not _is_relative(name) or claim.is_weak or claim.why == IN_TREE:
        return ""
    if _known_place(world, name, question) is not None:
        return ""
    return name.strip("/")


def _is_relative(name: str) -> bool:
    return bool(name) and not name.startswith(("/", "~")) and ".." not in name.split("/")


def _is_bare(name: str) -> bool:
    return "/" not in name.strip("/")


def _readings(world: World, name: str, question: Question) -> list[str]:
    """The paths that a name can mean, most likely first.

    Notes below memory/ name files from the root of the workspace; links, and documents of a project, from their folder.
    """
    found = list(_from_folder(name, question))
    is_note = question.folder == "memory" or question.folder.startswith("memory/")
    if world.is_home and is_note and question.claim.why != "a link" and ".." not in name.split("/"):
        found = [found[-1], *found[:-1]]
    return found


def _from_folder(name: str, question: Question) -> Iterator[str]:
    """The paths that a name means from the folder of its document, then from each folder above, the root last."""
    folder, bare = question.folder, name.strip("/")
    while folder:
        path = os.path.normpath(f"{folder}/{bare}")
        if not path.startswith(".."):
            yield path
        folder = folder.rpartition("/")[0]
    if ".." not in bare.split("/"):
        yield bare


def _old_name(world: World, name: str, question: Question) -> PathPlace | None:
    """Find a path that was renamed before the memory's date: an edit updates the date but may keep old paths."""
    path, now = name.strip("/"), world.now
    if question.written_at is None or question.claim.is_weak or not _is_relative(name) or now.behind(path):
        return None
    if world.last_commit(path) is None:
        return None
    trail = world.past.trace(path, lambda other: now.has(other) or now.has_folder(other))
    return PathPlace(trail.path, is_moved=bool(trail.path), trail=trail) if trail is not None else None


def _find_place(world: World, name: str, question: Question) -> PathPlace | None:
    now = world.now
    candidates = _readings(world, name, question)
    if world.is_home and _is_bare(name) and is_file(name):
        is_decided, place = _place_by_subject(world, name, candidates, question)
        if is_decided:
            return place
    for candidate in (*candidates, *_spellings(world, name)):
        if now.has(candidate) or now.has_folder(candidate):
            return PathPlace(candidate)
    if world.options.are_documents and (page := _page(world, candidates)):
        return PathPlace(page)
    bare = name.lstrip("/")
    is_bare = "/" not in bare
    if not is_bare and (there := next((path for path in candidates if is_on_disk(world, path)), "")):
        return PathPlace(there)
    if now.behind(bare):
        return None  # this repository's history does not cover it
    if is_bare:
        return _bare_place(world, bare, question)
    if question.written_at is None and bare.endswith(_HEADERS) and (short := _by_ending(world, bare)):
        return PathPlace(short)  # a C include path such as `fmt/format.h`
    for candidate in candidates:
        trail = world.past.follow(candidate, question.written_at, now.position)
        if trail is not None:
            return PathPlace(trail.path, is_moved=bool(trail.path), trail=trail)
        if (successor := moved_folder(world, candidate, question)) is not None:
            return successor
    folded = now.by_lower.get(bare.lower())
    if folded is not None and not (world.options.are_documents and question.claim.is_weak):
        return PathPlace(folded, is_moved=True)
    is_exact = world.is_home and question.is_rooted  # it is there, or it is not
    if not is_exact and (short := _by_ending(world, bare)) and (not world.is_home or _is_surely(short, bare, question)):
        return PathPlace(short)
    return _removed_by_ending(world, bare, question) if world.options.are_documents else None


def _page(world: World, candidates: Iterable[str]) -> str:
    """The document that a path without an ending means: `docs/README` for docs/README.rst."""
    plain = [path for path in candidates if "/" in path and "." not in path.rpartition("/")[2]]
    return next(
        (path + ending for path in plain for ending in (".md", ".rst", ".txt") if world.now.has(path + ending)), ""
    )


def _removed_by_ending(world: World, path: str, question: Question) -> PathPlace | None:
    """Find the only path of history that ends like this: `protocol/src/v2.rs` of a package below the root."""
    if question.claim.is_weak or not _is_relative(path) or _several(world, path):
        return None
    ended = [old for old in world.past.removed_paths_named(path.rpartition("/")[2], None) if old.endswith("/" + path)]
    trail = world.past.follow(ended[0], None, world.now.position) if len(ended) == 1 else None
    return PathPlace(trail.path, is_moved=bool(trail.path), trail=trail) if trail is not None else None


def _is_surely(path: str, ending: str, question: Question) -> bool:
    """Whether a path of the workspace that ends like a name is the one meant: distinctive, or in a folder named."""
    name = ending.rpartition("/")[2]
    stem = name.partition(".")[0]
    if nearest(question.subject, question.folder, [path], stem)[0][0] < NOT_NAMED:
        return True
    return not (name in OF_ANY_PROJECT or is_one_word(stem.replace("-", "_")) or _is_kept_copy(path, question))


def _put_away(world: World, name: str, copies: Sequence[str], question: Question) -> PathPlace | None:
    """Find a file that only an archive or a backup of the workspace has: moved there, or always been there."""
    if len(copies) > 1 or name in OF_ANY_PROJECT or is_one_word(name.partition(".")[0].replace("-", "_")):
        return None
    past, since = world.past, question.written_at
    trails = [past.follow(path, since, world.now.position) for path in past.removed_paths_named(name, since)]
    trail = next((trail for trail in trails if trail is not None and trail.path == copies[0]), None)
    if trail is not None:
        return PathPlace(copies[0], is_moved=True, trail=trail)
    return None if any(trails) else PathPlace(copies[0])


def _is_kept_copy(path: str, question: Question) -> bool:
    """Whether a file is a copy that was put away, in a folder that the text does not name."""
    match = _KEPT_COPY.search(path)
    return match is not None and match[0].strip("/_.-").lower() not in question.subject.line + question.subject.heading


def _by_ending(world: World, path: str) -> str:
    """Return the only file or folder whose path ends like this; empty if there is none or several."""
    ending = "/" + path
    matches = [known for known in world.now.by_name.get(path.rpartition("/")[2], ()) if known.endswith(ending)]
    if not matches:
        matches = [folder for folder in world.now.folders if folder.endswith(ending)]
    return matches[0] if len(matches) == 1 else ""


def _spellings(world: World, name: str) -> list[str]:
    """Return the ways to read a path: from the root, or without the repository's name in front."""
    bare = name.strip("/")
    found = [bare]
    head, _, rest = bare.partition("/")
    if rest and head == world.name:
        found.append(rest)
    return found


def _bare_place(world: World, name: str, question: Question) -> PathPlace | None:
    """Find a file name without a folder: it exists if any file has it, and moved or is gone if only one ever had it."""
    namesakes = [] if question.is_rooted else world.now.by_name.get(name, [])
    matches = [path for path in namesakes if not path.startswith(f"{STATE}/")]
    if world.is_home and matches and all(_is_kept_copy(path, question) for path in matches):
        return _put_away(world, name, matches, question)
    if world.is_home:
        matches = [path for path in matches if not _is_kept_copy(path, question)]
    if matches and world.is_home and name in OF_ANY_PROJECT | WORKSPACE_FILES:
        return None  # one of another folder need not be the one that is meant
    if len(matches) == 1:
        return PathPlace(matches[0])
    if matches:
        return PathPlace(name)
    if is_on_disk(world, name):
        return PathPlace(name)
    if world.options.are_documents and (folded := world.now.by_lower.get(name.lower())):
        return PathPlace(folded)  # `justfile` for Justfile: programs find either
    for path in _readings(world, name, question):
        own = world.past.follow(path, question.written_at, world.now.position)
        if own is not None:
            return PathPlace(own.path, is_moved=bool(own.path), trail=own)
    if (successor := moved_folder(world, name, question)) is not None:
        return successor
    if name in WELL_KNOWN or world.is_home:
        return None  # a deleted one in some other folder need not be the one that is meant
    trails = [
        trail
        for path in world.past.removed_paths_named(name, question.written_at)
        if (trail := world.past.follow(path, question.written_at, world.now.position)) is not None
    ]
    if not trails:
        return None
    alive = {trail.path for trail in trails if trail.path}
    if len(alive) == 1 and len(trails) == 1:
        return PathPlace(alive.pop(), is_moved=True, trail=trails[0])
    if not alive:
        return PathPlace("", trail=max(trails, key=lambda trail: trail.commit.at))
    return None


def _place_by_subject(
    world: World, name: str, candidates: Sequence[str], question: Question
) -> tuple[bool, PathPlace | None]:
    """Choose, by what the text is about, the file of the workspace that a bare name means; and whether that decides.

    Decided without a file: the text means one that is elsewhere, or nothing says which of many projects' it is.
    """
    now = world.now
    if question.is_rooted:
        return now.has(name), PathPlace(name)
    if question.longer:  # the text says which
        places = [find_place(world, path, question._replace(longer=())) for path in question.longer]
        here = [place for place in places if place is not None and place.path]
        return True, here[0] if here else None
    namesakes = [path for path in now.by_name.get(name, ()) if not path.startswith(f"{STATE}/")]
    own = next((path for path in candidates if now.has(path)), "")
    namesakes = [path for path in namesakes if path == own or not _is_kept_copy(path, question)]
    if question.claim.why == "a link" or (not namesakes and name not in WORKSPACE_FILES):
        return bool(own), PathPlace(own) if own else None
    stem = name.partition(".")[0]
    if name in WORKSPACE_FILES:
        return _place_of_agent(world, name, namesakes, question)
    ranked = nearest(question.subject, question.folder, namesakes, stem)
    named = [path for rank, path in ranked if rank == ranked[0][0] <= IN_HEADING]
    if own and (own in named or not named) and name not in OF_ANY_PROJECT:
        return True, PathPlace(own)
    if len(named) == 1:
        is_open = ranked[0][0] == IN_HEADING and _is_claimed_by_another(named[0], namesakes, question)
        return True, None if is_open else PathPlace(named[0])
    is_common = name in OF_ANY_PROJECT or is_one_word(stem.replace("-", "_"))
    if len(namesakes) > 1 or (is_common and ranked[0][0] > IN_SECTION):
        return True, None
    return False, None


def _place_of_agent(
    world: World, name: str, namesakes: Sequence[str], question: Question
) -> tuple[bool, PathPlace | None]:
    """Choose whose file is meant: each agent of a workspace has files of these names in its own folder.

    In an agent's own folder the files there are meant; elsewhere the workspace's, unless the line or a heading names
    the folder of another one.
    """
    subject = question.subject
    if subject.is_of_other_agent or question.folder.partition("/")[0] in _MANUALS:
        return True, None
    home = os.path.relpath(os.path.realpath(world.workspace), world.root) if world.workspace else "."
    own = os.path.normpath(os.path.join(home, name))
    beside = f"{question.folder}/{name}" if question.folder else name
    is_in_agent = beside != own and question.memory.rpartition("/")[2] in (*WORKSPACE_FILES, "README.md")
    # That a line lists IDENTITY.md and SOUL.md says nothing about IDENTITY/SOUL.md.
    others = [path for path in namesakes if f"{os.path.dirname(path).rpartition('/')[2]}.md" not in WORKSPACE_FILES]
    named = [path for path in others if path != own and _names_folder(subject, os.path.dirname(path))]
    is_note = question.folder in ("memory", f"{home}/memory")
    if is_in_agent and beside in namesakes:
        return True, PathPlace(beside)
    if named:
        return True, PathPlace(named[0]) if len(named) == 1 else None
    is_own = own in namesakes and (beside == own or beside not in namesakes or is_note)
    return True, PathPlace(own) if is_own else None


def _names_folder(subject: Subject, folder: str) -> bool:
    """Whether a line names a folder as one, or a heading has its name of several words: "daily" alone is a word."""
    name = folder.rpartition("/")[2]
    is_several = len(re.findall(r"[A-Za-z]+", name)) > 1
    return f"{name}/" in subject.text or (is_several and subject.nearness(f"{name}/") <= IN_HEADING)


def _file_of_agent(world: World, question: Question, place: PathPlace | None) -> Verdict | None:
    """Check a file that every agent may have: one that is missing is the harness's to make, and no alarm."""
    name = question.claim.name
    if place is not None and place.path and not place.is_moved:
        return _exists(world, question, place.path)
    several = tuple(path for path in world.now.by_name.get(name, ()) if not is_backup(path))[:5]
    if question.claim.is_weak or not several:
        return None
    return unverifiable(question, "several", f"which agent's {name} is meant is open", candidates=several)


def _is_claimed_by_another(chosen: str, namesakes: Sequence[str], question: Question) -> bool:
    """Whether the line has a word of another namesake's folder, and none of the chosen one's: which one is open."""
    line = question.subject._replace(heading="")
    shared = {path: line.shared_words(os.path.dirname(path)) for path in namesakes}
    return not shared[chosen] and any(shared.values())


def moved_folder(world: World, folder: str, question: Question) -> PathPlace | None:
    """Find where a folder moved: to where most of its remaining files are, if that is one folder.

    A few files that others resemble do not make a move: of a folder that was deleted, some always look renamed.
    """
    files = world.past.files_removed_from(folder, question.written_at)
    if not files:
        return None
    successors: dict[str, int] = {}
    alive = 0
    last: Trail | None = None
    for path in files:
        trail = world.past.follow(path, question.written_at, world.now.position)
        if trail is None:
            continue
        last = trail if last is None or trail.commit.at > last.commit.at else last
        if trail.path:
            alive += 1
            tail = path[len(folder) :]
            if trail.path.endswith(tail):
                successor = trail.path[: -len(tail)]
                successors[successor] = successors.get(successor, 0) + 1
    if last is None:
        return None
    best = max(successors, key=lambda successor: successors[successor], default="")
    is_most = bool(best) and successors[best] * 5 >= alive * 3 and successors[best] * _MIN_MOVED_SHARE >= len(files)
    if is_most and world.now.has_folder(best):
        return PathPlace(best, is_moved=True, trail=last._replace(path=best))
    return PathPlace("", trail=last._replace(path="", last=folder))


def judge_uncommitted(world: World, question: Question, path: str) -> Verdict | None:
    """Check a file that is in HEAD but not in the work tree: an uncommitted move or deletion."""
    head = world.now.state.head
    oid = world.past.oids([f"{head}:{path}"]).get(f"{head}:{path}") if head and path else None
    if oid is None:
        return None
    successors = [other for other in world.now.path_of_blob.get(oid, ()) if other != path]
    if len(successors) == 1:
        return moved(
            question, "renamed-here", f"moved to {successors[0]} in the work tree", successors[0], is_dirty=True
        )
    why = "deleted in the work tree, not committed"
    return gone(question, "deleted-here", why, rank=CODE, is_dirty=True, candidates=tuple(successors[:5]))


def _find_contents_successor(world: World, path: str) -> str:
    """Return the only file added in the commit that deleted this one and that has most of its definitions, or empty."""
    past = world.past
    commit, before = past.last_removal(path), past.last_version(path)
    if commit is None or before is None:
        return ""
    if not is_code(path) or language_for(path) == "json":
        return ""  # the keys of data are alike in many files
    names = {item.name for item in before.outlines([path])[path] if not item.scope}
    added = [
        other for other in past.files_added_by(commit.id) if world.now.has(other) and is_code(other) == is_code(path)
    ]
    if not names or not added or len(added) > 50:
        return ""
    defined = {other: {item.name for item in items} for other, items in world.now.outlines(added).items()}
    successors = [other for other in added if len(names & defined[other]) * 5 >= len(names) * 3]
    return successors[0] if len(successors) == 1 and len(names & defined[successors[0]]) > 1 else ""


def _was_folder(world: World, name: str) -> bool:
    prefix = name.strip("/") + "/"
    return any(path.startswith(prefix) for path in world.now.deleted)


def is_on_disk(world: World, path: str) -> bool:
    """Whether a path that git does not list exists below the root: ignored, or an empty folder."""
    full = os.path.join(world.root, path)
    try:
        if not os.path.lexists(full):
            return False
        real = os.path.realpath(full)
    except (OSError, ValueError):
        return False
    return real == world.root or real.startswith(world.root + os.sep)


def _inside(world: World, name: str) -> str | None:
    """Turn an absolute path into one relative to the repository; None if it is outside."""
    full = os.path.expanduser(name) if name.startswith("~") else name
    full = os.path.normpath(full)
    for root in {world.root, os.path.abspath(world.root)}:
        if full.startswith(root + "/"):
            return full[len(root) + 1 :]
    if (own := world.own_path(name)) is not None:
        return own
    if name.startswith("~"):
        return None
    bare = name.lstrip("/")
    first = bare.split("/")[0]
    if first in SYSTEM_FOLDERS and not world.now.has(bare):
        return None
    if os.path.lexists("/" + first) and not world.now.has_folder(first):
        return None
    return bare


def outside(question: Question, name: str, workspace: str = "") -> Verdict | None:
    """Check whether a path outside the repository exists; None for a temporary one. Its content is not read."""
    try:
        there = os.path.lexists(os.path.expanduser(name))
    except (OSError, ValueError):
        there = False
    if there:
        return confirmed(question, "on-this-host", "there on this machine; outside the repository, so not looked into")
    if (missing := missing_here(question, name, workspace)) is not None:
        return missing
    if _PASSING_FOLDER.match(name):
        return None  # nobody expects it to last
    if is_of_other_machine(name):
        return unverifiable(question, "other-machine", "a path of another machine, or of another user")
    return unverifiable(question, "outside", "not on this machine, and outside of the repository")


def missing_here(question: Question, name: str, workspace: str) -> Verdict | None:
    """The verdict on a missing path that can only be of this machine; None if it may be of another one.

    It is of this machine if it is in this very workspace, or in a folder that this user's home has. What programs write
    while they run may come back.
    """
    full = os.path.normpath(os.path.expanduser(name))
    if question.claim.is_weak or not full.startswith("/"):
        return None
    own = {os.path.abspath(workspace), os.path.realpath(workspace)} if workspace else set()
    if rest := _below(full, own):
        is_ours, why = True, "it is not in this workspace"
    else:
        home, folder = os.path.expanduser("~"), os.path.dirname(full)
        rest = _below(full, {home})
        is_ours = os.path.dirname(rest) not in ("", *_SHARED_HOME_FOLDERS) and os.path.isdir(folder)
        why = "it is not on this machine, though its folder is"
    if not is_ours or MADE_AT_RUN_TIME.search(rest):
        return None
    return gone(question, "not-there", why, rank=CODE)


def _below(path: str, folders: set[str]) -> str:
    """A path from the folder that it is in; empty if it is in none of them."""
    return next((path[len(folder) + 1 :] for folder in folders if path.startswith(f"{folder}/")), "")


def is_of_other_machine(name: str) -> bool:
    """Whether a path is below a home folder that is not on this machine, or that is somebody else's."""
    match = HOME_FOLDER.match(name)
    return match is not None and not os.access(match[0], os.R_OK)


def _exists(world: World, question: Question, path: str) -> Verdict | None:
    name = question.claim.name.strip("/")
    if world.is_home and path == _own_path(question):
        return None  # that a document is there says nothing about what it claims
    dirty = path in world.now.position and world.now.is_dirty(path)
    if path == name or path == question.claim.name:
        listed = world.now.has(path) or world.now.has_folder(path)
        if not listed and "/" not in path and len(world.now.by_name.get(path, ())) > 1:
            several = tuple(world.now.by_name[path][:5])
            if world.is_home and question.claim.is_weak:
                return None
            if world.is_home:
                return unverifiable(question, "several", f"{len(several)} files have this name", candidates=several)
            return confirmed(question, "exists", "several files have this name", several[0], candidates=several)
        why = "there" if listed else "there, but not tracked by git"
        return confirmed(question, "exists", why, path, is_dirty=dirty)
    return confirmed(question, "exists", f"there as {path}", path, is_dirty=dirty)


def _own_path(question: Question) -> str:
    """The path of the document itself, from the root of the repository."""
    return f"{question.folder}/{question.memory.rpartition('/')[2]}" if question.folder else question.memory


def _moved(question: Question, place: PathPlace) -> Verdict:
    trail = place.trail
    if trail is None:
        return moved(question, "letter-case", "there with other capitals", place.path)
    commit = trail.commit
    what = f"renamed to {place.path} in {commit.id[:10]} on {commit.day}"
    return moved(question, "renamed", what, place.path, commit=commit.id, day=commit.day, rank=GIT)


def _missing(world: World, question: Question, name: str, *, is_folder: bool) -> Verdict | None:
    """Return the verdict on a path that is neither in the checkout nor in this branch's history."""
    claim = question.claim
    bare = name.strip("/")
    if ".." in bare.split("/") and question.folder:
        bare = next(_from_folder(name, question), bare)
    parts = bare.split("/")
    now = world.now
    if ".." in parts:
        return (
            None
            if claim.is_weak
            else unverifiable(question, "relative", "a relative path whose starting folder is unknown")
        )
    if world.is_home and claim.is_weak and _is_bare(bare):
        return None  # the file of another project, as likely as one of these
    if world.workspace and not is_folder and os.path.lexists(os.path.join(world.workspace, bare)):
        return confirmed(question, "in-memory", "a file of this memory")
    several = tuple(path for path in now.by_name.get(parts[-1], ()) if path.endswith("/" + bare))[:5]
    if world.is_home and several and not question.is_rooted:
        ranked = nearest(question.subject, question.folder, several, parts[-1].partition(".")[0])
        best = [path for rank, path in ranked if rank == ranked[0][0] < NOT_NAMED]
        if len(best) == 1:
            return confirmed(question, "exists", f"there as {best[0]}", best[0])
        if len(several) == 1:
            return None  # of a project that nothing here names
    if several and not (world.is_home and question.is_rooted):
        return unverifiable(question, "several", f"{len(several)} files end like this", candidates=several)
    if claim.is_weak:
        return None
    if link := now.behind(bare):
        return unread(question, link)
    near = tuple(now.by_name.get(parts[-1], ())[:5])
    if not now.state.head and now.state.is_whole:
        return unverifiable(question, "no-commits", "nothing was committed here yet")
    if now.state.is_shallow and not world.past.problem:
        if world.options.are_documents and (place := _place_of_missing(world, name, question)):
            return _not_there(world, question, place)
        return judge_by_tree(world, question, bare)
    other = world.last_commit(bare)
    is_unknown = not now.state.has_commits or bool(world.past.problem)
    if is_unknown and world.options.are_documents and (place := _place_of_missing(world, name, question)):
        return _not_there(world, question, place)
    if is_unknown:
        why = "not here, but this clone does not have everything"
        return unverifiable(question, "incomplete", why, candidates=near)
    if other is not None:
        if world.past.last_touch(bare) is None:
            if branch := _branch_with(world, bare):
                why = f"not on this branch; on {branch} ({other.id[:10]}, {other.day})"
                return confirmed(question, "other-branch", why, rank=GIT, commit=other.id)
            why = f"not on this branch; another one has it ({other.id[:10]}, {other.day})"
            return unverifiable(question, "other-branch", why, candidates=near)
        return gone(
            question, "deleted", f"no longer there since {other.id[:10]} on {other.day}", commit=other.id, day=other.day
        )
    if world.options.are_documents and (place := _place_of_missing(world, name, question)):
        return _not_there(world, question, place)
    if world.options.are_documents and (lost := _lost_folder(world, name, question)):
        if is_ignored_path(world, bare, question):
            return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
        why = f"nothing here or in history has such a path, and {lost} is not here any more"
        return gone(question, FOLDER_LEFT, why, candidates=near, rank=CODE)
    if world.options.are_documents and _is_stated(question, bare) and not is_ignored_path(world, bare, question):
        return gone(question, NEVER_SEEN, "nothing here or in history has such a path", candidates=near, rank=CODE)
    if not (now.has_folder(parts[0]) or now.has_folder("/".join(parts[:-1]))):
        return unverifiable(question, "never-seen", "nothing here or in history has such a path", candidates=near)
    if is_ignored_path(world, bare, question):
        return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
    if world.is_home:  # what a workspace names without having it is planned, made at run time, or another project's
        return unverifiable(question, "never-seen", "nothing here or in history has such a path", candidates=near)
    if not world.is_newer_than(question.written_at):
        why = "never seen in this history; the memory may be newer than this checkout"
        return unverifiable(question, "never-seen", why, candidates=near)
    return gone(question, "never-seen", "no such path, and none in all of history", candidates=near)


def _is_stated(question: Question, bare: str) -> bool:
    """Whether a document for contributors says of something that it is in a file: "the settings are in `a/b.toml`"."""
    claim = question.claim
    if not is_for_contributors(question.memory) or claim.why != "inline code" or claim.kind != "path":
        return False
    if not is_file(bare.rpartition("/")[2]) or MADE_AT_RUN_TIME.search(bare) or PLACEHOLDER.search(bare):
        return False
    return re.search(_STATED + re.escape(reduce_words(claim.text)), question.subject.line) is not None


def _lost_folder(world: World, name: str, question: Question) -> str:
    """The folder above a path that was here and is not any more; empty if a folder may be meant that never was."""
    bare = name.strip("/")
    if "/" not in bare or any(PLACEHOLDER.match(part) for part in bare.split("/")):
        return ""
    if any(world.now.has_folder(path.rpartition("/")[0]) for path in _from_folder(name, question)):
        return ""  # its own folder is here, and it may be a module without its ending
    for path in _from_folder(name, question):
        parts = path.split("/")
        first = next((at for at in range(1, len(parts)) if not world.now.has_folder("/".join(parts[:at]))), 0)
        folder = "/".join(parts[:first])
        if first and world.past.files_removed_from(folder, None):
            return folder
    return ""


def _branch_with(world: World, path: str) -> str:
    """A branch of the workspace's repository whose newest commit has this path; empty if there is none."""
    if not world.is_home:
        return ""
    branches = world.branches[:_MAX_BRANCHES]
    found = world.past.oids([f"{branch}:{path}" for branch in branches])
    return next((branch for branch in branches if f"{branch}:{path}" in found), "")


def _place_of_missing(world: World, name: str, question: Question) -> str:
    """The path here that a file is said to have, in a folder that is here; empty if there is none.

    It may also be a folder, if two folders above it are here.
    """
    bare = name.strip("/")
    folder, _, file = bare.rpartition("/")
    has_folder = world.now.has_folder
    paths = list(_from_folder(name, question))
    is_sure = (is_file(file) and question.claim.kind == "path") or question.claim.why == ENTERED
    is_deep = ("/" in folder or question.claim.kind == "directory") and any(
        has_folder("/".join(path.split("/")[: 2 if "/" in folder else 1])) for path in paths
    )
    if not folder or not (is_sure or is_deep):
        return ""
    for path in paths:
        if has_folder(path.rpartition("/")[0]):
            return path
    top = folder.partition("/")[0]
    if top != ".." and has_folder(f"{question.folder}/{top}" if question.folder else top):
        return paths[0]
    ended = [known for known in world.now.folders if known.endswith("/" + folder)] if "/" in folder else []
    return f"{ended[0]}/{file}" if len(ended) == 1 else ""


def _not_there(world: World, question: Question, path: str) -> Verdict:
    """Return the verdict on a path that is said to be in a folder that is here."""
    if is_ignored_path(world, path, question):
        return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
    folder = path.rpartition("/")[0]
    while not world.now.has_folder(folder):
        folder = folder.rpartition("/")[0]
    is_shallow = world.now.state.is_shallow or bool(world.past.problem)
    since = "; this clone cannot tell since when" if is_shallow else ", and never had"
    missing = path[len(folder) + 1 :]
    if _IS_MADE.search(question.subject.line):
        return unverifiable(question, "made", "not there; the line says that a program makes it")
    if any(PLACEHOLDER.match(part) for part in missing.split("/")):
        return unverifiable(question, "placeholder", "its name stands for any name")
    why = f"{folder} has no {missing}{since}"
    near = tuple(world.now.by_name.get(path.rpartition("/")[2], ())[:5])
    if alike := [other for other in near if other.split("/")[-2:] == path.split("/")[-2:]]:
        return unverifiable(question, "several", f"{alike[0]} ends alike", candidates=tuple(alike))
    return gone(question, NOT_THERE if is_shallow else NEVER_SEEN, why, place=path, candidates=near, rank=CODE)


def judge_by_tree(world: World, question: Question, path: str) -> Verdict:
    """Return the verdict on a path missing from a shallow clone: gone, if it can only belong to this repository.

    A memory without a date may mean another repository or a planned file, so then only a file whose folder exists here
    counts as gone.
    """
    now = world.now
    folder, _, name = path.rpartition("/")
    near = tuple(now.by_name.get(name, ())[:5])
    if world.knows_absence(question.written_at):
        is_of_here = now.has_folder(path.partition("/")[0]) and (question.claim.kind == "directory" or is_file(name))
    else:
        is_of_here = question.written_at is None and now.has_folder(folder) and is_file(name)
    if not folder or not is_of_here:
        why = "not here; a shallow clone cannot show whether it ever was"
        return unverifiable(question, "incomplete", why, candidates=near)
    if is_ignored_path(world, path, question):
        return unverifiable(question, "ignored", "not there; git ignores such a path, so a build may make it")
    why = "not in this checkout; since when is not known here, because the clone is shallow"
    return gone(question, "not-there", why, candidates=near, rank=CODE)


def unread(question: Question, link: str) -> Verdict:
    """Return the verdict on a path below a submodule or a link, which are not read."""
    return unverifiable(question, "unread", f"behind {link}, a submodule or a link, which was not looked into")


def _mixed_alphabet_note(name: str) -> str:
    """Return a note if a word mixes alphabets whose letters look alike."""
    if name.isascii():
        return ""
    for word in re.findall(r"\w+", name):
        scripts = {unicodedata.name(letter, "").partition(" ")[0].capitalize() for letter in word if letter.isalpha()}
        if len(found := sorted(scripts & {"Latin", "Cyrillic", "Greek"})) > 1:
            return f"; {word} mixes {' and '.join(found)} letters, which look alike"
    return ""


def is_ignored_path(world: World, path: str, question: Question) -> bool:
    if question.claim.kind == "directory":
        path += "/"  # `build/` in .gitignore matches only folders, and git cannot stat this one
    try:
        world.git.run("check-ignore", "-q", "--no-index", "--", path)
    except GitFailed:
        return False
    return True
