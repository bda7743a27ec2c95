"""Runs a check: choose documents, verify them against the checkout, keep what is reported, plan the repairs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from truekeep.check.alarm import REPORTED, SURE_REASONS, UNCERTAIN_KINDS, FalseClaim, is_reported, rate
from truekeep.check.baseline import read_baseline, without_known
from truekeep.check.change import CodeChange, read_change
from truekeep.check.documents import find_documents
from truekeep.check.families import find_doubtful, find_removed_together, is_about_this_tree
from truekeep.check.inline_ignores import find_ignored_lines
from truekeep.check.records import is_record
from truekeep.check.settings import HIGH, LOW, MEDIUM, CheckSettings
from truekeep.check.told_as_past import is_planned, is_planned_line, is_told_as_past, titles_above
from truekeep.core.errors import BadInput
from truekeep.core.file_io import read_regular, write_whole
from truekeep.core.git import Git
from truekeep.verify.claim import Claim
from truekeep.verify.claims.inline_code import SETTING
from truekeep.verify.claims.trees import IN_TREE
from truekeep.verify.memory_reader import MAX_FILE_BYTES, read_memory
from truekeep.verify.options import Options
from truekeep.verify.repository import World
from truekeep.verify.results import CheckedMemory, MemoryText, count_verdicts
from truekeep.verify.standalone import open_facts
from truekeep.verify.text_edits import TextEdit, plan_repairs
from truekeep.verify.verdict import GONE, MOVED, Verdict
from truekeep.verify.verifier import Verifier

_MAY_BE_SURE = ("package", "commit", "port")  # uncertain kinds of which some claims are sure
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What to check, and how."""

    top: Path  # of the repository
    settings: CheckSettings
    named: Sequence[str] = ()
    since: str = ""  # report only what changed since this commit caused
    is_baseline_used: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What a check found."""

    repository: str
    head: str
    files: int
    claims: int
    counts: dict[str, int]  # of claims by verdict
    alarms: tuple[FalseClaim, ...]
    known: int = 0  # alarms that the baseline has
    ignored: int = 0  # alarms that comments and settings leave out
    less_certain: int = 0  # alarms below the confidence that is reported
    unread: tuple[str, ...] = ()  # files that are no readable text
    missing: str = ""  # "shallow" or "partial", if the clone lacks history
    base: str = ""  # of the change

    @property
    def is_unchecked(self) -> bool:
        """Whether there was something to check and none of it could be."""
        if not self.files:
            return bool(self.unread)
        return self.claims > 0 and self.counts["unverifiable"] == self.claims


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The alarms of one document by what becomes of them."""

    reported: tuple[tuple[FalseClaim, Verdict], ...]
    ignored: int
    less_certain: int


def run_check(
    request: CheckRequest, *, memory: Sequence[CheckedMemory] = (), progress: Progress = lambda *_: None
) -> CheckReport:
    """Check documents. `memory`: cards about this repository that were checked already, for --since."""
    store = open_facts()
    try:
        verifier = Verifier(store, [], options=Options(system=False, are_documents=True), reuse=True)
        git = Git(str(request.top))
        paths = find_documents(git, request.top, request.named, request.settings)
        world = verifier.open(str(request.top))
        change = read_change(git, world.now, request.since) if request.since else None
        if change is not None:
            world.past.search_only(change.base, change.base_at)
        texts, unread = _read(request.top, paths, change)
        places = {text.path: _inside(text.path, request.top) for text in texts}

        def is_asked(text: MemoryText, claim: Claim) -> bool:
            return _is_reportable(claim, request.settings) and (
                change is None or claim.why == SETTING or change.concerns(places[text.path], claim)
            )

        def lines_asked(text: MemoryText) -> set[int] | None:
            return change.lines_of(places[text.path], text.text) if change is not None else None

        checked = verifier.check(
            texts, root=str(request.top), keep=False, progress=progress, is_asked=is_asked, lines_asked=lines_asked
        )
        return _report(request, world, change, texts, checked, memory, unread)
    finally:
        store.close()


