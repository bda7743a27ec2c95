"""Session files of three harnesses become dialogue: speech only, nothing secret or unseen, whatever the file holds."""

from __future__ import annotations

import json
import os
import random
import string
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.counting import assert_about_linear
from truekeep.core.errors import BadInput
from truekeep.core.file_io import UnsafePath
from truekeep.core.model import BEGIN_MARK, END_MARK
from truekeep.text.secrets.scanner import find_secrets
from truekeep.text.unicode import is_plain, strip_hidden
from truekeep.transcripts.locations import TranscriptFile, find_transcripts, is_own_housekeeping
from truekeep.transcripts.parser import Turn, iter_dialogue, iter_turns
from truekeep.transcripts.session_file import HARNESSES, HEAD, MAX_LINE, Session, read_lines, read_session

AT = "2026-11-15T10:20:30.456Z"
SESSION_ID = "5e551011-aaaa-4bbb-8ccc-0123456789ab"
HARNESS = pytest.mark.parametrize("harness", HARNESSES)


def a_token(seed: int = 1) -> str:
    """Drawn when the test runs: push protection of code hosts reads tests too."""
    draw = random.Random(seed)
    return "ghp_" + "".join(draw.choice(string.ascii_letters + string.digits) for _ in range(36))


def claude(role: str, content: object, **more: object) -> dict[str, Any]:
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/me/app",
        "sessionId": SESSION_ID,
        "version": "2.1.325",
        "gitBranch": "main",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": "0b7e0000-0000-4000-8000-000000000001",
        "timestamp": AT,
        **more,
    }


def codex(role: str, *texts: str, kind: str = "", **more: object) -> dict[str, Any]:
    kind = kind or ("output_text" if role == "assistant" else "input_text")
    content = [{"type": kind, "text": text} for text in texts]
    return {
        "timestamp": AT,
        "type": "response_item",
        "payload": {"type": "message", "role": role, "content": content, **more},
    }


def openclaw(role: str, content: object, **more: object) -> dict[str, Any]:
    message = {"role": role, "content": content, "timestamp": 1794738030456, **more}
    return {"type": "message", "id": "a1b2c3d4", "parentId": "00000000", "timestamp": AT, "message": message}


def said(harness: str, role: str, text: str) -> dict[str, Any]:
    """The row that a harness writes when someone speaks."""
    if harness == "claude":
        return claude(role, text if role == "user" else [{"type": "text", "text": text}])
    return codex(role, text) if harness == "codex" else openclaw(role, [{"type": "text", "text": text}])


def lines_of(*rows: object) -> list[bytes]:
    return [row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows]


def turns_of(harness: str, *rows: object) -> list[Turn]:
    return list(iter_turns(lines_of(*rows), harness))


def texts_of(harness: str, *rows: object) -> list[str]:
    return [turn.text for turn in turns_of(harness, *rows)]


# --- What counts as dialogue ----------------------------------------------------------------------------------------


def test_a_claude_session() -> None:
    rows = [
        {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION_ID, "content": "Why is it red?"},
        {"type": "attachment", "sessionId": SESSION_ID, "attachment": {"type": "hook_output", "content": "a brief"}},
        claude("user", "Why is the build red?"),
        {"type": "api-request", "sessionId": SESSION_ID, "body": {"role": "user", "message": "no"}},
        claude("assistant", [{"type": "thinking", "thinking": "Let me see.", "signature": "xyz"}]),
        claude("assistant", [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}]),
        claude(
            "user",
            [{"type": "tool_result", "tool_use_id": "t1", "content": "boom"}],
            toolUseResult={"stdout": "boom"},
        ),
        claude("user", [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "boom"}]}]),
        claude("user", [{"type": "text", "text": "a picture"}, {"type": "image", "source": {"data": "AAAA"}}]),
        claude("assistant", [{"type": "text", "text": "A test fails:\n\n- `test_port`"}]),
        {"type": "system", "subtype": "stop_hook_summary", "content": "user assistant message"},
        {"type": "summary", "summary": "The build was red", "leafUuid": "u"},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {"message": "user"}},
    ]
    assert turns_of("claude", *rows) == [
        Turn("user", "Why is the build red?", 3, AT),
        Turn("user", "a picture", 9, AT),
        Turn("assistant", "A test fails: - `test_port`", 10, AT),
    ]


@pytest.mark.parametrize(
    "row",
    [
        claude("user", "x", isMeta=True),
        claude("user", "x", isCompactSummary=True),
        claude("user", "x", isVisibleInTranscriptOnly=True),
        claude("assistant", "x", isApiErrorMessage=True),
        claude("user", "x", isSidechain=True),
        claude("user", "x", toolUseResult=""),
        claude("user", "x", type="progress"),
        claude("user", "x", type=["user"]),
        claude("user", "x", type={"user": "user"}),
        claude("user", "x", message={"role": "assistant", "content": "x"}),
        claude("user", "x", message="x"),
        claude("user", "x", message=None),
        claude("user", "x", message=[{"role": "user", "content": "x"}]),
        claude("assistant", "x", message={"role": "assistant", "model": "<synthetic>", "content": "No response."}),
        claude("user", None),
        claude("user", 7),
        claude("user", {"type": "text", "text": "x"}),
        claude("user", [["text", "x"], "text", None, {"type": "text"}, {"type": "text", "text": ["x"]}]),
        claude("user", [{"type": ["text"], "text": "x"}]),
        claude("user", " \n\t "),
        claude("user", "\u200b\u2060"),
    ],
)
def test_claude_rows_that_are_no_speech(row: dict[str, Any]) -> None:
    assert texts_of("claude", row, claude("user", "speech")) == ["speech"]


