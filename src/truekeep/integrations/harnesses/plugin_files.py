"""The plugin that all harnesses share, and OpenClaw's hook pack: the exact files, as text.

These bytes are frozen. Codex trusts a hook together with every other file of its plugin (seen with 0.166: one
changed word in the skill, or another version, and the hooks stop until they are trusted again), and looks at the
command before anything in it is filled in. So nothing here names a version of truekeep or a path, and what has to
change belongs into the program, which the commands find by its name. A test holds the digest; who changes it sends
every Codex user through the trust step again, and says so in the changelog.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

MARKET = "truekeep"
PLUGIN = "truekeep"
PLUGIN_ID = f"{PLUGIN}@{MARKET}"
VERSION = "1.1.0"  # of these files, not of the program
HOOK_PACK = "truekeep"

CODEX_CONTENT = "sha256:9c805fefd4b930d3a06de9197328eb05b9c58fef8aa3c4615d40c87fb4ccd2ca"
"""What Codex 0.166 makes of the plugin's files, all together. Taken from the real program; a test asks it again."""


class Hook(NamedTuple):
    """One event of a session, and the word that `truekeep hook` knows it by."""

    event: str  # as Claude Code and Codex spell it
    verb: str
    seconds: int
    matcher: str = ""  # the tools that it is for; "" where the event has none

    @property
    def entry(self) -> dict[str, Any]:
        """The hook as hooks.json has it."""
        handler = {"type": "command", "command": self.command, "timeout": self.seconds}
        return {**({"matcher": self.matcher} if self.matcher else {}), "hooks": [handler]}

    @property
    def command(self) -> str:
        # Without the program: silence and success. Errors are in truekeep's own log, not in the session.
        return f"truekeep hook {self.verb} 2>/dev/null || :"


HOOKS = (
    Hook("SessionStart", "session-start", 10),
    Hook("UserPromptSubmit", "user-prompt-submit", 5),
    Hook("PreToolUse", "pre-tool-use", 5, "Bash|Edit|Write|MultiEdit|NotebookEdit|apply_patch|Task|Agent|spawn_agent"),
    Hook("PreCompact", "pre-compact", 10),
    Hook("Stop", "stop", 5),
    Hook("SessionEnd", "session-end", 3),  # Codex allows three seconds at most
)

MCP_COMMAND = ("truekeep", "mcp")


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


_SKILL = """\
---
name: memory-handoff
description: Find what earlier agents learned about this project, and leave what the next ones need. \
Use before relying on how things are done here, at the end of a substantial task that decided, set up, fixed or \
found out something lasting, and to leave a checkpoint before a session ends or its context is compacted.
---

# Memory handoffs

The memory that all agents share is kept by truekeep: plain Markdown, on one machine, held against the code it
speaks about. Agents read it by searching and add to it by leaving handoffs, which are checked before they become
memory.

## Find

- `truekeep search 'what you want to know'` finds memories by words and by meaning; `truekeep get PATH` reads one.
- Each hit says how old it is and whether the files and names in it still exist. What the code says today comes first.
- The MCP tools `memory_search` and `memory_get` do the same.

## Leave

One handoff for each topic, when it will still be true and useful next month:

    truekeep handoff new --type bugfix --title 'Short and specific' --summary 'What happened and why it matters.' \\
        --fact 'One durable fact' --evidence 'files changed: src/app.py'

- Types: setup, workflow, bugfix, decision, security, preference, research, project-context.
- If a card on the topic exists, update it: `--update --card its-name.md --content -` with the card's whole new text.
- Not durable: the state of the task, what the code or git says anyway, guesses. Never credentials.
- The program says at once whether the handoff can be filed, and why not. `truekeep handoff new --help` has the rest.
- The MCP tool `memory_write` takes a whole handoff, too.
- "Remember X" goes where it is read again: a preference of the user (`--type preference`) to USER.md, a rule of work
  (`--type workflow`: always, never, must) to rules/, the state of the project (`truekeep note project . '...'`) to its
  file, all else to a card.

## Checkpoint

At the end of a session, before its context is compacted, and after each larger piece of work: where the work stands,
for the next session in this repository.

    truekeep checkpoint --last-action 'What was done last' --next-action 'What comes next' \\
        --summary 'What the session did' --observe lesson 0.7 'One thing that was learned'

- An observation has a type (decision, milestone, lesson, context) and an importance from 0 to 1: from 0.8 on it is kept
  for good, from 0.4 on for a month, below for a week. `truekeep note log --type lesson '...'` notes one at any time.
- `--decision`, `--change`, `--now`, `--next`, `--blocker`, `--project` and `--subagent LABEL TEXT` each have a file of
  their own. The MCP tool `memory_checkpoint` takes the same.
- Before work is given to other agents: `truekeep wake --delegate` has the rules for it.
"""

