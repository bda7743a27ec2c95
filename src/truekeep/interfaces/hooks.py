"""The hooks' door: what a harness calls at the start of a session, at each prompt, before compaction, at its end.

Never breaks the harness: whatever goes wrong is silence, exit 0, and a line in the log. Does the least at once and
leaves the rest to a process of its own. Reads the harness's JSON from standard input; any of it may be missing, and
none of it is trusted further than a path or a name has to be.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truekeep.core.errors import Busy, TruekeepError
from truekeep.core.machine import machine_name, own_state
from truekeep.core.model import BEGIN_MARK, END_MARK, WRITERS
from truekeep.sessions import session_record

if TYPE_CHECKING:
    from truekeep.workspace.workspace import Workspace

MOST_INPUT = 8 << 20
RESERVE_FLOOR, SOFT_THRESHOLD = 20_000, 4_000  # tokens: when memory is to be saved before a compaction
_LOG = "hooks.log"
_STARTED_BY_OPENCLAW = ("OPENCLAW_CLI", "OPENCLAW_MCP_TOKEN")  # which its gateway gives to every program that it runs


class HookCall(NamedTuple):
    """One call of a hook, as far as it can be understood."""

    event: str
    harness: str
    payload: Mapping[str, Any]
    workspace: str  # empty: the default one

    def text(self, key: str) -> str:
        value = self.payload.get(key)
        return value if isinstance(value, str) else ""

    @property
    def session_id(self) -> str:
        return self.text("session_id") or "unknown"

    @property
    def is_named(self) -> bool:
        """Whether it can be told from other sessions. A key of OpenClaw's is shared by all that follow each other."""
        name = self.text("session_id")
        return bool(name) and not name.startswith("agent:")

    @property
    def cwd(self) -> str:
        return self.text("cwd") or os.getcwd()


class HookTimeout(BaseException):
    """The harness does not wait any longer. No failure that a step may swallow."""


def main(arguments: Sequence[str]) -> int:
    """Run a hook. Always 0: no harness ever fails because of its memory."""
    started = time.monotonic()
    event, workspace, harness = _parse(arguments)
    seconds, answer = EVENTS.get(event, (0.0, None))
    command = ""  # until the input was read: what a harness sends may be anything
    try:
        if answer is None:
            _note(workspace, f"{event or 'nothing'}: there is no such hook")
            return 0
        with suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGALRM, _late)
            signal.setitimer(signal.ITIMER_REAL, seconds)
        payload = _read_payload()
        command = f"hook {event}"
        call = HookCall(event, harness or _harness(payload), payload, workspace)
        text = "" if _is_not_ours(call) else answer(call)
        _note_missing(call)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if text and _may_see_memory(call):
            sys.stdout.write(text)
            sys.stdout.flush()
    except HookTimeout:
        _note(workspace, f"{event}: out of time after {time.monotonic() - started:.1f} s")
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is not the harness's
        with suppress(BaseException):
            _note(workspace, f"{event}: {_story(error, command)}")
    finally:
        with suppress(BaseException):
            signal.setitimer(signal.ITIMER_REAL, 0)
    return 0


def _parse(arguments: Sequence[str]) -> tuple[str, str, str]:
    """The event, the workspace and the harness, in any order. What is not understood is passed over."""
    found = {"event": "", "-w": "", "--for": ""}
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        name = "-w" if name == "--workspace" else name
        if name in ("-w", "--for"):
            found[name] = value if has_value else next(words, "")
        elif word.startswith("-w"):
            found["-w"] = word[2:]
        elif not word.startswith("-"):
            found["event"] = found["event"] or word
    return found["event"], found["-w"], found["--for"]


def _late(*_: object) -> None:
    raise HookTimeout


def _story(error: BaseException, command: str) -> str:
    """What went wrong and where, without the message of a bug: it could quote memory. A bug is noted as one, too."""
    from truekeep.core.bugs import is_bug, note_bug

    if isinstance(error, TruekeepError):
        return f"{error.code}: {error.message}"
    if command and is_bug(error):
        note_bug(error, command)
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f" in {os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}" if place else ""
    return f"{type(error).__name__}{where}"