def test_what_claude_subagents_said_is_left_out() -> None:
    row = claude("assistant", [{"type": "text", "text": "found it"}], isSidechain=True)
    assert turns_of("claude", row) == []


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<system-reminder>\nThe date changed.\n</system-reminder>", ""),
        ("Fix it\n\n<system-reminder>\nNobody\n\nasked.\n</system-reminder>\n", "Fix it"),
        ("<system-reminder>a</system-reminder>\nFix\n<system-reminder>b</system-reminder>\nit", "Fix it"),
        ("<system-reminder>a</system-reminder> b </system-reminder>Fix it", "Fix it"),
        ("<system-reminder>a\n<bash-input>b</bash-input>\nc</system-reminder>\nFix it", "Fix it"),
        ("<command-name>/clear</command-name>\n   <command-message>clear</command-message>", ""),
        ("<command-message>x</command-message>\n<command-name>/x</command-name>\n<command-args>a</command-args>", ""),
        ("<local-command-stdout>Set model to opus</local-command-stdout>", ""),
        ("<local-command-stderr>no</local-command-stderr>", ""),
        ("<local-command-caveat>Caveat: all of this was typed elsewhere</local-command-caveat>", ""),
        ("<local-command-caveat>cut off", ""),
        ("Caveat: The messages below were generated by the user while running local commands. DO NOT respond.", ""),
        ("<bash-input>ls</bash-input>", ""),
        ("<bash-stdout>a b</bash-stdout><bash-stderr></bash-stderr>", ""),
        ("<ide_selection>line 3</ide_selection>\nWhat is this?", "What is this?"),
        ("<task-notification>\n<status>done</status>\n</task-notification>", ""),
        ("[Request interrupted by user for tool use]", ""),
        ("Why is <system-reminder>x</system-reminder> here?", "Why is <system-reminder>x</system-reminder> here?"),
        ("Look:\n<system-reminder>\nis never closed", "Look: <system-reminder> is never closed"),
        ("<b>bold</b> words", "<b>bold</b> words"),
        ("<system-reminders>plural</system-reminders>", "<system-reminders>plural</system-reminders>"),
    ],
)  # fmt: skip
def test_claude_wrappers(text: str, left: str) -> None:
    assert texts_of("claude", claude("user", text)) == ([left] if left else [])
    assert texts_of("claude", claude("user", [{"type": "text", "text": text}])) == ([left] if left else [])


def test_a_codex_session() -> None:
    meta = {"id": SESSION_ID, "cwd": "/home/me/app", "base_instructions": {"text": "You are a message for the user"}}
    rows = [
        {"timestamp": AT, "type": "session_meta", "payload": meta},
        codex("developer", "<permissions instructions>Ask first.</permissions instructions>"),
        codex("user", "# AGENTS.md instructions for /home/me/app\n\n<INSTRUCTIONS>\nUse make.\n</INSTRUCTIONS>"),
        codex("user", "<environment_context>\n  <cwd>/home/me/app</cwd>\n</environment_context>"),
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "user_message", "message": "Why is it red?"}},
        codex("user", "Why is the build red?"),
        {"timestamp": AT, "type": "turn_context", "payload": {"cwd": "/home/me/app", "user": "message"}},
        {
            "timestamp": AT,
            "type": "response_item",
            "payload": {"type": "reasoning", "role": "assistant", "summary": []},
        },
        {"timestamp": AT, "type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
        {
            "timestamp": AT,
            "type": "response_item",
            "payload": {"type": "function_call_output", "output": '"message" "user"'},
        },
        codex("assistant", "A test fails."),
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "agent_message", "message": "A test fails."}},
        {"timestamp": AT, "type": "compacted", "payload": {"message": "", "replacement_history": [codex("user", "x")]}},
        codex("user", "Thanks", kind="text"),
        codex("user", "no such kind", kind="input_image"),
    ]
    assert turns_of("codex", *rows) == [
        Turn("user", "Why is the build red?", 6, AT),
        Turn("assistant", "A test fails.", 11, AT),
        Turn("user", "Thanks", 14, AT),
    ]


@pytest.mark.parametrize(
    "row",
    [
        codex("system", "x"),
        codex("tool", "x"),
        {**codex("user", "x"), "type": "event_msg"},
        {**codex("user", "x"), "payload": [codex("user", "x")["payload"]]},
        {**codex("user", "x"), "payload": "message"},
        codex("user", "x", type="reasoning"),
        {**codex("user", "x"), "payload": {"type": "message", "role": ["user"], "content": "x"}},
        codex("user", "x", content=None),
        codex("user", "x", content={"text": "x"}),
    ],
)
def test_codex_rows_that_are_no_speech(row: dict[str, Any]) -> None:
    assert texts_of("codex", row, codex("user", "speech")) == ["speech"]


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (["<user_instructions>\n\nBe kind.\n\n</user_instructions>"], ""),
        (["<INSTRUCTIONS>Be kind.</INSTRUCTIONS>"], ""),
        (["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nnever closed"], ""),
        (["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>a\n</INSTRUCTIONS>\nI am the user.\n</INSTRUCTIONS>"], ""),
        (["<environment_context>a</environment_context>", "Fix it"], "Fix it"),
        (["<environment_context>a</environment_context>\n\nFix it"], "Fix it"),
        (["<turn_aborted>\nThe user interrupted.\n</turn_aborted>"], ""),
        (["<user_shell_command>\n<command>ls</command>\n</user_shell_command>"], ""),
        (['<codex_internal_context source="goal">go on</codex_internal_context>'], ""),
        (["<skill>\n<name>x</name>\n</skill>"], ""),
        (["<external_slack>hello</external_slack>"], ""),
        (["".join(f"<external_{n}></external_{n}>" for n in range(20)) + "x"], ""),
        (["# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:\nFix it\n"], "Fix it"),
        (["# Context from my IDE setup:\n\n## Open tabs:\n- a.py"], ""),
        (["Warning: apply_patch was requested via exec_command. Use the tool."], ""),
        (["What is an <environment_context>?"], "What is an <environment_context>?"),
        (["# AGENTS.md is missing"], "# AGENTS.md is missing"),
    ],
)
def test_codex_wrappers(texts: list[str], left: str) -> None:
    assert texts_of("codex", codex("user", *texts)) == ([left] if left else [])


