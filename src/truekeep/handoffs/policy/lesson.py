"""Decides what a handoff with a correction or a gating policy becomes: a row of its table."""

from __future__ import annotations

from dataclasses import replace

from truekeep.core.errors import BadInput
from truekeep.core.file_io import ChangedSince, UnsafePath
from truekeep.handoffs.policy.decision import Decision, Retry
from truekeep.handoffs.policy.run import PolicyRun
from truekeep.memory.lessons import MAX_CELL_CHARS, Lesson, LessonTable, parse_lesson, plan_row

_WHERE = "Suggested document content"


def decide_lesson(run: PolicyRun, table: LessonTable) -> Decision:
    """Plan the row that a handoff asks for. Agents are shown these tables before they begin, so a person decides."""
    said = parse_lesson(table, run.handoff.document_content)
    if said is None:
        columns = " and ".join(f"`- {table.roles[role][0]}: …`" for role in table.main)
        run.find("unclear-lesson", f"{table.path} takes a list with {columns}", _WHERE)
        return run.decision("review", table.path)
    if any(len(text) > MAX_CELL_CHARS for text in said.values()):
        run.find("unclear-lesson", f"a column has at most {MAX_CELL_CHARS} characters", _WHERE)
        return run.decision("review", table.path)
    run.find("lesson", f"a person decides about rows of {table.path}", "Target document")
    said.pop("number", None)  # the table counts its rows itself
    if "day" not in said and table.word == "correction":
        said["day"] = run.day.isoformat()
    try:
        text = (run.view.read(table.path) or b"").decode()
        planned = plan_row(table, text, said)
    except ChangedSince as error:
        raise Retry(error.path) from error
    except (UnsafePath, UnicodeDecodeError, BadInput) as error:
        what = f"{table.path} is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        run.find("unsafe-target", what, "Target document")
        return run.decision("review", table.path)
    if isinstance(planned, Lesson):
        return run.decision("already", table.path)
    new = text[: planned.offset] + planned.inserted + text[planned.offset :]
    return replace(run.decision("routed", table.path, new.encode()), replaces=True)