PLUGIN_FILES: Mapping[str, str] = MappingProxyType(
    {
        ".claude-plugin/plugin.json": _json(
            {
                "name": PLUGIN,
                "version": VERSION,
                "description": "Shared memory for coding agents: what is known at the start, handoffs at the end.",
                "author": {"name": "The truekeep authors"},
                "license": "MIT",
            }
        ),
        "hooks/hooks.json": _json({"hooks": {hook.event: [hook.entry] for hook in HOOKS}}),
        "skills/memory-handoff/SKILL.md": _SKILL,
        ".mcp.json": _json({"mcpServers": {MARKET: {"command": MCP_COMMAND[0], "args": list(MCP_COMMAND[1:])}}}),
    }
)
"""The plugin, by path below its folder."""

MARKET_FILES: Mapping[str, str] = MappingProxyType(
    {
        ".claude-plugin/marketplace.json": _json(
            {
                "name": MARKET,
                "description": "The plugin that connects coding agents to truekeep.",
                "owner": {"name": "The truekeep authors"},
                "plugins": [
                    {
                        "name": PLUGIN,
                        "source": f"./{PLUGIN}",
                        "description": "Shared memory for coding agents, kept true by truekeep.",
                    }
                ],
            }
        ),
        **{f"{PLUGIN}/{name}": text for name, text in PLUGIN_FILES.items()},
    }
)
"""The marketplace folder that Claude Code and Codex are pointed at, with the plugin inside."""

_HOOK_PAGE = f"""\
---
name: {HOOK_PACK}
description: "Bring truekeep's brief into new sessions, and note when they end or are compacted"
metadata:
  {{ "openclaw": {{
      "events": ["agent:bootstrap", "command:new", "command:reset", "session:auto-reset", "session:compact:before"],
      "requires": {{ "bins": ["truekeep"] }} }} }}
---

# truekeep

Adds what truekeep knows to the files that an agent starts with, in the main private session only (never in groups,
channels or direct messages of other people), and tells truekeep when a session ends or is compacted. Runs
`truekeep hook ... --for openclaw` with a deadline; when that fails, nothing happens. Written by `truekeep connect`,
removed by `truekeep disconnect`.
"""

