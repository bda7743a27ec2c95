"""Checks all claims of a run against one repository, with one function per kind of claim.

Lookups are batched (one pass over the repository's facts, one git call), then each claim is checked on its own. Nothing
is confirmed by default, and a claim that cannot be checked is unverifiable, never gone.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from truekeep.core.model import CARDS, INDEX
from truekeep.core.repository import GitFailed
from truekeep.memory.file_scan import is_dated, is_log
from truekeep.verify.bundle_claims import check_bundle
from truekeep.verify.checkout import VerifyTimeout
from truekeep.verify.claim import Claim
from truekeep.verify.claims.patterns import TOOLS, is_file
from truekeep.verify.commit_claims import check_commits
from truekeep.verify.cron_claims import check_cron
from truekeep.verify.decision_claims import check_decision
from truekeep.verify.emptied_folders import excuse_emptied
from truekeep.verify.file_kinds import FileKind, kind_of
from truekeep.verify.git_history import MAX_MERGE_LAG, Commit
from truekeep.verify.hosted_links import HOSTED
from truekeep.verify.line_claims import check_line
from truekeep.verify.link_claims import LINK_REASONS, check_hosted_link, check_link, is_link
from truekeep.verify.module_claims import check_module
from truekeep.verify.own_documents import judge_own
from truekeep.verify.own_settings import firm_settings
from truekeep.verify.package_claims import check_package, check_version
from truekeep.verify.path_claims import check_path, find_place, unknown_path
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.script_claims import check_script
from truekeep.verify.section_links import check_section
from truekeep.verify.siblings import judge_by_siblings
from truekeep.verify.symbol_claims import Symbols
from truekeep.verify.system_claims import check_containers, check_ids, check_ports, check_units, check_urls
from truekeep.verify.tree_claims import TREE_REASONS, check_tree_entry, is_in_tree
from truekeep.verify.verdict import CHANGED, GONE, GONE_BEFORE, MOVED, OF_ITS_DAY, Verdict, unverifiable
from truekeep.verify.workspace_scope import keep_claims_about

_SYMBOLS = ("symbol", "method", "env", "flag")
_MARKED_NAME_ENDINGS = (
    ".rb",
    ".ex",
    ".exs",
    ".cr",
    ".clj",
    ".cljs",
    ".cljc",
)  # languages whose names may end in ? or !
_PATH_OF_ITS_DAY = re.compile(  # files and folders of records and plans
    r"(?:^|/|[-_.])(?:archives?|archived|history|backups?|snapshots?|plans?|proposals?|audits?|incidents?|meetings?"
    r"|receipts?|retros?|post-?mortems?|changelog)(?:/|[-_.])|(?:^|/)(?:daily|journals?|logs?|reports?|sprints?)/"
    r"|(?:^|/)20\d\d-\d\d-\d\d[^/]*\Z|[-_.](?:summary|completed?|report|results?)\.md\Z",
    re.IGNORECASE,
)
_DATED_HEADING = re.compile(  # of a diagnosis, an error, a fix
    r"-(20\d\d-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01]))(?=-)"
)
_ARROW = re.compile(r"[-=]>|→|⇒|➜")
_OFTEN_OF_OTHERS = ("version", "package")  # a workspace tells of many things that it does not contain
_NOT_BY_AGE = (*LINK_REASONS, *TREE_REASONS)  # what they show is not there, whenever the line was written
_SINGLE_CHECKS = {
    "path": check_path,
    "directory": check_path,
    "line": check_line,
    "section": check_section,
    "package": check_package,
    "version": check_version,
    "script": check_script,
    "bundle": check_bundle,
    "decision": check_decision,
}


def judge(world: World, questions: Sequence[Question]) -> list[Verdict | None]:
    """Return a verdict for each question, in order; None for a weak claim that the repository does not know."""
    questions = _own_flags(world, _fix_spelling(world, questions))
    if world.options.are_documents:
        questions = firm_settings(world, questions)
    by_kind = _by_kind(questions)
    found: dict[int, Verdict | None] = {}
    paths = (item.claim.name if item.claim.kind in ("path", "directory") else item.claim.place for item in questions)
    world.learn_aliases(path for path in paths if path.startswith(("/", "~")))
    _load_history(world, questions)
    placed = _with_places(world, questions)
    strangers = [
        new
        for old, new in zip(questions, placed, strict=True)
        if world.is_home and old.claim.place and not new.claim.place
    ]
    questions = placed
    by_kind = _by_kind(questions)
    try:
        found.update(check_commits(world, by_kind["commit"]))
    except GitFailed as error:
        found.update({id(item): _failed(item, error) for item in by_kind["commit"]})
    found.update(check_units(world, by_kind["unit"]))
    found.update(check_ports(world, by_kind["port"]))
    found.update(check_containers(world, by_kind["container"]))
    found.update(check_cron(world, by_kind["cron"]))
    found.update(check_ids(world.options, by_kind["id"]))
    found.update(check_urls(world, by_kind["url"]))
    _prefetch_paths(world, questions)
    found.update(_check_symbols(world, [question for kind in _SYMBOLS for question in by_kind[kind]]))
    if world.options.are_documents:
        found.update(_missing_modules(world, by_kind["method"], found))
    for question in strangers:  # the file that is said to have it is not here, so it is another project's
        why = "its file is not of this repository"
        found[id(question)] = None if question.claim.is_weak else unverifiable(question, "of-others", why)
    for kind, check in _SINGLE_CHECKS.items():
        for question in by_kind[kind]:
            found[id(question)] = _run_check(_check_for(world, question) or check, world, question)
    if world.is_home:
        found = keep_claims_about(world, questions, found)
    if world.options.are_documents:
        found = {id(item): _judge_own(world, item, found.get(id(item))) for item in questions}
        found.update(judge_by_siblings(questions, found))
    verdicts = [_mark_uncommitted(world, _drop_if_past(found.get(id(question)))) for question in questions]
    return [
        _by_age(world, question, excuse_emptied(question, verdict)) if verdict is not None else None
        for question, verdict in zip(questions, verdicts, strict=True)
    ]


def _check_for(world: World, question: Question) -> Callable[[World, Question], Verdict | None] | None:
    """The check of a claim that its form decides more than its kind does."""
    if is_in_tree(question):
        return check_tree_entry
    if question.claim.why == HOSTED and world.options.are_documents:
        return check_hosted_link
    return check_link if is_link(world, question) else None


def _judge_own(world: World, question: Question, verdict: Verdict | None) -> Verdict | None:
    return judge_own(world, question, verdict) if verdict is not None else None


def _by_age(world: World, question: Question, verdict: Verdict) -> Verdict | None:
    """Take an alarm back where the line was written later than the removal, or tells of a day."""
    if verdict.verdict not in (MOVED, GONE, CHANGED) or verdict.reason in _NOT_BY_AGE:
        return verdict
    if world.is_home and question.claim.is_weak and question.claim.kind in _OFTEN_OF_OTHERS:
        return None
    is_log_entry = is_log(question.memory) and not world.options.are_documents
    if is_log_entry or (world.is_home and _tells_of_its_day(question, verdict)):
        why = f"{verdict.why}; a log tells of its day"
        return unverifiable(question, OF_ITS_DAY, why, place=verdict.place if verdict.verdict == MOVED else "")
    written = world.line_dates.written_at(question)
    removed = world.past.time_of(verdict.commit) if verdict.commit else 0
    if written is None or not removed or written <= removed:
        return verdict
    day = time.strftime("%Y-%m-%d", time.gmtime(written))
    why = f"{verdict.why}, before this line was written ({day})"
    if not world.options.are_documents:
        return unverifiable(question, GONE_BEFORE, why)
    if world.line_dates.was_named_before(question, Commit(verdict.commit, removed), world.past.name_then):
        return verdict
    return verdict._replace(reason=GONE_BEFORE, why=why)


def _tells_of_its_day(question: Question, verdict: Verdict) -> bool:
    """Whether a document or line records what was so on a day: a log, an archived file, a plan, a dated entry.

    A dated document tells of its day, too; but of a path that was only renamed, its readers need the new one.
    """
    path = question.memory
    if is_log(path) or _PATH_OF_ITS_DAY.search(path) or question.subject.is_dated:
        return True
    if verdict.verdict == MOVED and _says_new_place(question, verdict):
        return True
    days = [match[1] for match in _DATED_HEADING.finditer(question.subject.entry)]
    if days and (verdict.verdict != MOVED or not (_is_reference(question) or days[-1] < verdict.day)):
        return True  # an entry of the day of a move tells of the move
    is_number = verdict.verdict == MOVED and question.claim.kind == "line" and not path.startswith(f"{CARDS}/")
    if is_number and path != INDEX:
        return True  # in a document, a line number is of the day on which it was written
    return is_dated(path) and (verdict.verdict != MOVED or not _is_reference(question))


def _says_new_place(question: Question, verdict: Verdict) -> bool:
    """Whether the line itself tells where a thing is now."""
    place, text = verdict.place.partition(":")[0], question.subject.text
    folder = place.rpartition("/")[0]
    return place in text or (bool(folder) and folder not in question.claim.name and f"{folder}/" in text)


def _is_reference(question: Question) -> bool:
    """Whether a line sends its readers to a file, and does not tell where one was put."""
    folder, _, name = question.claim.name.rpartition("/")
    return bool(folder) and is_file(name) and _ARROW.search(question.subject.text) is None


def _mark_uncommitted(world: World, verdict: Verdict | None) -> Verdict | None:
    """Mark a move whose new place is not committed, because it may be undone."""
    if verdict is None or verdict.verdict != MOVED or verdict.is_dirty:
        return verdict
    path = verdict.place.partition(":")[0]
    is_open = bool(path) and world.now.has(path) and world.now.is_dirty(path)
    return verdict._replace(is_dirty=True) if is_open else verdict


def _drop_if_past(verdict: Verdict | None) -> Verdict | None:
    """Drop a moved or gone verdict if the sentence itself may say that the thing was removed."""
    return None if verdict is not None and verdict.is_rot and verdict.claim.may_be_past else verdict


def _by_kind(questions: Sequence[Question]) -> dict[str, list[Question]]:
    by_kind: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        by_kind[question.claim.kind].append(question)
    return by_kind


def _with_places(world: World, questions: Sequence[Question]) -> Sequence[Question]:
    """Drop the file of a symbol claim if this repository never had it: it may be another project's."""

    def check(question: Question) -> Question:
        claim = question.claim
        if not claim.place or claim.kind not in _SYMBOLS:
            return question
        try:
            place = find_place(world, claim.place, question)
            is_known = claim.place in world.now.deleted or place is not None
            if place is not None and kind_of(place.path or claim.place) is FileKind.DOCUMENT:
                is_known = False  # a document defines nothing
        except (VerifyTimeout, GitFailed):
            return question
        return question if is_known else question._replace(claim=claim._replace(place="", is_definite=False))

    return [check(question) for question in questions]