def _inside(path: str, top: Path) -> str:
    return os.path.relpath(os.path.realpath(path), os.path.realpath(top))


def _is_reportable(claim: Claim, settings: CheckSettings) -> bool:
    """Whether an alarm about this claim could be reported at all; others need not be checked."""
    if settings.kinds and claim.kind not in settings.kinds:
        return False
    is_least = claim.kind == "version" and claim.name.startswith(">=")
    return settings.confidence == LOW or claim.kind not in UNCERTAIN_KINDS or claim.kind in _MAY_BE_SURE or is_least


def _read(top: Path, paths: Sequence[str], change: CodeChange | None) -> tuple[list[MemoryText], list[str]]:
    texts, unread = [], []
    for path in paths:
        location = os.path.join(top, path)
        if change is not None:
            try:
                data = read_regular(location, follow=False)
            except OSError:
                continue
            if len(data) <= MAX_FILE_BYTES and not change.may_concern(path, data):
                continue
        text = read_memory(location, os.path.relpath(location))
        if text is None:
            unread.append(path)
        else:
            texts.append(text._replace(origin=text.origin._replace(repository="")))
    return texts, unread


def _report(
    request: CheckRequest,
    world: World,
    change: CodeChange | None,
    texts: Sequence[MemoryText],
    checked: Sequence[CheckedMemory],
    memory: Sequence[CheckedMemory],
    unread: Sequence[str],
) -> CheckReport:
    alarms: list[FalseClaim] = []
    ignored = less_certain = 0
    places = [_inside(item.path, request.top) for item in checked]
    judged = [(path, item.verdicts) for path, item in zip(places, checked, strict=True)]
    doubtful = find_doubtful(judged, is_site=world.has_site_generator)
    for path, text, item in zip(places, texts, checked, strict=True):
        found = _alarms(path, text.text, item.verdicts, request.settings, change, doubtful)
        alarms += [alarm for alarm, _ in found.reported]
        ignored, less_certain = ignored + found.ignored, less_certain + found.less_certain
    for item in memory:
        found = _alarms(item.path, "", item.verdicts, request.settings, change)
        alarms += [replace(alarm, is_memory=True) for alarm, _ in found.reported]
    known = 0
    if request.settings.baseline and request.is_baseline_used:
        shown = request.settings.baseline
        new = without_known(alarms, read_baseline(request.top / shown, shown))
        known, alarms = len(alarms) - len(new), new
    counts = count_verdicts(checked)
    return CheckReport(
        repository=world.name,
        head=world.now.state.head,
        files=len(texts),
        claims=sum(len(item.verdicts) for item in checked),
        counts=dict(counts),
        alarms=tuple(alarms),
        known=known,
        ignored=ignored,
        less_certain=less_certain,
        unread=tuple(unread),
        missing=world.now.state.missing,
        base=change.base if change is not None else "",
    )