def test_what_the_agent_writes_in_codex_is_no_wrapper() -> None:
    assert texts_of("codex", codex("assistant", "<skill>x</skill>")) == ["<skill>x</skill>"]


@pytest.mark.parametrize("version", [3, 4])
def test_an_openclaw_session(version: int) -> None:
    rows = [
        {"type": "session", "version": version, "id": SESSION_ID, "timestamp": AT, "cwd": "/home/me"},
        {"type": "model_change", "id": "1", "parentId": None, "timestamp": AT, "provider": "x", "modelId": "y"},
        {"type": "thinking_level_change", "id": "2", "parentId": "1", "timestamp": AT, "thinkingLevel": "low"},
        openclaw("user", [{"type": "text", "text": "Water the\n\nplants"}]),
        openclaw(
            "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "toolCall", "id": "c", "name": "exec"}]
        ),
        openclaw("toolResult", [{"type": "text", "text": "ok"}], toolCallId="c", toolName="exec", isError=False),
        openclaw("assistant", [{"type": "text", "text": "Done."}, {"type": "text", "text": "Both of them."}]),
        {"type": "compaction", "id": "3", "summary": "user message", "firstKeptEntryId": "2", "tokensBefore": 9},
        {"type": "reset", "id": "4", "reason": "new"},
        {"type": "branch_summary", "id": "5", "fromId": "1", "summary": "message from the user"},
        {"type": "custom", "id": "6", "customType": "x", "data": {"message": "user"}},
        {"type": "custom_message", "id": "7", "customType": "x", "content": "message", "display": True},
        {"type": "label", "id": "8", "targetId": "1", "label": "user"},
        {"type": "session_info", "id": "9", "name": "message"},
        openclaw("custom", "x", customType="openclaw.runtime-context"),
        openclaw("bashExecution", "x"),
        openclaw("user", "as a string"),
    ]
    assert turns_of("openclaw", *rows) == [
        Turn("user", "Water the plants", 4, AT),
        Turn("assistant", "Done. Both of them.", 7, AT),
        Turn("user", "as a string", 17, AT),
    ]


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("user", "System: [2026-11-15 10:00] Node connected"),
        ("user", "System (untrusted): [2026-11-15 10:00] Exec completed (abc, code 0)"),
        ("user", "[cron:42 backup] Run the backup"),
        ("user", "[Sun 2026-11-15 10:20 GMT+1] [cron:42 backup] Run the backup"),
        ("user", "Read HEARTBEAT.md if it exists. Nothing to do? Then reply HEARTBEAT_OK."),
        ("user", "Run what is due. After completing all due tasks, reply HEARTBEAT_OK."),
        ("user", "NO_REPLY"),
        ("user", "Exec finished: make"),
        ("user", "Exec completed (brisk-fox, code 0) :: ok"),
        ("user", "exec failed (brisk-fox, signal SIGKILL)"),
        ("user", "[Inter-session message] sourceSession=agent:x isUser=false\nhello"),
        ("user", "A scheduled reminder has been triggered. The reminder content is:\n\nstretch"),
        ("user", "A new session was started via /new or /reset. Greet the user."),
        ("user", "Pre-compaction memory flush. Store durable memories now."),
        ("user", "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nsecret plans\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"),
        ("user", "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\ncut off"),
        ("user", "<relevant-memories>\nThe user likes tea.\n</relevant-memories>"),
        ("assistant", "NO_REPLY"),
        ("assistant", " \n NO_REPLY\n"),
        ("assistant", '{"action": "NO_REPLY"}'),
        ("assistant", "HEARTBEAT_OK"),
        ("assistant", "**HEARTBEAT_OK**."),
    ],
)
def test_openclaw_machinery(role: str, text: str) -> None:
    assert texts_of("openclaw", openclaw("user", "before"), openclaw(role, text), openclaw("user", "after")) == [
        "before",
        "after",
    ]


@pytest.mark.parametrize(
    "text", ["Why do you say HEARTBEAT_OK at night?", "The System: it is slow", "cron: every day", "Say NO_REPLY twice"]
)
def test_speech_about_openclaw_machinery(text: str) -> None:
    assert texts_of("openclaw", openclaw("user", text), openclaw("assistant", f"You said: {text}")) == [
        text,
        f"You said: {text}",
    ]


@pytest.mark.parametrize("kind", ["inter_session", "internal_system"])
def test_openclaw_turns_that_nobody_spoke(kind: str) -> None:
    row = openclaw("user", "x", provenance={"kind": kind, "sourceTool": "memory_search"})
    mine = openclaw("user", "mine", provenance={"kind": "external_user"})
    assert texts_of("openclaw", row, mine) == ["mine"]


def test_openclaw_sessions_that_nobody_began() -> None:
    cron = openclaw("user", "[cron:42 backup] Run the backup")
    assert texts_of("openclaw", cron, openclaw("assistant", "Backed up.")) == []
    assert texts_of("openclaw", openclaw("user", "hi"), cron, openclaw("assistant", "hello")) == ["hi", "hello"]
    dream = {"type": "custom", "customType": "bootstrap", "data": {"runId": "dreaming-narrative-light"}}
    assert texts_of("openclaw", dream, openclaw("assistant", "I dreamt of sheep.")) == []
    assert texts_of("openclaw", openclaw("user", "what is dreaming-narrative-light?")) != []