_HANDLER = """\
// Written by `truekeep connect`, removed by `truekeep disconnect`.
// The gateway waits for this: every call has a deadline, and no error leaves this file.
import { spawn } from "node:child_process";

const VERBS = {
  "agent:bootstrap": ["agent-bootstrap", 5000],
  "command:new": ["session-end", 3000],
  "command:reset": ["session-end", 3000],
  "session:auto-reset": ["session-end", 3000],
  "session:compact:before": ["pre-compact", 3000],
};
const MOST = 100000;
// Sessions that a program started, not a person.
const OTHERS = /(^|:)(subagent|cron|heartbeat|boot)(:|$)/;

const MAIN = /^agent:[^:\\s]+:main$/;

const pick = (value, ...keys) => Object.fromEntries(keys.map((key) => [key, value?.[key]]));
const each = (value, change) =>
  value && typeof value === "object"
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item)]))
    : undefined;

// What of the configuration tells whose the main session is and who can write to it; truekeep judges.
// Memory is for the main private session alone, so other keys, or no configuration, ask for nothing.
function access(event) {
  const config = event.context?.cfg;
  const isMain = typeof event.sessionKey === "string" && MAIN.test(event.sessionKey);
  if (!isMain || !config || typeof config !== "object") return undefined;
  const route = (item) => pick(item, "groupScope", "dmScope");
  const account = (item) => ({ ...pick(item, "dmPolicy", "allowFrom"), dm: pick(item?.dm, "policy", "allowFrom") });
  const agent = (item) => pick(item, "id", "default");
  const agents = config.agents ?? {};
  return {
    session: route(config.session),
    bindings: each(config.bindings, (item) => ({ session: route(item?.session) })),
    channels: each(config.channels, (item) => ({ ...account(item), accounts: each(item?.accounts, account) })),
    agents: {
      entries: each(agents.entries, agent),
      list: Array.isArray(agents.list) ? agents.list.map(agent) : undefined,
      defaults: { systemAgent: pick(agents.defaults?.systemAgent, "agentId") },
    },
  };
}

// Never the whole context: it holds the configuration, and with it credentials. The session that ends is the previous
// one, where there are two; its key is the same for all that follow each other, so it is no name for one of them.
function payload(event) {
  const { workspaceDir, sessionId, previousSessionEntry, sessionEntry, bootstrapFiles } = event.context ?? {};
  return JSON.stringify({
    hook_event_name: `${event.type}:${event.action}`,
    session_id: String(sessionId ?? previousSessionEntry?.sessionId ?? sessionEntry?.sessionId ?? ""),
    session_key: String(event.sessionKey ?? ""),
    access: access(event),
    cwd: typeof workspaceDir === "string" ? workspaceDir : undefined,
    loaded: loaded(bootstrapFiles, `${workspaceDir}/`),
  });
}

// What the model is shown anyway, so that the brief does not say it again: paths, never contents.
function loaded(files, workspace) {
  if (!Array.isArray(files)) return undefined;
  const shown = files.filter((file) => file && !file.missing && String(file.content ?? "").trim());
  return shown.map(({ name, path }) =>
    typeof path === "string" && path.startsWith(workspace) ? path.slice(workspace.length) : String(name ?? ""),
  );
}

function ask(verb, deadline, input) {
  return new Promise((resolve) => {
    const child = spawn("truekeep", ["hook", verb, "--for", "openclaw"], { stdio: ["pipe", "pipe", "ignore"] });
    const chunks = [];
    let size = 0;
    const end = (text) => {
      clearTimeout(timer);
      resolve(text);
    };
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      child.stdout.destroy();
      end("");
    }, deadline);
    child.on("error", () => end(""));
    child.stdin.on("error", () => {});
    child.stdout.on("error", () => {});
    child.stdout.on("data", (chunk) => {
      size += chunk.length;
      if (size <= MOST) chunks.push(chunk);
    });
    child.on("close", (code) => end(code === 0 && size <= MOST ? Buffer.concat(chunks).toString("utf8") : ""));
    child.stdin.end(input);
  });
}

export default async function handler(event) {
  try {
    const known = VERBS[`${event.type}:${event.action}`];
    if (!known || OTHERS.test(String(event.sessionKey ?? ""))) return;
    if (known[0] === "agent-bootstrap" && !access(event)) return;
    const text = (await ask(known[0], known[1], payload(event))).trim();
    const files = event.context?.bootstrapFiles;
    if (known[0] !== "agent-bootstrap" || !text || !Array.isArray(files)) return;
    const path = `${event.context.workspaceDir ?? "."}/TRUEKEEP.md`;
    event.context.bootstrapFiles = [...files, { name: "TRUEKEEP.md", path, content: text, missing: false }];
  } catch {
    // Memory that cannot be had must not cost a session.
  }
}
"""

PACK_FILES: Mapping[str, str] = MappingProxyType({"HOOK.md": _HOOK_PAGE, "handler.js": _HANDLER})
"""OpenClaw's hook pack, by path below its folder. OpenClaw does not run a plugin's hooks.json."""


def codex_hook_key(hook: Hook) -> str:
    """The name under which Codex keeps whether it trusts a hook."""
    return f"{PLUGIN_ID}:hooks/hooks.json:{hook.verb.replace('-', '_')}:0:0"


def codex_hook_hash(hook: Hook) -> str:
    """What Codex trusts: the event and the handler, as canonical JSON, before anything is filled in."""
    handler = {"async": False, "command": hook.command, "timeout": hook.seconds, "type": "command"}
    identity: dict[str, Any] = {"event_name": hook.verb.replace("-", "_"), "hooks": [handler]}
    if hook.matcher:
        identity["matcher"] = hook.matcher
    canonical = json.dumps(identity, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(canonical.encode()).hexdigest()}"
