"""Checks claims about cron: crontabs and OpenClaw's jobs of this machine, and crontabs kept in the repository."""

from __future__ import annotations

import re
from collections.abc import Sequence

from truekeep.verify.live_system.cron import CronEntry, list_cron_entries, parse_crontab
from truekeep.verify.options import Options
from truekeep.verify.question import Question
from truekeep.verify.repository import World
from truekeep.verify.verdict import Verdict, changed, confirmed, unverifiable

_KEPT_TABLES = ("crontab", "crontab.txt", "crontab.bak", "crontab.example")
_BLANKS = re.compile(r"\s+")
_OUTPUT = re.compile(r"\s*(?:\d?>>?|2>&1|\|\||&&).*\Z")


def check_cron(world: World, questions: Sequence[Question]) -> dict[int, Verdict | None]:
    """Check schedules and named jobs; of a repository's documents they are no claims."""
    if not questions or world.options.are_documents:
        return dict.fromkeys(map(id, questions))
    kept = [
        entry
        for name in _KEPT_TABLES
        for path in world.now.by_name.get(name, ())
        for entry in parse_crontab((world.now.text(path) or b"").decode("utf-8", "replace"), path)
    ]
    return check_cron_here(world.options, questions, kept)


def check_cron_here(
    options: Options, questions: Sequence[Question], kept: Sequence[CronEntry] = ()
) -> dict[int, Verdict | None]:
    """Check schedules and named jobs on this machine, and in crontabs that are kept as files."""
    if not questions:
        return {}
    here, problem = list_cron_entries() if options.system else ([], "this machine was not asked")
    return {id(question): _judge(question, [*here, *kept], problem) for question in questions}


def _judge(question: Question, entries: Sequence[CronEntry], problem: str) -> Verdict | None:
    claim = question.claim
    if not claim.owner:
        job = next((entry for entry in entries if _is_named(entry, claim.name)), None)
        return confirmed(question, "scheduled", f"in {job.table}: {job.schedule}".rstrip(": ")) if job else None
    same = [entry for entry in entries if _bare(entry.command) == _bare(claim.owner)]
    if found := next((entry for entry in same if entry.schedule == claim.name), None):
        return confirmed(question, "scheduled", f"in {found.table}")
    if same and same[0].schedule:
        return changed(question, "rescheduled", f"{same[0].table} runs it at {same[0].schedule}", same[0].table)
    why = problem or "no crontab of this machine has it; it may be on another machine"
    return unverifiable(question, "no-answer" if problem else "not-on-this-host", why)


def _is_named(entry: CronEntry, name: str) -> bool:
    words = entry.command.lower()
    return name.lower() in (words, words.rpartition(" ")[0], words.rpartition(" ")[2])


def _bare(command: str) -> str:
    """A command without its output, with single blanks."""
    return _BLANKS.sub(" ", _OUTPUT.sub("", command.strip())).strip()