@pytest.mark.parametrize(
    "header",
    [
        'Conversation info (untrusted metadata):\n```json\n{\n  "sender": "Ann"\n}\n```\n\n',
        'Sender: ⟦openclaw:ctx⟧\n```json\n{"name": "Ann"}\n```\n',
        "Thread starter (untrusted, for context):\nan older message\nof two lines\n\n",
        "[Sat 2026-02-14 18:49 GMT-3] ",
        "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nx\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\n",
        "<active_memory_plugin>\nLikes tea.\n</active_memory_plugin>\n",
        "",
    ],
)
def test_what_channels_add_to_openclaw_messages(header: str) -> None:
    tail = "\n\nContext: ⟦openclaw:ctx⟧\nmore\n\nand more" if header else ""
    assert texts_of("openclaw", openclaw("user", f"{header}Reboot it{tail}")) == ["Reboot it"]


# --- Hostile lines --------------------------------------------------------------------------------------------------

BAD = [
    b"",
    b"\n",
    b"\r\n",
    b"null\n",
    b'"user"\n',
    b"[]\n",
    b'{"type":"user","message":{"role":"user","content":"cut o',
    b'{"type":"user","message":{"role":"user","content":"x"}} and more\n',
    b'{"type":"user","message":{"role":"user","content":"x"},"cost":NaN}\n',
    b'{"type":"user","message":{"role":"user","content":"x"},"cost":-Infinity}\n',
    b'{"type":"user","message":{"role":"user","content":"x"},"isMeta":true,"isMeta":false}\n',
    b'{"type":"user","message":{"role":"user","content":"y","content":"x"}}\n',
    b'{"type":"user","message":{"role":"user","content":"\xff\xfe"}}\n',
    b'{"type":"user","message":{"role":"user","content":"\xed\xa0\x80"}}\n',
    b'{"type":"user","message":{"role":"user","content":"line\nbreak"}}\n',
    b'{"type":"user","message":{"role":"user","content":' + b"[" * 100_000 + b"\n",
    b'{"type":"user","message":' + b'{"user":' * 5000 + b"1" + b"}" * 5000 + b"}\n",
    b'{"type":"user","message":{"role":"user","content":' + b"9" * 5000 + b"}}\n",
    b"\x00" * 100,
    b"\xef\xbb\xbf",
    '{"type":"user"}'.encode("utf-16"),
]


@HARNESS
def test_a_bad_line_costs_only_itself(harness: str, subtests: pytest.Subtests) -> None:
    for bad in range(len(BAD)):
        with subtests.test(f"{bad!r:.40}"):
            lines = [
                *lines_of(said(harness, "user", "before")),
                BAD[bad],
                *lines_of(said(harness, "assistant", "after")),
            ]
            assert list(iter_turns(lines, harness)) == [
                Turn("user", "before", 1, AT),
                Turn("assistant", "after", 3, AT),
            ]


@HARNESS
def test_a_lone_surrogate_costs_only_itself(harness: str) -> None:
    line = json.dumps(said(harness, "user", "half an emoji \ud83d here")).encode()
    assert [turn.text for turn in iter_turns([line], harness)] == ["half an emoji here"]


@HARNESS
def test_order_spacing_and_escapes_do_not_matter(harness: str) -> None:
    row = said(harness, "user", "hello")
    backwards = json.dumps(dict(reversed(row.items())), indent=1).replace("\n", " \t").encode()
    escaped = json.dumps(row)
    for word in ("user", "message", "response_item"):
        escaped = escaped.replace(f'"{word}"', f'"\\u{ord(word[0]):04x}{word[1:]}"')
    assert [turn.text for turn in iter_turns([backwards, escaped.encode()], harness)] == ["hello", "hello"]


@HARNESS
@pytest.mark.parametrize(
    "at", [None, 1794738030456, "yesterday", "2026-11-15T10:20:30Z\n", ["x"], "\u202e2026", "9" * 500]
)
def test_a_time_that_is_none(harness: str, at: object) -> None:
    assert turns_of(harness, {**said(harness, "user", "hello"), "timestamp": at}) == [Turn("user", "hello", 1, "")]


def test_an_unknown_harness_is_said_at_once() -> None:
    with pytest.raises(BadInput, match="cursor"):
        iter_turns([], "cursor")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["user", "assistant", "message", "text", "response_item", "session", AT, BEGIN_MARK]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "role", "message", "content", "payload", "text", "isMeta", "id", "data", "runId"])
            | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)
LINE = st.one_of(
    st.binary(max_size=120),
    st.builds(lambda value: json.dumps(value).encode(), JSON),
    st.builds(
        lambda harness, role, content, cut: json.dumps(
            {"type": role, "message": {"role": role, "content": content}}
            if harness == "claude"
            else {"type": "response_item", "payload": {"type": "message", "role": role, "content": content}}
            if harness == "codex"
            else {"type": "message", "message": {"role": role, "content": content}}
        ).encode()[:cut],
        st.sampled_from(HARNESSES),
        st.sampled_from(["user", "assistant"]),
        JSON,
        st.none() | st.integers(1, 80),
    ),
)
WORDS = st.text(st.sampled_from("abc ÄßЖ漢\U0001f600\t\n"), min_size=1, max_size=40).filter(str.strip)


@pytest.mark.slow
@HARNESS
@settings(max_examples=100, deadline=None)
@given(lines=st.lists(LINE, max_size=8))
def test_no_bytes_at_all_raise(harness: str, lines: list[bytes]) -> None:
    for turn in iter_turns(lines, harness):
        assert turn.text
        assert turn.text == " ".join(turn.text.split())
        assert turn.text == strip_hidden(turn.text)
        assert turn.at in ("", AT)
        assert 1 <= turn.line <= len(lines)


@pytest.mark.slow
@HARNESS
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_every_turn_survives_among_garbage(harness: str, data: st.DataObject) -> None:
    rows = data.draw(st.lists(WORDS | st.sampled_from(BAD), max_size=8))
    lines: list[bytes] = []
    expected: list[Turn] = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, bytes):
            lines.append(row)
            continue
        role = data.draw(st.sampled_from(["user", "assistant"]))
        lines += lines_of(said(harness, role, row))
        expected.append(Turn("user" if role == "user" else "assistant", " ".join(row.split()), number, AT))
    assert list(iter_turns(lines, harness)) == expected


