"""What the documents show, really run: python -m tools.shown, or make shown.

A block below `<!-- shown: name -->` in README.md or docs/ has commands behind `$ ` and what they said. The commands
stand in the documents; here is the story that they are told in: a person called ada, her repositories, her machines.
The same story tells of which shape every --json is, for docs/json.md. A test runs it and compares.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from truekeep.interfaces.cli.app import cli

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
JSON_PAGE = ROOT / "docs" / "json.md"

_BLOCK = re.compile(r"<!-- shown: (?P<name>[a-z0-9-]+) -->\n+```\n(?P<text>.*?)\n```\n", re.DOTALL)
_SHAPES = re.compile(r"(<!-- shapes:[^>]*-->\n).*?(<!-- /shapes -->)", re.DOTALL)
_NAMED = """\
import os
_true = os.uname()
os.uname = lambda: os.uname_result((_true[0], os.environ["SHOWN_MACHINE"], *_true[2:]))
"""
_CRONTAB = """\
#!/bin/sh
case $1 in
    -) exec cat > "$HOME/crontab" ;;
    -r) exec rm "$HOME/crontab" ;;
esac
cat "$HOME/crontab" 2>/dev/null || { echo "no crontab for ada" >&2; exit 1; }
"""
_WIDTH = 110
_DAY = datetime.now(UTC).date()
_SECTIONS = (
    ("## Servers", "The shop runs on two machines behind one proxy."),
    ("## Newsletter", "It goes out on the first Monday of a month."),
    ("## Lessons\n\n### Redis loses carts", "A restart drops every cart that was not saved."),
    ("### The printer needs a driver", "Labels come out blank without version 4 of it."),
    ("### Returns", "A return is booked before the money goes back."),
)
_CARTS = '''\
"""Carts live in Redis and are gone after 48 hours."""

CART_TTL = 48 * 3600


def load_cart(session):
    return session.redis.get(f"cart:{session.id}")


def merge_carts(old, new):
    return {**old, **new}
'''
_BASKETS = '''\
"""Carts live in Redis and are gone after 48 hours."""

CART_TTL = 48 * 3600
CART_PREFIX = "cart"


def load_cart(session):
    return session.redis.get(f"{CART_PREFIX}:{session.id}")
'''
_SESSION = "5e551011-aaaa-4bbb-8ccc-0123456789ab"


def _project(folder: Path) -> str:
    """What Claude Code calls the folder of a project."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(folder))


class Block:
    """Commands and what they said, as a document has them."""

    def __init__(self, page: Path, name: str, text: str) -> None:
        self.page, self.name, self.text = page, name, text

    @property
    def commands(self) -> list[str]:
        """Each with its further lines; what is no command is what one said."""
        found: list[str] = []
        goes_on = False
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append(line[2:])
            elif goes_on:
                found[-1] += f"\n{line}"
            goes_on = (line.startswith("$ ") or goes_on) and line.endswith("\\")
        return found