def _note(workspace: str, line: str) -> None:
    """A line in the log of the workspace, else in this machine's own."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = ""
    with suppress(TruekeepError):  # what was chosen cannot be told, and that is what is noted
        state = os.path.join(_chosen(workspace), ".truekeep")
    if not os.path.isdir(state):
        state = own_state()
    from truekeep.core.state_dir import append_line

    append_line(os.path.join(state, "logs"), _LOG, f"{stamp} {' '.join(line.split())[:400]}")


def _note_missing(call: HookCall) -> None:
    """A workspace that was chosen and is not there. Where none was, most machines have none."""
    path = _chosen(call.workspace)
    if os.path.isdir(os.path.join(path, ".truekeep")):
        return
    from truekeep.core.default_workspace import find_chosen

    if call.workspace or find_chosen():
        _note(call.workspace, f"{call.event}: there is no workspace at {path}")


# --- What was said to us ---------------------------------------------------------------------------------------------


def _read_payload() -> dict[str, Any]:
    if sys.stdin is None or sys.stdin.isatty():
        return {}
    raw = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(raw) > MOST_INPUT:
        raise ValueError("too much input")
    if not raw.strip():
        return {}
    found = json.loads(raw.decode("utf-8", "replace"))
    return found if isinstance(found, dict) else {}


def _harness(payload: Mapping[str, Any]) -> str:
    """Which harness calls: one bundle serves them all, so the command cannot tell."""
    transcript = payload.get("transcript_path")
    if isinstance(transcript, str) and os.path.basename(transcript).startswith("rollout-"):
        return "codex"
    if "CLAUDECODE" in os.environ or "CLAUDE_CODE_SESSION_ID" in os.environ:
        return "claude"
    if "turn_id" in payload or (isinstance(transcript, str) and f"{os.sep}sessions{os.sep}" in transcript):
        return "codex"
    return "claude"


def _is_not_ours(call: HookCall) -> bool:
    """Sub-agents, and Codex's own consolidation, which runs inside its folder and has no transcript.

    Whatever the harness was taken for: at its start Codex says nothing that Claude Code would not, except that no other
    harness ever says that there is no transcript.
    """
    if call.payload.get("agent_id") or call.payload.get("agent_type") == "subagent":
        return True
    if "transcript_path" in call.payload and call.payload["transcript_path"] is None:
        return True
    home = os.path.realpath(os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex"))
    return os.path.realpath(call.cwd).startswith(home + os.sep) or os.path.realpath(call.cwd) == home


def _may_see_memory(call: HookCall) -> bool:
    """Return whether this session may be shown memory: of OpenClaw's, only the main private one.

    OpenClaw also runs Claude Code and Codex for its sessions, groups included, and their hooks do not know for which.
    """
    is_openclaw = call.harness == "openclaw" or any(name in os.environ for name in _STARTED_BY_OPENCLAW)
    return not is_openclaw or _is_main_session(call)


def _is_main_session(call: HookCall) -> bool:
    """Return whether this is surely the main private session of OpenClaw's owner; any doubt is a no.

    The handler sends what the gateway's configuration says about access. One that an older truekeep installed does
    not, so the configuration file is read here.
    """
    key = call.text("session_key")
    if not key.endswith(":main"):
        return False
    from truekeep.core.harness_files import UnreadableHarnessFile
    from truekeep.core.harness_paths import find_homes
    from truekeep.core.openclaw_config import is_main_private_session, read_config

    homes, access = find_homes(), call.payload.get("access")
    try:
        config = read_config(homes) if "access" not in call.payload else access
    except UnreadableHarnessFile:
        return False
    return isinstance(config, dict) and is_main_private_session(config, key, homes)


# --- Events ----------------------------------------------------------------------------------------------------------


def _session_start(call: HookCall) -> str:
    """The brief, unless this session has it already."""
    from zlib import crc32

    source = call.text("source")
    record = session_record.from_here(_record(call)) if source in ("resume", "fork") else _record(call)
    text = _brief(call, record)
    digest = f"{crc32(text.encode()):08x}" if text else ""
    is_known = source == "resume" and digest == record.brief
    _keep(call, record._replace(brief=digest, is_flushed=False))
    if source == "compact" and call.harness == "codex":
        text += _after_compaction(record)
    return "" if is_known else text


def _after_compaction(record: session_record.SessionRecord) -> str:
    """For harnesses that let nobody hear it before."""
    if not record.has_work or record.is_closed:
        return ""
    return _marked("compact", f"The context was shortened. {_what_is_left(record)}")


def _brief(call: HookCall, record: session_record.SessionRecord) -> str:
    workspace = _open(call) if _may_see_memory(call) else None
    if workspace is None:
        return ""
    if not any(os.path.exists(workspace.path / ".truekeep" / name) for name in ("index.sqlite", "index.lock")):
        _start_later(call)  # for the next session; where a run was ever begun, it is not begun from here again
    with workspace:
        root = Path(record.root) if record.root else None
        return workspace.sessions.wake(root, harness=call.harness).text


def _bootstrap(call: HookCall) -> str:
    """OpenClaw's way in: the brief as a file of its own. It comes for this with every turn, so it is looked at here."""
    record = _look(call)
    text = _brief(call, record) + (_after_compaction(record) if record.is_flushed else "")
    _keep(call, record._replace(is_flushed=False))
    return text