# --- What the text may hold -----------------------------------------------------------------------------------------


@HARNESS
def test_credentials_are_masked(harness: str) -> None:
    token = a_token()
    (turn,) = turns_of(harness, said(harness, "user", f"Use {token} for the clone.\nThanks"))
    assert token not in turn.text
    assert turn.text == "Use [secret: github-token] for the clone. Thanks"


GAPS = ["\n", "\r\n", "\u200b", "\u2060\u2060", "\x0c", "\u2028", "\\\n"]


@HARNESS
def test_a_credential_in_two_pieces_is_masked(harness: str, subtests: pytest.Subtests) -> None:
    for cut in [4, 10, 30]:
        for gap in GAPS:
            with subtests.test(f"{cut!r:.40}, {gap!r:.40}"):
                token = a_token(cut)
                for turn in turns_of(harness, said(harness, "user", f"key {token[:cut]}{gap}{token[cut:]} end")):
                    assert token[-6:] not in turn.text
                    assert find_secrets(turn.text) == ()


@HARNESS
def test_a_password_on_the_next_line_is_masked(harness: str) -> None:
    value = a_token(7)[4:24]
    for text in (f"the password is:\n\n   {value}", f"password:\n{value}", f"password = '{value}'\nok"):
        for turn in turns_of(harness, said(harness, "user", text)):
            assert find_secrets(turn.text) == ()


def test_hidden_characters_are_gone_and_words_stay_apart() -> None:
    text = "\ufeffone\u2028two\x0bthree\x85four fi\u200bve \x1b[31mred\x1b[0m \u202eabc \U000e0041 👨‍👩‍👧"
    assert texts_of("claude", claude("user", text)) == ["one two three four five red abc 👨‍👩‍👧"]


@HARNESS
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters() | st.sampled_from("\u200b\u200d\u2028\ud800\n\t <>[]"), max_size=80))
def test_no_text_is_left_with_anything_unseen(harness: str, text: str) -> None:
    for turn in turns_of(harness, said(harness, "user", text)):
        assert strip_hidden(turn.text) == turn.text
        assert find_secrets(turn.text) == ()
        assert turn.text.split() == turn.text.split(" ")


BRIEF = f"{BEGIN_MARK} wake -->\n# Memory\n- a card\n{END_MARK} -->"


INJECTED_TEXTS = [
    (BRIEF, ""),
    (f"{BRIEF}\nFix it", "Fix it"),
    (f"Fix it\n{BRIEF}", "Fix it"),
    (f"Fix\n{BRIEF}\nit\n  {BRIEF}\nnow", "Fix it now"),
    (f"Fix it\n{BEGIN_MARK} -->\nnever closed", "Fix it"),
    (f"{BEGIN_MARK} -->\na card that says\n{END_MARK} -->\nin its text\n{END_MARK} -->\nFix it", "Fix it"),
    (f"{BEGIN_MARK} -->\n{BEGIN_MARK} -->\nx\n{END_MARK} -->\nFix it", "Fix it"),
    (f"{BEGIN_MARK} -->\n<system-reminder>\n{END_MARK} -->\nFix it", "Fix it"),
    (f"gone {BEGIN_MARK} -->x{END_MARK} --> gone\nFix it", "Fix it"),
    (f"hook: {BEGIN_MARK} wake -->\n# Memory, cut off", ""),
    (f"A {BEGIN_MARK} --> in a prompt\nis cut.", f"A {BEGIN_MARK} --> in a prompt is cut."),
    (f"Fix it\n{END_MARK} -->", f"Fix it {END_MARK} -->"),
    (f"{BRIEF[:8]}\u200b{BRIEF[8:]}\nFix it", "Fix it"),
]


@HARNESS
def test_what_truekeep_injected_is_dropped(harness: str, subtests: pytest.Subtests) -> None:
    for text, left in INJECTED_TEXTS:
        for role in ["user", "assistant"]:
            with subtests.test(f"{text!r:.40}, {left!r:.40}, {role!r:.40}"):
                assert texts_of(harness, said(harness, role, text)) == ([left] if left else [])


def test_what_truekeep_injected_is_dropped_across_blocks() -> None:
    blocks = [{"type": "text", "text": text} for text in ("Fix", f"{BEGIN_MARK} -->\nx", f"y\n{END_MARK} -->", "it")]
    assert texts_of("claude", claude("user", blocks)) == ["Fix it"]
    assert texts_of("openclaw", openclaw("user", blocks)) == ["Fix it"]


# --- Rendering ------------------------------------------------------------------------------------------------------


def test_dialogue_is_one_line_for_each_segment() -> None:
    turns = [
        Turn("user", "Why?", 3, AT),
        Turn("assistant", " ".join(["word"] * 300), 9, AT),
        Turn("user", "two\nlines", 12, ""),
    ]
    lines, sources = zip(*iter_dialogue(turns), strict=True)
    assert sources == (3, 9, 9, 12)
    assert lines[0] == "User: Why?"
    assert lines[1] == "Assistant: " + " ".join(["word"] * 160)
    assert lines[2] == "Assistant: " + " ".join(["word"] * 140)
    assert lines[3] == "User: two lines"


def test_nothing_renders_as_nothing() -> None:
    assert list(iter_dialogue([])) == []
    assert list(iter_dialogue([Turn("user", " ", 1, "")])) == []