def _alarms(
    path: str,
    text: str,
    verdicts: Sequence[Verdict],
    settings: CheckSettings,
    change: CodeChange | None,
    doubtful: Collection[int] = (),
) -> _Found:
    lines = find_ignored_lines(text)
    written = text.split("\n")
    is_of_its_day = bool(text) and is_record(path, text)
    rotten, unsure = list[Verdict](), set[int]()
    for verdict in verdicts:
        shown = change.caused(path, verdict) if change is not None else verdict
        if shown is not None and shown.verdict in REPORTED:
            rotten.append(shown)
            unsure |= {id(shown)} if id(verdict) in doubtful else set()
    removed_together, is_about_here = find_removed_together(rotten), is_about_this_tree(verdicts)
    edits = {id(edit.verdict): edit for edit in _plan(path, text, rotten)}
    titles = titles_above(text) if rotten else []
    reported: list[tuple[FalseClaim, Verdict]] = []
    ignored = less_certain = 0
    for verdict in rotten:
        claim = verdict.claim
        if not _is_reportable(claim, settings):
            continue  # of a card: all of its claims were checked
        if lines.has(claim.line) or any(fnmatchcase(claim.text, pattern) for pattern in settings.ignore):
            ignored += 1
            continue
        # What a change takes away was there when an older line was written, under whatever heading.
        is_older = change is not None and claim.line not in change.added_lines.get(path, ())
        above = () if is_older or claim.line > len(titles) else titles[claim.line - 1]
        is_told = verdict.reason not in SURE_REASONS and is_told_as_past(written, claim, above)
        is_past = is_of_its_day or is_told
        is_to_come = is_planned(above) or is_planned_line(written, claim)
        confidence = rate(
            path,
            verdict,
            is_past=is_past,
            is_planned=is_to_come,
            is_about_here=is_about_here,
            is_of_removed_feature=verdict.verdict == GONE and verdict.commit in removed_together,
        )
        if confidence == HIGH and id(verdict) in unsure:
            confidence = MEDIUM
        if not is_reported(confidence, settings.confidence):
            less_certain += 1
            continue
        edit = edits.get(id(verdict))
        alarm = FalseClaim(
            path=path,
            line=claim.line,
            column=claim.column,
            end_column=claim.column + claim.end - claim.start,
            kind=claim.kind,
            verdict=verdict.verdict,
            claim=claim.shown,
            why=verdict.why,
            confidence=confidence,
            replacement=edit.new if edit is not None else "",
        )
        reported.append((alarm, verdict))
    return _Found(reported=tuple(reported), ignored=ignored, less_certain=less_certain)


def _plan(path: str, text: str, verdicts: Sequence[Verdict]) -> list[TextEdit]:
    """The repairs of a document. Its author sees the work tree, so an uncommitted move counts as well."""
    plain = [verdict._replace(is_dirty=False) if verdict.is_dirty else verdict for verdict in verdicts]
    back = {id(new): old for new, old in zip(plain, verdicts, strict=True)}
    edits = []
    for edit in plan_repairs(text, plain):
        verdict = back[id(edit.verdict)]
        new = edit.new
        if (edit.start, edit.end) != (verdict.claim.start, verdict.claim.end) or verdict.claim.why == IN_TREE:
            continue  # the path beside a symbol that moved, or one entry of a drawn tree
        if verdict.claim.why == "a link" and verdict.verdict == MOVED:
            new = os.path.relpath(verdict.place, os.path.dirname(path) or ".")
        edits.append(edit._replace(verdict=verdict, new=new))
    return edits


def write_repairs(top: Path, alarms: Sequence[FalseClaim]) -> Iterator[tuple[str, int]]:
    """Write the new places into the documents of the work tree; gives each file and how many places changed in it."""
    by_path: dict[str, list[FalseClaim]] = {}
    for alarm in alarms:
        if alarm.replacement and not alarm.is_memory:
            by_path.setdefault(alarm.path, []).append(alarm)
    for path, some in by_path.items():
        location = top / path
        text = read_regular(location, follow=False).decode("utf-8", "surrogateescape")
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        edited = _replace_claims(text.removeprefix(mark), some)
        if edited is None:
            raise BadInput(f"{path} changed while it was checked", hint="run it again; nothing was written to it")
        write_whole(location, (mark + edited).encode("utf-8", "surrogateescape"), mode=location.stat().st_mode & 0o777)
        yield path, len(some)


def _replace_claims(text: str, alarms: Sequence[FalseClaim]) -> str | None:
    lines = text.split("\n")
    for alarm in sorted(alarms, key=lambda alarm: (alarm.line, alarm.column), reverse=True):
        line = lines[alarm.line - 1] if alarm.line <= len(lines) else ""
        start = alarm.column - 1
        end = alarm.end_column - 1
        if not line[start:end] or line[start:end] not in alarm.claim:
            return None
        lines[alarm.line - 1] = line[:start] + alarm.replacement + line[end:]
    return "\n".join(lines)