def _prompt(call: HookCall) -> str:
    """Up to three cards that this prompt needs, when that is sure; for Codex, what to save while there is room."""
    return _hint(call) + (_flush(call) if call.harness == "codex" else "")


def _hint(call: HookCall) -> str:
    prompt = _own_words(call.text("prompt"))
    workspace = _open(call) if len(prompt) > 12 and not prompt.startswith("<task-notification>") else None
    if workspace is None:
        return ""
    record = _record(call)
    with workspace:
        root = Path(record.root) if record.root else None
        text, told = workspace.sessions.hint(prompt, repository=record.repository, told=record.told, root=root)
    if told:
        _keep(call, record._replace(told=(*record.told, *told)[-200:]))
    return text


def _own_words(prompt: str) -> str:
    """A prompt without what truekeep itself put into it: from a mark to its end, both included.

    A mark without an end begins a text of ours that was cut off, if it stands at the beginning of a line; else someone
    speaks of it.
    """
    begin, end = re.escape(BEGIN_MARK), re.escape(END_MARK)
    prompt = re.sub(rf"{begin} ([\w-]+) -->.*?{end} \1 -->", " ", prompt, flags=re.DOTALL)
    return re.sub(rf"^{begin} [\w-]+ -->.*", "", prompt, flags=re.DOTALL | re.MULTILINE).strip()


def _flush(call: HookCall) -> str:
    """Codex counts its tokens, and tells no model that a compaction comes: say it once, while there is room."""
    from truekeep.sessions import session_activity

    record = _record(call)
    used, window = session_activity.tokens_of(record.transcript)
    if record.is_flushed or not 0 < window - RESERVE_FLOOR - SOFT_THRESHOLD <= used:
        return ""
    record = _look(call)._replace(is_flushed=True)
    _keep(call, record)
    return _marked(
        "compact", f"{used} of {window} tokens are used: the context is shortened soon. {_what_is_left(record)}"
    )


def _pre_compact(call: HookCall) -> str:
    """What to keep before the context goes; once for each compaction."""
    record = _look(call)
    _keep(call, record._replace(is_flushed=True))
    if record.is_flushed or call.harness != "claude":
        return ""  # the others show this to no model; the session hears of it when it goes on
    return _marked(
        "compact",
        "The context is about to be shortened. Worth keeping in the summary: decisions with their reasons, what was\n"
        f"tried and failed, exact names of files, flags and ports, and what comes next. {_what_is_left(record)}",
    )


def _what_is_left(record: session_record.SessionRecord) -> str:
    left = "A checkpoint was left in this session" if record.has_checkpoint else "No handoff was left yet"
    if record.handoffs:
        left = f"This session left {record.handoffs} handoff{'' if record.handoffs == 1 else 's'}"
    return (
        f"{left}.\nWhat outlasts the session belongs in a handoff: `{_command(record)}`;\n"
        "where the work stands: `truekeep checkpoint`."
    )


def _marked(what: str, text: str) -> str:
    return f"{BEGIN_MARK} {what} -->\n{text}\n{END_MARK} {what} -->\n"


def _stop(call: HookCall) -> str:
    """Say once that nothing was left, if real work was done."""
    record = _look(call)
    is_due = record.has_work and not record.is_closed and not record.is_reminded
    is_due = is_due and call.payload.get("stop_hook_active") is not True and bool(record.root) and call.is_named
    _keep(call, record._replace(is_reminded=record.is_reminded or is_due))
    if not is_due:
        return ""
    reason = (
        f"{BEGIN_MARK} closeout --> This session made {record.work} and left no memory handoff. If it produced "
        f"knowledge that outlasts it, this leaves one: {_command(record)} . If it did not, nothing more is needed. "
        f"{END_MARK} closeout -->"
    )
    return json.dumps({"decision": "block", "reason": reason}) + "\n"