def _fix_spelling(world: World, questions: Sequence[Question]) -> Sequence[Question]:
    """Strip ? and ! where they are not part of the name: `valid?` is a name in Ruby, `vec!` is `vec` in Rust."""
    odd = {question.claim.name for question in questions if question.claim.name.endswith(("?", "!"))}
    if not odd:
        return questions
    try:
        known = world.now.defining({*odd, *(name.rstrip("?!") for name in odd)})
    except VerifyTimeout:
        return questions
    has_marked_names = any(path.endswith(_MARKED_NAME_ENDINGS) for path in world.now.paths)

    def spell(question: Question) -> Question:
        name, bare = question.claim.name, question.claim.name.rstrip("?!")
        if name not in odd or known[name] or (has_marked_names and not known[bare]):
            return question
        return question._replace(claim=question.claim._replace(name=bare))

    return [spell(question) for question in questions]


def _own_flags(world: World, questions: Sequence[Question]) -> Sequence[Question]:
    """In documents, a flag of a program that is made here is surely one of this repository."""
    if not world.options.are_documents:
        return questions

    def firm(question: Question) -> Question:
        claim = question.claim
        is_own = claim.kind == "flag" and claim.is_weak and claim.owner.lower() in world.products
        return question._replace(claim=claim._replace(is_weak=False)) if is_own else question

    return [firm(question) for question in questions]