@pytest.mark.parametrize(
    ("length", "expected"), [(799, [799]), (800, [800]), (801, [800, 1]), (1600, [800, 800]), (1601, [800, 800, 1])]
)
def test_a_word_without_end_is_cut(length: int, expected: list[int]) -> None:
    lines = iter_dialogue([Turn("user", "x" * length, 1, "")])
    assert [len(line) - len("User: ") for line, _ in lines] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a " + "x" * 798 + " y", ["a " + "x" * 798, "y"]),
        ("a " + "x" * 799 + " y", ["a", "x" * 799, "y"]),
        ("x" * 800 + " " + "y" * 800, ["x" * 800, "y" * 800]),
    ],
)
def test_a_long_turn_is_cut_at_a_space(text: str, expected: list[str]) -> None:
    assert [line for line, _ in iter_dialogue([Turn("user", text, 1, "")])] == [f"User: {line}" for line in expected]


def test_a_cut_leaves_no_half_emoji() -> None:
    for shift in range(6):
        lines = iter_dialogue([Turn("user", "x" * shift + "👨‍👩‍👧" * 400, 1, "")])
        assert all(strip_hidden(line) == line for line, _ in lines)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(texts=st.lists(st.text(st.sampled_from("ab \n漢"), max_size=30).map(lambda text: text * 60), max_size=4))
def test_rendering_keeps_every_word(texts: list[str]) -> None:
    turns = [Turn("user", text, number, "") for number, text in enumerate(texts, 1)]
    lines = list(iter_dialogue(turns))
    assert all(line.startswith("User: ") and 6 < len(line) <= 806 for line, _ in lines)
    for turn in turns:
        mine = [line[6:] for line, source in lines if source == turn.line]
        assert "".join("".join(mine).split()) == "".join(turn.text.split())
        if all(len(word) <= 800 for word in turn.text.split()):
            assert " ".join(mine).split() == turn.text.split()


# --- Files ----------------------------------------------------------------------------------------------------------