def _command(record: session_record.SessionRecord) -> str:
    writer = f" --writer {record.harness}" if record.harness in ("claude", "codex") else ""
    return f"truekeep handoff new{writer} --type setup --title '...' --summary '...' --fact '...' --card NAME.md"


def _session_end(call: HookCall) -> str:
    """Note it and leave; the work is done by a process that nobody waits for."""
    record = _look(call)
    _keep(call, record._replace(ended_at=time.time()))
    _start_later(call)
    return ""


def _start_later(call: HookCall) -> None:
    """Begin the work that can wait, away from the harness."""
    if os.environ.get("TRUEKEEP_NO_BACKGROUND"):
        return
    from truekeep.core import child_process

    named = ("-w", os.path.abspath(os.path.expanduser(call.workspace))) if call.workspace else ()
    child_process.start("hook", "later", "--for", call.harness, *named)


def _later(call: HookCall) -> str:
    """What a session's end leaves to be done: transcripts kept, the index and the verdicts brought up to date."""
    with suppress(OSError):
        os.nice(10)
    workspace = _open(call)
    session_record.prune_records(time.time())
    if workspace is None:
        from truekeep.workspace import producer

        producer.sync_transcripts(force=False)
        return ""
    with workspace:
        for what, step in (
            ("transcripts", lambda: workspace.sessions.sync_transcripts()),
            ("index", lambda: workspace.search.index(wait=0.0)),
            ("verify", lambda: workspace.verification.verify(changed=True, system=False)),
        ):
            try:
                step()
            except Busy:
                pass  # whoever is at it already does the same
            except Exception as error:  # noqa: BLE001 - one that fails does not stop the next
                _note(call.workspace, f"later, {what}: {_story(error, f'hook later, {what}')}")
    return ""


# --- Where we are ----------------------------------------------------------------------------------------------------


def _record(call: HookCall) -> session_record.SessionRecord:
    """What is known of this session, from its beginning."""
    known = session_record.read_record(call.harness, call.session_id)
    if known is not None:
        return known
    from truekeep.core.git import find_top, repository_name

    transcript = call.text("transcript_path")
    if call.harness == "openclaw" and not transcript:
        transcript = _openclaw_transcript(call)
    top = find_top(Path(call.cwd)) if os.path.isdir(call.cwd) else None
    return session_record.begin(
        call.harness,
        call.session_id,
        root=str(top) if top else "",
        repository=repository_name(top) if top else "",
        transcript=transcript,
        machine=machine_name(),
        is_underway=call.text("source") not in ("startup", "clear", "resume", "fork"),
    )


def _openclaw_transcript(call: HookCall) -> str:
    from truekeep.sessions.session_activity import find_openclaw

    return find_openclaw(call.text("session_id"), call.text("session_key"))


def _keep(call: HookCall, record: session_record.SessionRecord) -> None:
    """Note it, if it can be told from other sessions."""
    if call.is_named:
        session_record.write_record(record)


def _look(call: HookCall) -> session_record.SessionRecord:
    """What this session did until now.

    Its handoffs are in its harness's own inbox, of the repository or of the workspace; those of others are not its.
    OpenClaw has no inbox, and uses any.
    """
    record = _record(call)
    if call.harness == "openclaw" and not record.transcript:
        record = record._replace(transcript=_openclaw_transcript(call))  # it is written after the first turn
    roots = dict.fromkeys(root for root in (record.root, _chosen(call.workspace)) if root)
    inboxes = (WRITERS[record.harness],) if record.harness in WRITERS else tuple(WRITERS.values())
    return session_record.look_again(record, [os.path.join(root, inbox) for root in roots for inbox in inboxes])


def _chosen(workspace: str) -> str:
    if named := workspace or os.environ.get("TRUEKEEP_WORKSPACE"):
        return os.path.expanduser(named)
    from truekeep.core.default_workspace import find_workspace

    return find_workspace()


def _open(call: HookCall) -> Workspace | None:
    """The workspace, if there is one on this machine."""
    from truekeep.workspace.workspace import Workspace

    path = Path(_chosen(call.workspace))
    return Workspace.open(path) if (path / ".truekeep").is_dir() else None


EVENTS: dict[str, tuple[float, Callable[[HookCall], str]]] = {  # seconds until we give up, and what answers
    "session-start": (6.0, _session_start),
    "agent-bootstrap": (6.0, _bootstrap),
    "user-prompt-submit": (3.0, _prompt),
    "pre-compact": (4.0, _pre_compact),
    "stop": (4.0, _stop),
    "session-end": (0.9, _session_end),
    "later": (900.0, _later),
}