def blocks_of(page: Path) -> list[Block]:
    return [Block(page, match["name"], match["text"]) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


class Stage:
    """The machines of ada, below one folder."""

    def __init__(self, base: Path, blocks: Mapping[str, Block]) -> None:
        self.base, self.blocks = base, blocks
        self.home = self._home("desk")
        for name, text in (("named/sitecustomize.py", _NAMED), ("bin/crontab", _CRONTAB)):
            (base / name).parent.mkdir(exist_ok=True)
            (base / name).write_text(text)
            (base / name).chmod(0o755)
        self.said: dict[str, str] = {}
        self.shapes: dict[str, tuple[str, Any]] = {}  # kind: the command, and the shape of what it printed

    def _home(self, machine: str) -> Path:
        home = self.base / machine / "ada"
        home.mkdir(parents=True, exist_ok=True)
        return home

    @property
    def memory(self) -> Path:
        return self.home / ".openclaw" / "workspace" / "memory"

    def environment(self, machine: str) -> dict[str, str]:
        """The variables that a shell of ada has there."""
        environment = {
            "HOME": str(self._home(machine)),
            "USER": "ada",
            "LOGNAME": "ada",
            "PATH": f"{self.base / 'bin'}:{Path(sys.executable).parent}:/usr/bin:/bin",
            "PYTHONPATH": str(self.base / "named"),
            "SHOWN_MACHINE": machine,
            "TRUEKEEP_MACHINE_ID": machine,
            "TRUEKEEP_NO_BACKGROUND": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }
        for name in ("AUTHOR", "COMMITTER"):
            environment |= {f"GIT_{name}_NAME": "ada", f"GIT_{name}_EMAIL": "ada@example.invalid"}
        return environment

    def run(self, line: str, at: str = ".", *, machine: str = "desk", is_merged: bool = True) -> str:
        """What a line of shell says, with the paths that ada sees."""
        home = self._home(machine)
        errors = subprocess.STDOUT if is_merged else subprocess.PIPE
        done = subprocess.run(
            ["sh", "-c", line.replace("/srv/", f"{self.base}/")],
            cwd=home / at,
            env=self.environment(machine),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        told = done.stdout.replace(str(home), "/home/ada").replace(str(self.base), "/srv")
        return told.replace(_project(home), "-home-ada")

    def show(self, *names: str, at: str = ".", machine: str = "desk") -> None:
        for name in names:
            told = []
            for command in self.blocks[name].commands:
                told += [f"$ {command}", *self.run(command, at, machine=machine).rstrip("\n").split("\n")]
            self.said[name] = "\n".join(line.rstrip() for line in told).rstrip()

    def tell(self, command: str, at: str = ".", *, machine: str = "desk") -> Any:
        """Run a command with --json, and note the shape of its answer."""
        text = self.run(f"truekeep {command} --json", at, machine=machine, is_merged=False)
        answer = json.loads(text)
        kind = answer.pop("schema")
        answer.pop("notices", None)
        _, known = self.shapes.get(kind, ("", None))
        self.shapes[kind] = (_asked(kind, command), _joined(known, _shape(answer)))
        return answer

    def write(self, path: str, text: str, *, machine: str = "desk") -> None:
        place = self._home(machine) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    def commit(self, repository: str, what: str, *, machine: str = "desk") -> None:
        self.run(f"git add -A && git commit -qm '{what}'", f"repos/{repository}", machine=machine)


def _asked(kind: str, command: str) -> str:
    """The command that prints a kind, without what it was given."""
    if kind == "truekeep.error/1":
        return "any command that fails"
    names: list[str] = []
    found: click.Command | None = cli
    for word in command.split():
        found = found.get_command(click.Context(found), word) if isinstance(found, click.Group) else None
        if found is None:
            break
        names.append(word)
    flags = {"connect-check": "--check", "handoff-codes": "--codes", "undo-plan": "--dry-run", "undo-several": "12-23"}
    flags |= {"claims": "--list-claims", "version": "--version", "check-baseline": "--write-baseline"}
    names += [flags[name] for name in (kind.split(".")[1].split("/")[0],) if name in flags]
    return f"`truekeep {' '.join(names)}`"


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        inner: Any = None
        for item in value:
            inner = _joined(inner, _shape(item))
        return [inner]
    words = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
    return frozenset((words[type(value)],))


def _joined(one: Any, other: Any) -> Any:
    """What two answers of a kind have together; a key that only one has may be missing."""
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, dict) and isinstance(other, dict):
        return {
            key if key in one and key in other else key.rstrip("?") + "?": _joined(one.get(key), other.get(key))
            for key in dict.fromkeys((*one, *other))
        }
    if isinstance(one, list) and isinstance(other, list):
        return [_joined(one[0], other[0])]
    if isinstance(one, frozenset) and isinstance(other, frozenset):
        return one | other
    null = frozenset(("null",))
    return one if other == null else other if one == null else frozenset(("anything",))


def play(stage: Stage) -> None:
    """The whole story, in its order."""
    _begin(stage)
    _handoffs(stage)
    _recall(stage)
    _truth(stage)
    _planted(stage)
    _documents(stage)
    _upkeep(stage)
    _sessions(stage)
    _machines(stage)
    _archives(stage)
    _health(stage)
    _end(stage)
    _split(stage)


def begin_shop(stage: Stage) -> None:
    """The two repositories, with the code of carts in one."""
    for name in ("shop", "billing"):
        stage.run(
            f"git init -q repos/{name} && git -C repos/{name} remote add origin https://git.example/acme/{name}.git"
        )
    stage.write("repos/shop/app/carts.py", _CARTS)
    stage.commit("shop", "Carts in Redis")


def write_poisoned_handoff(stage: Stage) -> None:
    poisoned = (ROOT / "demo" / "2026-11-14-1015-invoice-export.md").read_text(encoding="utf-8")
    stage.write("repos/billing/.codex/memory-handoffs/2026-11-14-1015-invoice-export.md", poisoned)


def write_carts_card(stage: Stage) -> None:
    stage.write(
        ".openclaw/workspace/memory/cards/carts.md",
        "---\ntopic: How carts are kept\ncategory: project-context\ntags: [carts]\n"
        f"created: {_DAY}\nupdated: {_DAY}\nrepository: git.example/acme/shop\n---\n\n"
        "- `load_cart` is defined in `app/carts.py`; the lifetime is `CART_TTL`.\n"
        "- Two carts meet in `merge_carts` (`app/carts.py:10`).\n",
    )


def move_carts(stage: Stage) -> None:
    stage.run("git mv app/carts.py app/baskets.py", "repos/shop")
    stage.write("repos/shop/app/baskets.py", _BASKETS)
    stage.commit("shop", "Carts are baskets now; merging went to the client")


def _begin(stage: Stage) -> None:
    begin_shop(stage)
    stage.show("init")
    stage.tell("init /srv/another")
    stage.tell("config list --all")
    stage.tell("config get repositories")
    stage.tell("config set limits.review_days 45")
    stage.tell("config unset limits.review_days")
    stage.tell("config path")
    stage.tell("completion bash")
    stage.tell("--version")
    command, shape = stage.shapes["truekeep.version/1"]  # an unpacked archive of the source knows no commit
    stage.shapes["truekeep.version/1"] = command, {**shape, "commit": frozenset(("string", "null"))}


def _handoffs(stage: Stage) -> None:
    stage.show("handoff-new", at="repos/shop")
    write_poisoned_handoff(stage)
    stage.show("handoff-list", "handoff-lint", at="repos/billing")
    stage.tell("handoff list", "repos/shop")
    stage.tell("handoff lint", "repos/billing")
    stage.tell("handoff lint --codes")
    _wait(stage)
    stage.tell("ingest --dry-run")
    stage.show("ingest", "card-show", "review-list", "review-show")
    stage.tell("ingest")
    stage.tell("card show staging-proxy")
    stage.tell("card list")
    stage.tell("review list")
    stage.tell("review show invoice-export")
    stage.tell("review retry invoice-export")
    stage.show("review-reject", "history")
    stage.tell("history")
    stage.tell(
        "handoff new --writer codex --title 'Lint first' --document TOOLS.md --content '### Lint\nRun make lint.'",
        "repos/billing",
    )
    _wait(stage)
    stage.tell("ingest")


def _wait(stage: Stage) -> None:
    """Until nobody can be writing any more."""
    stage.run("sleep 1.1")


def _recall(stage: Stage) -> None:
    stage.write(
        ".openclaw/workspace/memory/2025-02-11.md",
        "# 2025-02-11\n\n## Invoices\n"
        "- Nightly export died with `ERR_INVOICE_4417: ledger row without currency`; two rows of the January import "
        "had none.\n- Filled them in by hand. The importer now refuses such rows.\n\n"
        "## Shop\n- Page weight is down to 410 kB after the new image sizes.\n",
    )
    stage.write(
        ".openclaw/workspace/memory/project-shop.md",
        "# Shop\n\n## Storage\n"
        "Orders live in PostgreSQL. Carts live in Redis and are gone after 48 hours; nothing may depend on them for "
        "longer.\n\n## Releases\nA release goes to one machine first, for an hour, and then to all others.\n",
    )
    stage.show("index", "search", "search-old", "search-misspelt", "get")
    stage.tell("index")
    stage.tell("search 'which database keeps the shopping baskets'")
    stage.tell("get memory/2025-02-11.md")


def _truth(stage: Stage) -> None:
    write_carts_card(stage)
    stage.show("claims", "verify-all")
    move_carts(stage)
    stage.show("verify", "search-told", "resolve", "repos", "verify-fix")
    stage.tell("verify")
    stage.tell("verify --list-claims memory/cards/carts.md", ".openclaw/workspace")
    stage.tell("repos")
    old = ".openclaw/workspace/memory/cards/old-baskets.md"
    text = "Baskets of git.example/acme/shop are kept by `app/baskets.py`."
    stage.write(old, f"---\ntopic: Baskets\ncreated: {_DAY}\nupdated: {_DAY}\n---\n\n{text}\n")
    stage.show("repos-match")
    stage.tell("repos match")
    stage.tell("repos match --fix")
    stage.run(f"rm {old}")
    stage.tell("resolve 'where carts are loaded'")
    stage.tell("search 'where is the cart lifetime set'")


def _planted(stage: Stage) -> None:
    """Nine false claims, as docs/comparison.md has them, in a repository that no memory is about."""
    stage.run("git init -q planted")
    code = 'PORT = 8081\n\ndef start_server():\n    parser.add_argument("--workers")\n    return PORT\n'
    stage.write("planted/src/server.py", code)
    stage.write("planted/package.json", '{"name": "planted", "scripts": {"test": "pytest"}}\n')
    stage.run("git add -A && git commit -qm Server", "planted")
    stage.run("git mv src/server.py src/app_server.py && git commit -qm 'App server'", "planted")
    claims = (
        "The entry point is `src/server.py`.",
        "`start_server()` is at `src/server.py:3`.",
        "Build with `npm run build`.",
        "The configuration is in `config/settings.toml`.",
        "The function `run_forever()` is in `src/app_server.py`.",
        "`start_server()` is at line 40 of `src/app_server.py`.",
        "The server listens on port 9090.",
        "The number of workers is set with the flag `--threads`.",
        "This was decided in commit `deadbeef`.",
    )
    stage.write("planted/CLAUDE.md", "# Notes\n\n" + "".join(f"- {claim}\n" for claim in claims))
    stage.show("planted", at="planted")


def _documents(stage: Stage) -> None:
    """Documents of a repository whose code moves on."""
    stage.run("git init -q -b main repos/mailer", ".")
    stage.write(
        "repos/mailer/mailer/queue.py", "def send_all(queue):\n    return [queue.send(mail) for mail in queue]\n"
    )
    stage.write("repos/mailer/mailer/retry.py", "def wait_before(attempt):\n    return 2**attempt\n")
    stage.write(
        "repos/mailer/AGENTS.md",
        "# Mailer\n\n- Mails go out in `mailer/queue.py`; how long it waits is in [retry.py](mailer/retry.py).\n"
        "- Templates are described in [docs/templates.md](docs/templates.md).\n",
    )
    stage.commit("mailer", "Mailer")
    stage.run("git switch -qc outbox && git mv mailer/queue.py mailer/outbox.py", "repos/mailer")
    stage.commit("mailer", "The queue is an outbox now")
    stage.show("check", "check-since", at="repos/mailer")
    stage.tell("check", "repos/mailer")
    stage.tell("check --write-baseline", "repos/mailer")


def _upkeep(stage: Stage) -> None:
    for name, topic, age, text in (
        ("gateway", "The gateway", 199, "The gateway listens on port 5204."),
        ("deploy", "How we deploy", 157, "The gateway listens on port 5300; a deploy waits for it."),
        ("sqlite-network", "SQLite on network drives", 46, "SQLite on a network drive loses writes."),
        ("sqlite-network-drives", "SQLite on network drives", 27, "SQLite on a network drive loses writes."),
    ):
        day = _DAY - timedelta(days=age)
        head = f"topic: {topic}\ncategory: setup\ncreated: {day}\nupdated: {day}"
        stage.write(f".openclaw/workspace/memory/cards/{name}.md", f"---\n{head}\n---\n\n{text}\n")
    old = _DAY - timedelta(days=20)
    stage.write(
        f".openclaw/workspace/memory/{old}.md",
        f"# {old}\n\n- [note|i=0.2] The build was slow today.\n- [decision|i=0.9] Invoices are numbered per year.\n",
    )
    index = stage.memory.parent / "MEMORY.md"
    index.write_text(index.read_text() + "- [The old proxy](memory/cards/old-proxy.md)\n")
    stage.show("reconcile", "tidy", "decay", "card-write")
    stage.tell("reconcile")
    stage.tell("tidy")
    stage.tell("tidy decay")
    stage.tell("tidy duplicates")
    stage.tell("tidy promote")
    stage.write("note.md", "The proxy in front of staging keeps a connection open for 30 seconds.\n")
    stage.tell("card write timeouts --topic 'Timeouts of the proxy' --file note.md --anyway")
    stage.tell("card confirm timeouts")
    stage.tell("card drop timeouts --reason 'made up' --yes")
    stage.show("correction", "status")
    stage.tell("note correction add 'Released on a Friday' --instead 'Release from Monday to Thursday'")
    stage.tell("note correction list")
    stage.tell("note gating add --when 'releasing the shop' --do 'run the smoke test' --because 'it was down an hour'")
    stage.tell("note gating list")


def _sessions(stage: Stage) -> None:
    stage.show("checkpoint", "wake", at="repos/shop")
    stage.tell("checkpoint --summary 'Baskets are merged by the client.'", "repos/shop")
    stage.tell("wake", "repos/shop")
    stage.tell("note log 'The import took four hours.'", "repos/shop")
    stage.tell("note decision 'The client merges baskets.'", "repos/shop")
    stage.tell("note project . 'Baskets are merged by the client.'", "repos/shop")
    stage.tell("note heartbeat")
    stage.tell("note heartbeat --now 'Moving carts'")
    said = (
        ("user", "Why do carts vanish after two days?"),
        ("assistant", "Redis drops them: `CART_TTL` is 48 hours, and nothing writes them anywhere else."),
    )
    lines = [
        {
            "type": role,
            "timestamp": f"{_DAY}T09:0{number}:00.000Z",
            "cwd": str(stage.home / "repos/shop"),
            "sessionId": _SESSION,
            "uuid": f"00000000-0000-4000-8000-00000000000{number}",
            "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
        }
        for number, (role, text) in enumerate(said)
    ]
    project = f".claude/projects/{_project(stage.home / 'repos/shop')}"
    stage.write(f"{project}/{_SESSION}.jsonl", "".join(json.dumps(row) + "\n" for row in lines))
    stage.show("transcripts")
    stage.tell("transcripts sync")
    stage.tell("transcripts list")
    stage.tell(f"transcripts show {_SESSION[:8]}")
    stage.tell("status closeout")
    stage.write(
        f"{project}/memory/feedback_commits.md",
        "---\nname: commits\ndescription: How ada wants commits\ntype: feedback\n---\n\n"
        "Commit messages say why, not what.\n",
    )
    stage.show("adopt")
    stage.tell("adopt claude --dry-run")
    stage.show("connect", at="repos/shop")
    stage.tell("connect --project --harness claude --yes", "repos/shop")
    stage.tell("connect --check", "repos/shop")
    stage.tell("disconnect --project --yes", "repos/shop")


def _machines(stage: Stage) -> None:
    stage.run("git init -q --bare /srv/post.git")
    stage.run("git init -q repos/notes", machine="laptop")
    stage.show("sync-add")
    stage.tell("sync key")
    stage.tell("connect machine --repo '~/repos/*' --via git --remote /srv/post.git --dry-run", machine="laptop")
    stage.show("connect-machine", machine="laptop")
    stage.show("sync-run")
    stage.show("machine-check", "copy", machine="laptop")
    stage.tell("sync receive", machine="laptop")
    stage.tell("connect machine --check", machine="laptop")
    stage.tell('connect machine --host-key "$(cat /srv/host-key)"', machine="laptop")
    stage.tell("sync run")
    stage.tell("sync status")
    stage.tell("sync share post")
    stage.tell("sync private post")
    stage.tell("sync answer --machine laptop-0123456789 --login ada")
    stage.show("pipeline", "host-show")
    stage.tell("status pipeline")
    stage.tell("host show")
    stage.tell("sync remove post")
    stage.tell("sync add post --via git --remote /srv/post.git")


def _archives(stage: Stage) -> None:
    stage.show("alf-export", "alf-check", "alf-delta", "alf-import")
    stage.tell("alf export -o one.alf")
    stage.tell("alf validate one.alf")
    stage.tell("alf show one.alf")
    record = stage.tell("alf show one.alf --records")["listed"][0]["id"]
    stage.run("truekeep note log 'One more line.'", "repos/shop")
    stage.tell("alf delta --since one.alf -o one.alf-delta")
    stage.tell("alf apply one.alf one.alf-delta -o two.alf")
    stage.tell("alf purge two.alf -o three.alf --record " + record)
    stage.tell("alf import two.alf --dry-run")


def _health(stage: Stage) -> None:
    stage.show("doctor")
    stage.tell("status")
    stage.write(".openclaw/workspace/memory/cards/odd.md", "---\ntopic: Odd\nupdated: 2199-01-01\n---\n\nOdd.\n")
    stage.tell("status problems")
    stage.run("rm .openclaw/workspace/memory/cards/odd.md")
    stage.tell("doctor")
    stage.tell("schedule install --system cron")
    stage.tell("schedule run")
    stage.tell("schedule status")
    stage.tell("schedule takeover --dry-run")
    stage.tell("schedule remove")
    stage.tell("blame MEMORY.md")


def _end(stage: Stage) -> None:
    stage.show("why", "undo")
    stage.tell("undo 3 --dry-run")
    stage.tell("undo 3")
    stage.tell("undo 9999")
    stage.tell("undo 4 9999")
    draft = "invoice-export"
    stage.run(f"truekeep review show {draft} > /srv/draft && printf '# Memory Handoff\n' > /srv/text")
    stage.tell(f"review edit {draft} --stdin < /srv/text")
    stage.tell(f"review reject {draft}")
    stage.tell(f"review approve {stage.tell('review list')['drafts'][0]['id']}")
    stage.tell("review prune --older-than 1d")
    stage.tell("host release")
    stage.tell("host take --yes")


def _split(stage: Stage) -> None:
    index = stage.memory.parent / "MEMORY.md"
    noted = "".join(f"- Noted on day {day} of the move to the new hall.\n" for day in range(1, 41))
    text = "# Memory\n\n## About Ada\n\n- Ada runs the shop, mostly in the evening.\n\n"
    text += "## Rules\n\n- Never deploy on a Friday.\n\n"
    text += "".join(f"{title}\n\n{first}\n{noted}\n" for title, first in _SECTIONS)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    index.write_text(f"{text}## Suppliers\n\n- The paper mill: token={token}\n" + "- Net 30.\n" * 30)
    stage.tell("card split")
    stage.show("card-split")
    stage.tell("card join servers")
    stage.tell("card consolidate 'The gateway and its deployment' gateway deploy")


def levelled(text: str) -> str:
    """Without what is another in every run: days, times, ids, sizes, speeds, ages, and the blanks of columns."""
    for pattern, word in (
        (r"(?m)^ *not checked yet: .*\n", ""),  # a busy machine has no time for it
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}", "ID"),
        (r"\b[0-9a-f]{8,}\b", "ID"),
        (r"\btkhost1_[\w-]+", "KEY"),
        (r"\d{4}-\d\d-\d\d(?:-\d{4}|[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?", "DAY"),
        (r"\b\d\d:\d\d\b", "TIME"),
        (r"[\d.]+ (?:B|kB|MB|GB|bytes|tokens)\b", "SIZE"),
        (r"[\d.]+ (?:s|ms|min|h|d|mo|y)\b", "SPAN"),
        (r"\b\d+ (?:minute|hour|day|week|month|year)s?\b", "SPAN"),
        (r"[+-]?\d\.\d\d\b", "SCORE"),
        (r"(?m)(growth|last touched) .*$", "COUNTS"),
        (r"(?<=drafts wait, the oldest for SPAN\n)(?: +[^-\s].*\n)+", "TITLES\n"),  # of one second, in any order
        (r"[ ─-]{2,}|\t", " "),
    ):
        text = re.sub(pattern, word, text)
    return text


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), {block.name: block for page in PAGES for block in blocks_of(page)})
        play(stage)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        told = _BLOCK.sub(lambda match: _filled(match, stage.said), text)
        if page == JSON_PAGE:
            told = _SHAPES.sub(lambda match: f"{match[1]}\n{render_shapes(stage.shapes)}\n{match[2]}", told)
        if told != text:
            page.write_text(told, encoding="utf-8")