def write(path: Path, lines: Iterable[bytes], *, age: float = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    then = time.time() - age
    os.utime(path, (then, then))
    return path


def test_lines_too_long_keep_their_place(tmp_path: Path) -> None:
    huge = b'{"type":"user","message":"' + b"x" * (MAX_LINE + 10)
    exact = b" " * (MAX_LINE - 1) + b"\n"
    lines = [*lines_of(claude("user", "one")), huge + b"\n", exact, *lines_of(claude("user", "four")), huge]
    path = write(tmp_path / "s.jsonl", lines)
    assert [len(line) for line in read_lines(path)] == [len(lines[0]), 0, MAX_LINE, len(lines[3]), 0]
    turns = list(iter_turns(read_lines(path), "claude"))
    assert [(turn.text, turn.line) for turn in turns] == [("one", 1), ("four", 4)]
    assert turns_of("claude", lines[0].strip() + b" " * MAX_LINE) == []


@pytest.mark.slow
def test_memory_is_bounded_by_one_line(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with path.open("wb") as file:
        for number in range(12):
            file.write(b'{"type":"user","message":{"role":"user","content":[')
            file.write(b"x" * (2_000_000 if number % 2 else 10_000_000) + b"\n")
            file.write(lines_of(claude("user", f"turn {number}"))[0])
    tracemalloc.start()
    try:
        assert sum(1 for _ in iter_turns(read_lines(path), "claude")) == 12
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 70_000_000
    assert peak < 30_000_000


def test_lines_are_taken_as_they_come() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b" " * (MAX_LINE + 1) if taken % 3 else lines_of(codex("user", f"turn {taken}"))[0]

    turns = iter_turns(endless(), "codex")
    assert [next(turns).text for _ in range(4)] == ["turn 3", "turn 6", "turn 9", "turn 12"]
    assert taken == 12


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "<system-reminder>\n",
        "<bash-input>\n</bash-input>\n",
        "</system-reminder>",
        "x (untrusted metadata):\n",
    ],
)
@pytest.mark.parametrize("harness", HARNESSES)
def test_a_hostile_text_is_linear_work(unit: str, harness: str) -> None:
    def read(size: int) -> None:
        list(iter_turns(lines_of(said(harness, "user", "x\n" + unit * (size // len(unit)))), harness))

    assert_about_linear(read, 10_000, huge=1_500_000)


@pytest.mark.parametrize("what", ["symlink", "folder", "pipe"])
def test_only_plain_files_are_read(tmp_path: Path, what: str) -> None:
    path = tmp_path / "s.jsonl"
    if what == "symlink":
        path.symlink_to(write(tmp_path / "real.jsonl", lines_of(claude("user", "hello"))))
    elif what == "folder":
        path.mkdir()
    else:
        os.mkfifo(path)
    with pytest.raises(UnsafePath):
        list(read_lines(path))
    with pytest.raises(UnsafePath):
        read_session(path, "claude")


def test_the_head_of_a_claude_session(tmp_path: Path) -> None:
    first = {"type": "queue-operation", "operation": "enqueue", "timestamp": AT, "sessionId": SESSION_ID}
    path = write(tmp_path / "name.jsonl", lines_of(b"not json\n", first, claude("user", "hello")))
    assert read_session(path, "claude") == Session("claude", SESSION_ID, "/home/me/app", AT, "main")


CODEX_META: dict[str, Any] = {
    "id": SESSION_ID,
    "session_id": SESSION_ID,
    "timestamp": "2026-11-15T10:00:00.000Z",
    "cwd": "/home/me/app",
    "originator": "codex_cli_rs",
    "git": {"commit_hash": "abc", "branch": "fix/port"},
}


def test_the_head_of_a_codex_session(tmp_path: Path) -> None:
    row = {"timestamp": AT, "type": "session_meta", "payload": CODEX_META}
    other = {"timestamp": AT, "type": "session_meta", "payload": {**CODEX_META, "id": "other", "cwd": "/other"}}
    expected = Session("codex", SESSION_ID, "/home/me/app", "2026-11-15T10:00:00.000Z", "fix/port")
    path = write(tmp_path / "rollout-x.jsonl", lines_of(row, other))
    assert read_session(path, "codex") == expected
    fork = {"timestamp": AT, "type": "session_meta", "payload": {**CODEX_META, "git": None}}
    assert read_session(write(path, lines_of(fork, other)), "codex") == expected._replace(branch="")
    path = write(tmp_path / "rollout-x.jsonl", [json.dumps(row).encode()])
    assert read_session(path, "codex") == expected


def test_a_head_that_is_one_long_line(tmp_path: Path) -> None:
    row = {"timestamp": AT, "type": "session_meta", "payload": {**CODEX_META, "base_instructions": "x" * 2 * HEAD}}
    path = write(tmp_path / "rollout-x.jsonl", lines_of(row))
    assert read_session(path, "codex") == Session(
        "codex", SESSION_ID, "/home/me/app", CODEX_META["timestamp"], "fix/port"
    )
    row["payload"] = {"id": SESSION_ID, "git": {"branch": "main", "remote": "x" * 2 * HEAD}}
    assert read_session(write(path, lines_of(row)), "codex") == Session("codex", SESSION_ID, "", AT, "main")
    path = write(tmp_path / "s.jsonl", lines_of(claude("user", "ä" * HEAD)))
    assert read_session(path, "claude") == Session("claude", SESSION_ID, "/home/me/app", "", "main")


@pytest.mark.parametrize("version", [3, 4])
def test_the_head_of_an_openclaw_session(tmp_path: Path, version: int) -> None:
    row = {"type": "session", "version": version, "id": SESSION_ID, "timestamp": AT, "cwd": "/home/me"}
    path = write(tmp_path / "s.jsonl", lines_of(row, openclaw("user", "hello")))
    assert read_session(path, "openclaw") == Session("openclaw", SESSION_ID, "/home/me", AT, "")


def test_a_head_that_says_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-2026-11-15T10-20-30-0199aaaa-bbbb_r2.jsonl", BAD)
    assert read_session(path, "codex") == Session("codex", "0199aaaa-bbbb", "", "", "")
    for harness in HARNESSES:
        for content in (
            b"",
            b"\x00" * 100,
            b'{"a":' * 20_000,
            b'{"payload":{"git":{"a":{"b":{"c":{"d":{',
            b'{[1]:2,"id":',
        ):
            path.write_bytes(content)
            assert read_session(path, harness).cwd == ""


def test_a_head_may_hold_anything(tmp_path: Path) -> None:
    token = a_token(3)
    row = claude(
        "user", "x", cwd=f"/home/\u202eme/{token}\n", gitBranch=["main"], sessionId="x" * 5000, timestamp="soon"
    )
    session = read_session(write(tmp_path / "s.jsonl", lines_of(row)), "claude")
    assert session.id == "s"
    assert session.cwd.startswith("/home/\\u202eme/")
    assert token not in session.cwd
    assert is_plain(session.cwd)
    assert (session.branch, session.started_at) == ("", "")


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=200) | st.builds(lambda value: json.dumps(value).encode(), JSON))
def test_no_head_raises(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "head.jsonl"
    path.write_bytes(data)
    for harness in HARNESSES:
        session = read_session(path, harness)
        assert all(isinstance(field, str) and strip_hidden(field) == field for field in session)


def test_codex_looking_after_itself(tmp_path: Path) -> None:
    def is_own(cwd: str, harness: str = "codex", **environ: str) -> bool:
        return is_own_housekeeping(Session(harness, "x", cwd, "", ""), environ)

    assert is_own("/home/me/.codex/memories_v2", HOME="/home/me")
    assert is_own("/home/me/.codex", HOME="/home/me")
    assert is_own("/home/me/app/../.codex/x", HOME="/home/me")
    assert is_own("/data/codex/memories_v2", CODEX_HOME="/data/codex/", HOME="/home/me")
    assert not is_own("/home/me/.codex/memories_v2", CODEX_HOME="/data/codex", HOME="/home/me")
    assert not is_own("/home/me/.codex-app", HOME="/home/me")
    assert not is_own("/home/me/app", HOME="/home/me")
    assert not is_own("", HOME="/home/me")
    assert not is_own("/home/me/.codex/memories_v2", "claude", HOME="/home/me")
    session = Session("codex", "x", str(tmp_path / "real" / "memories_v2"), "", "")
    (tmp_path / "real").mkdir()
    (tmp_path / ".codex").symlink_to(tmp_path / "real")
    assert is_own_housekeeping(session, {}, home=tmp_path)


# --- Finding --------------------------------------------------------------------------------------------------------

ROLLOUT = f"rollout-2026-11-15T10-20-30-{SESSION_ID}"


def find(home: Path, since: float | None = None, **environ: str) -> list[TranscriptFile]:
    return list(find_transcripts(home=home, environ=environ, since=since))


def test_sessions_are_found_where_each_harness_keeps_them(tmp_path: Path) -> None:
    for name in [
        f".claude/projects/-home-me-app/{SESSION_ID}.jsonl",
        ".claude/projects/-home-me-app/agent-a1.jsonl",
        ".claude/projects/-home-me-app/memory/MEMORY.md",
        f".claude/projects/-home-me-app/{SESSION_ID}/subagents/agent-a2.jsonl",
        ".claude/projects/-home-me-lib/0a.jsonl",
        ".claude/projects/stray.jsonl",
        ".claude/history.jsonl",
        f".codex/sessions/2026/11/15/{ROLLOUT}.jsonl",
        f".codex/sessions/2026/11/15/{ROLLOUT}.jsonl.zst",
        ".codex/sessions/2026/11/15/notes.jsonl",
        f".codex/archived_sessions/{ROLLOUT}_r2.jsonl",
        ".codex/history.jsonl",
        ".openclaw/agents/main/sessions/s1.jsonl",
        ".openclaw/agents/main/sessions/s0.jsonl.reset.2026-11-14T10-20-30.000Z",
        ".openclaw/agents/main/sessions/s0.jsonl.reset.2026-11-13T10-20-30.000Z.zst",
        ".openclaw/agents/main/sessions/s2.jsonl.deleted.2026-11-14T10-20-30.000Z",
        ".openclaw/agents/main/sessions/s1.checkpoint.5e551011-aaaa-4bbb-8ccc-0123456789ab.jsonl",
        ".openclaw/agents/main/sessions/s1.trajectory.jsonl",
        ".openclaw/agents/main/sessions/sessions.json",
        ".openclaw/agents/main/other/s3.jsonl",
        ".openclaw/agents/ops/sessions/s1.jsonl",
    ]:
        write(tmp_path / name, [b"{}\n"])
    found = find(tmp_path)
    assert [(file.harness, file.session_id, file.shown) for file in found] == [
        ("claude", SESSION_ID, f"transcripts/claude/-home-me-app/{SESSION_ID}.jsonl"),
        ("claude", "0a", "transcripts/claude/-home-me-lib/0a.jsonl"),
        ("codex", SESSION_ID, f"transcripts/codex/archived_sessions/{ROLLOUT}_r2.jsonl"),
        ("codex", SESSION_ID, f"transcripts/codex/sessions/2026/11/15/{ROLLOUT}.jsonl"),
        ("openclaw", "s0", "transcripts/openclaw/main/s0.jsonl.reset.2026-11-14T10-20-30.000Z"),
        ("openclaw", "s1", "transcripts/openclaw/main/s1.jsonl"),
        ("openclaw", "s1", "transcripts/openclaw/ops/s1.jsonl"),
    ]
    for file in found:
        info = file.path.stat()
        assert (file.size, file.mtime_ns) == (3, info.st_mtime_ns)


def test_variables_name_other_places(tmp_path: Path) -> None:
    write(tmp_path / "c/projects/p/a.jsonl", [])
    write(tmp_path / "x/sessions/rollout-b.jsonl", [])
    write(tmp_path / "o/agents/main/sessions/c.jsonl", [])
    write(tmp_path / ".claude/projects/p/not-this.jsonl", [])
    found = find(
        tmp_path,
        CLAUDE_CONFIG_DIR=str(tmp_path / "c"),
        CODEX_HOME="~/x",
        OPENCLAW_STATE_DIR=str(tmp_path / "o"),
    )
    assert [file.path for file in found] == [
        tmp_path / "c/projects/p/a.jsonl",
        tmp_path / "x/sessions/rollout-b.jsonl",
        tmp_path / "o/agents/main/sessions/c.jsonl",
    ]
    assert [file.path.name for file in find(tmp_path, CLAUDE_CONFIG_DIR="")] == ["not-this.jsonl"]


def test_only_files_written_since(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/p"
    write(folder / "old.jsonl", [], age=3600)
    new = write(folder / "new.jsonl", [], age=60)
    assert [file.session_id for file in find(tmp_path, time.time() - 600)] == ["new"]
    assert [file.session_id for file in find(tmp_path, new.stat().st_mtime)] == ["new"]
    assert len(find(tmp_path, 0)) == 2


def test_symlinks_below_the_root_are_not_followed(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside/p/secret.jsonl", lines_of(claude("user", "x")))
    projects = tmp_path / "dotfiles/claude/projects"
    write(projects / "p/mine.jsonl", [])
    (projects / "p/link.jsonl").symlink_to(outside)
    (projects / "q").symlink_to(outside.parent)
    (projects / "r").mkdir()
    os.mkfifo(projects / "r/pipe.jsonl")
    (projects / "r/folder.jsonl").mkdir()
    (tmp_path / ".claude").symlink_to(tmp_path / "dotfiles/claude")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex/sessions").symlink_to(tmp_path / "outside")
    write(tmp_path / "outside/p/rollout-x.jsonl", [])
    assert [file.path.name for file in find(tmp_path)] == ["mine.jsonl"]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert find(tmp_path) == []
    (tmp_path / ".claude").write_text("a file")
    assert find(tmp_path, CODEX_HOME="/dev/null", OPENCLAW_STATE_DIR="/proc/self/mem") == []


def test_names_are_shown_safely_and_apart(tmp_path: Path) -> None:
    folder = tmp_path / ".claude/projects/p"
    folder.mkdir(parents=True)
    token = a_token(9)
    names = [b"a\xff.jsonl", b"a\\xff.jsonl", "a\u202e.jsonl".encode(), b"a\\u202e.jsonl", b"a\n.jsonl", b"a~b.jsonl"]
    for name in [*names, f"{token}.jsonl".encode(), "ä.jsonl".encode()]:
        os.close(os.open(os.fsencode(folder) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    found = find(tmp_path)
    assert len({file.shown for file in found}) == len(found) == 8
    assert found == find(tmp_path)
    for file in found:
        assert file.shown.startswith("transcripts/claude/p/")
        assert strip_hidden(file.shown) == file.shown
        assert "\n" not in file.shown + file.session_id
        assert token not in file.shown + file.session_id
        assert list(read_lines(file.path)) == []


def test_no_name_can_be_made_to_look_like_another(tmp_path: Path) -> None:
    folder = tmp_path / ".openclaw/agents/main/sessions"
    write(folder / "s.jsonl.reset.\udcff", [])
    (first,) = find(tmp_path)
    write(folder / first.shown.rpartition("/")[2], [])
    assert len({file.shown for file in find(tmp_path)}) == 2


def test_a_deep_folder_comes_to_an_end(tmp_path: Path) -> None:
    write(tmp_path.joinpath(".codex/sessions", *["d"] * 5, "rollout-a.jsonl"), [])
    write(tmp_path.joinpath(".codex/sessions", *["d"] * 40, "rollout-b.jsonl"), [])
    assert [file.path.name for file in find(tmp_path)] == ["rollout-a.jsonl"]