def _load_history(world: World, questions: Sequence[Question]) -> None:
    """Load the rename records once, back to the oldest date that a path needs."""
    needed = [
        question.written_at
        for question in questions
        if question.claim.kind in ("path", "directory", "line") or question.claim.place
    ]
    if needed:
        days = [at for at in needed if at is not None]
        try:
            world.past.load(max(0, min(days) - MAX_MERGE_LAG) if days and len(days) == len(needed) else 0)
        except VerifyTimeout:
            return


def _prefetch_paths(world: World, questions: Sequence[Question]) -> None:
    """Look up, in one git call, the last commits of all paths that are not found yet."""
    try:
        world.prefetch_last_commits([name for question in questions if (name := unknown_path(world, question))])
    except VerifyTimeout:
        return


def _check_symbols(world: World, questions: list[Question]) -> dict[int, Verdict | None]:
    questions = [question for question in questions if not _belongs_to_other_tool(world, question.claim)]
    if not questions:
        return {}
    found: dict[int, Verdict | None] = {}
    missing = []
    try:
        symbols = Symbols(world, questions)
        for question in questions:
            claim = question.claim
            is_symbol = claim.kind in ("symbol", "method") or (claim.kind == "env" and claim.place)
            verdict = symbols.check_now(question) if is_symbol else None
            if verdict is None:
                missing.append(question)
            else:
                found[id(question)] = verdict
        symbols.find_words(missing)
        for question in missing:
            if symbols.is_word(question.claim) and (verdict := symbols.check_word(question)) is not None:
                found[id(question)] = verdict
        missing = [question for question in missing if id(question) not in found]
        symbols.prepare_past(missing)
    except (VerifyTimeout, GitFailed) as error:
        return {id(item): found.get(id(item)) or _failed(item, error) for item in questions}
    for question in missing:
        try:
            found[id(question)] = symbols.check_past(question)
        except (VerifyTimeout, GitFailed) as error:
            found[id(question)] = _failed(question, error)
    return found


def _missing_modules(
    world: World, questions: Sequence[Question], found: Mapping[int, Verdict | None]
) -> dict[int, Verdict | None]:
    """Imports of modules that are not here, whatever became of the name that is imported."""
    asked = [item for item in questions if (known := found.get(id(item))) is None or known.verdict != GONE]
    answers = {id(item): check_module(world, item) for item in asked}
    return {number: verdict for number, verdict in answers.items() if verdict is not None}


def _belongs_to_other_tool(world: World, claim: Claim) -> bool:
    """Whether a flag belongs to a common tool that this repository does not build."""
    tool = claim.owner.lower()
    return claim.kind == "flag" and tool in TOOLS and tool not in world.products


def _run_check(check: object, world: World, question: Question) -> Verdict | None:
    assert callable(check)
    try:
        verdict: Verdict | None = check(world, question)
    except (VerifyTimeout, GitFailed) as error:
        return _failed(question, error)
    return verdict


def _failed(question: Question, error: VerifyTimeout | GitFailed) -> Verdict:
    if isinstance(error, GitFailed):
        return unverifiable(question, "git-failed", str(error))
    return unverifiable(question, "out-of-time", "not found before the time limit")