def _filled(match: re.Match[str], said: Mapping[str, str]) -> str:
    """A block with what was said now; as it is, if that only has other days and ids."""
    name = match["name"]
    if levelled(match["text"]) == levelled(said[name]):
        return match[0]
    return f"<!-- shown: {name} -->\n\n```\n{said[name]}\n```\n"


def render_shapes(shapes: Mapping[str, tuple[str, Any]]) -> str:
    """A section for each kind, by name."""
    parts = []
    for kind, (command, shape) in sorted(shapes.items()):
        lines = "\n".join(_lines(shape))
        parts.append(f"### {kind}\n\n{command}\n\n```\n{lines}\n```\n")
    return "\n".join(parts)


def _lines(shape: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """A line for each key; what is too long for one has its keys below it."""
    width = max(map(len, shape), default=0)
    for key, inner in shape.items():
        line = f"{indent}{key.ljust(width)}  {_word(inner)}"
        within = inner[0] if isinstance(inner, list) else inner
        if len(line) <= _WIDTH or not isinstance(within, dict):
            yield line
            continue
        yield f"{indent}{key.ljust(width)}  " + ("a list of" if isinstance(inner, list) else "an object of")
        yield from _lines(within, indent + "  ")


def _word(shape: Any) -> str:
    if isinstance(shape, dict):
        return "{" + ", ".join(f"{key}: {_word(inner)}" for key, inner in shape.items()) + "}"
    if isinstance(shape, list):
        return "list" if shape[0] is None else f"[{_word(shape[0])}]"
    return " or ".join(sorted(shape, key=lambda word: (word == "null", word)))


if __name__ == "__main__":
    main()
