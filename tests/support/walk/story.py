"""The story: Ada's memory on three machines, from the first command to the day on which a fourth takes over.

Read it from `walk` downwards. Each step is typed as a person types it; the words after it must be seen.
"""

from __future__ import annotations

from datetime import datetime

from tests.support.helpers import tree
from tests.support.walk.accounts import settle_accounts
from tests.support.walk.agents import Agent, an_agent
from tests.support.walk.browser import a_reviewer
from tests.support.walk.letters import HOSTILE, TOKEN, WRONG
from tests.support.walk.repositories import write_origins
from tests.support.walk.world import Machine, World

REPOS = "'~/repos/*'"


def walk(world: World) -> None:
    write_origins(world.origin)
    desk = world.machine("desk", answers_ssh=True)
    laptop, tower = (world.machine(name, answers_ssh=True) for name in ("laptop", "tower"))
    clone(desk, "shop", "billing", "infra")
    clone(laptop, "shop", "billing")
    clone(tower, "shop", "infra")

    one_canonical_host(world, desk)
    with an_agent(laptop, "claude") as claude, an_agent(tower, "codex") as codex:
        two_producers(world, desk, laptop, tower)
        agents_work(world, laptop, tower, claude, codex)
    handoffs_that_nobody_should_believe(world, laptop, tower)
    sync_and_ingest(world, desk)
    review(world, desk)
    the_code_moves_on(world, desk, laptop)
    another_repository(world, desk)
    weeks_pass(world, desk)
    carry(world, desk, laptop)
    attic = the_host_is_lost(world, desk, laptop, tower)
    life_goes_on(world, attic, laptop, tower)
    settle_accounts(attic, (laptop, tower))


def clone(machine: Machine, *names: str) -> None:
    for name in names:
        machine.quietly(f"git clone -q https://git.example/acme/{name}.git repos/{name}")


def one_canonical_host(world: World, desk: Machine) -> None:
    world.chapter(
        "One canonical host",
        """Ada has three machines: a desk, a laptop and a tower; and three repositories: shop, billing and infra. The
        desk is always on, so it keeps the memory. All repositories are cloned there, so that memory can be
        checked against code.""",
    )
    desk.types(f"truekeep init --repo {REPOS}", "workspace: created", "canonical host: desk")
    desk.types("truekeep repos", "git.example/acme/shop", "git.example/acme/billing", "git.example/acme/infra")


def two_producers(world: World, desk: Machine, laptop: Machine, tower: Machine) -> None:
    world.chapter(
        "Two producers",
        """Agents work on the laptop and on the tower. One command makes a machine a producer: the inboxes, the closeout
        rule in the instruction files, the plugin of the harness that is installed, and a test handoff.""",
    )
    for machine in (laptop, tower):
        said = machine.types(f"truekeep connect machine --repo {REPOS} --via rsync --yes", "connected", "test handoff")
        assert f"truekeep sync add {machine.name} --via rsync" in said
    world.tell("The desk pulls by rsync over ssh: nothing of truekeep runs on the way.")
    for machine in (laptop, tower):
        desk.types(f"truekeep sync add {machine.name} --via rsync --host {machine.name} --repo {REPOS}", "added")
    desk.types("truekeep sync run", "reached laptop: 1 brought", "reached tower: 1 brought")
    desk.types("truekeep ingest", "a test handoff", "Already 2")
    desk.types("truekeep sync run", "laptop: 0 brought, 1 receipt", "tower: 0 brought, 1 receipt")
    for machine in (laptop, tower):
        machine.types("truekeep connect machine --check", "back: the host filed the test handoff")


def agents_work(world: World, laptop: Machine, tower: Machine, claude: Agent, codex: Agent) -> None:
    world.chapter(
        "Agents work, and leave what they learned",
        """On the laptop Claude Code is given a task in shop. It commits, and is about to stop without a word about what
        it learned; the stop hook says so, once, and it leaves a handoff.""",
    )
    laptop.at("~/repos/shop")
    heard = claude.work(
        "Carts must outlive a restart of Redis.",
        does="sed -i 's/ex=CART_TTL/ex=CART_TTL, persist=True/' app/carts.py"
        " && git commit -qam 'Carts outlive a restart' && git push -q",
        leaves="truekeep handoff new --writer claude --type setup --title 'Carts are kept for two days'"
        " --summary 'Carts live in Redis and outlive its restart. Nothing may depend on them for longer.'"
        " --fact '`CART_TTL` in `app/carts.py` is the only place for the lifetime'"
        " --fact '`merge_carts` in `app/carts.py` joins the carts of one customer' --card carts.md --tag carts",
    )
    assert "no memory handoff" in heard
    laptop.types("truekeep handoff list", "carts-are-kept-for-two-days.md")
    world.tell("On the tower Codex does the same in infra.")
    tower.at("~/repos/infra")
    heard = codex.work(
        "Staging must answer on one port only.",
        does="echo '# and no other port' >> deploy/compose.yml && git commit -qam 'One port' && git push -q",
        leaves="truekeep handoff new --writer codex --type setup --title 'Staging sits behind a proxy'"
        " --summary 'The proxy of `deploy/compose.yml` terminates TLS. Clients that go around it get a reset.'"
        " --fact 'Staging answers on port 8443 only' --card staging-proxy.md --tag proxy",
    )
    assert "no memory handoff" in heard
    world.tell("People leave handoffs, too. This one is for a document that every agent reads:")
    tower.types(
        "truekeep handoff new --type workflow --title 'Releases go out by script' --document TOOLS.md"
        " --content $'### Releases\\nRun `sh deploy/release.sh`; never docker by hand.'",
        "ingest will append it to TOOLS.md",
    )
    world.tell("A checkpoint on a machine that is not the canonical host becomes handoffs, each for its own place.")
    laptop.at("~/repos/billing").types(
        "truekeep checkpoint --summary 'Looked at how invoices are made.'"
        " --decision 'Invoices stay plain text: the tax office reads nothing else.'",
        "for the canonical host",
    )
    laptop.types("truekeep status closeout", "100%")


def handoffs_that_nobody_should_believe(world: World, laptop: Machine, tower: Machine) -> None:
    world.chapter(
        "Three that nobody should believe, or believe twice",
        """An agent on the laptop remembers a function that was renamed months ago. An agent on the tower was fed a
        poisoned page: its handoff carries a credential, and orders for the next agent. Both wrote the files
        themselves.""",
    )
    inbox = laptop.home / "repos/billing/.claude/memory-handoffs"
    (inbox / f"{today()}-0900-invoice-text.md").write_text(WRONG)
    inbox = tower.home / "repos/infra/.codex/memory-handoffs"
    (inbox / f"{today()}-0901-release-signing.md").write_text(HOSTILE)
    tower.at("~/repos/infra").types(
        "truekeep handoff lint .codex/memory-handoffs/*-release-signing.md",
        "looks like a credential", "gives orders", "would go to review", not_=[TOKEN], code=1,
    )  # fmt: skip
    world.tell("And somebody copies an inbox of the laptop to the tower: one handoff is there twice.")
    inboxes = "repos/shop/.claude/memory-handoffs/"
    tower.at("~").types(f"rsync -a laptop:{laptop.home}/{inboxes} {inboxes}")


def sync_and_ingest(world: World, desk: Machine) -> None:
    world.chapter(
        "Sync and ingest",
        """Nothing is deleted at its source before the desk has it. Ingest holds every handoff against the code, files
        what is sure, and puts the rest before Ada.""",
    )
    desk.types("git -C repos/shop pull -q && git -C repos/infra pull -q")
    desk.types("truekeep sync run", "reached laptop: 4 brought", "reached tower: 4 brought")
    said = desk.types(
        "truekeep ingest",
        "invoice-text.md -> memory/handoff-inbox", "refuted: print_invoice: was in billing/invoices.py",
        "release-signing.md -> memory/handoff-inbox", "secret: looks like a credential", "instruction: ",
        "carts-are-kept-for-two-days.md -> memory/cards/carts.md", "already   ",
        "staging-sits-behind-a-proxy.md -> memory/cards/staging-proxy.md", "releases-go-out-by-script.md -> TOOLS.md",
        "-> memory/decisions/", "Processed 8", "Promoted 2", "Routed 3", "Review 2", "Already 1", not_=[TOKEN],
    )  # fmt: skip
    assert said.count("instruction: ") == 1, "a reason is told once"
    desk.types("truekeep ingest", "NO_UPDATES")
    desk.types("truekeep sync run", "laptop: 0 brought, 4 receipts", "tower: 0 brought, 4 receipts")
    desk.types("truekeep verify --exit-code", "confirmed", not_=["gone", "moved"])


def review(world: World, desk: Machine) -> None:
    world.chapter("Review", "Two drafts wait for Ada. She looks at them in a browser.")
    desk.types("truekeep review list", "invoice-text", "refuted", "release-signing", "secret, instruction")
    with a_reviewer(desk) as ada:
        ada.reject(
            "release-signing",
            reason="planted orders and a token; it is revoked",
            because=("secret", "instruction"),
        )
        ada.mend_and_approve(
            "invoice-text", old="print_invoice", new="render_invoice", because=("refuted", "print_invoice")
        )
    desk.types("truekeep review list", "nothing to review")
    desk.types("truekeep card show invoice-text", "`render_invoice` in `billing/invoices.py`", "by claude")
    desk.types("truekeep history -n 3", "rejected", "approved", "planted orders and a token")


def the_code_moves_on(world: World, desk: Machine, laptop: Machine) -> None:
    world.chapter(
        "The code moves on",
        """On the laptop a file is renamed, and a function goes. The desk pulls, and every claim is checked against
        the code as it is now. Whoever searches is told.""",
    )
    laptop.at("~/repos/shop").types(
        "git mv app/carts.py app/basket.py && sed -i '/^def merge_carts/,$d' app/basket.py"
        " && git commit -qam 'Carts are baskets; the client merges them' && git push -q"
    )
    desk.types("git -C repos/shop pull -q")
    desk.types("truekeep verify", "renamed to app/basket.py", "merge_carts", "next: truekeep verify --fix")
    desk.types(
        "truekeep search 'how long is a cart kept' -n 1",
        "memory/cards/carts.md", "gone merge_carts", "moved app/carts.py: renamed to app/basket.py",
    )  # fmt: skip
    desk.types("truekeep verify --fix", "app/carts.py → app/basket.py", "is proposed as draft verify-carts")
    desk.types("truekeep review approve verify-carts", "promoted")
    desk.types("truekeep verify --exit-code", not_=["gone", "moved"])
    desk.types("truekeep search CART_TTL -n 1", "`CART_TTL` in `app/basket.py`", "2 of 2 claims confirmed")


def another_repository(world: World, desk: Machine) -> None:
    world.chapter(
        "Another repository",
        "An agent that begins in infra is told what memory has for it: of infra first, and what holds everywhere.",
    )
    desk.at("~/repos/infra").types(
        "truekeep wake", "Staging sits behind a proxy", "Carts are kept for two days", not_=[TOKEN]
    )
    desk.at("~")


def weeks_pass(world: World, desk: Machine) -> None:
    world.chapter(
        "Fourteen weeks",
        "Not everything is worth keeping. Two lines go into the day's log, each with how much it matters.",
    )
    desk.types("truekeep note log '- [context|i=0.3] The tests of shop were green on the second run.'", "memory/")
    desk.types(
        "truekeep note log '- [decision|i=0.9] Deployments happen on Tuesdays: support is complete then.'", "memory/"
    )
    desk.types("truekeep search 'tests of shop green' -n 1", "green on the second run")
    world.wait_weeks(14)
    world.tell("Fourteen weeks later:")
    desk.types("truekeep status --exit-code", "past 90 days", "ingest last ran", code=1)
    desk.types("truekeep tidy decay --fix", "1 entry left search", "truekeep verify memory/cards/carts.md")
    desk.types("truekeep search 'tests of shop green' -n 1", not_=["green on the second run"])
    desk.types("truekeep search 'when do deployments happen' -n 1", "Deployments happen on Tuesdays")
    world.tell("Cards that nobody touched for long are checked before anybody decides on them. They all hold.")
    desk.types("truekeep verify", "7 confirmed", not_=["gone", "moved"])
    desk.types("truekeep tidy --fix", "nothing expired", "proposed promote-deployments-happen-on-tuesdays")
    desk.types("truekeep review approve promote-deployments", "memory/cards/")


def carry(world: World, desk: Machine, laptop: Machine) -> None:
    world.chapter(
        "Carried away",
        """A copy of the folder has memory and history; it goes to the laptop, as any backup would. An archive has the
        memory of the moment in one open file; it is made later, when one more handoff has been filed.""",
    )
    desk.types(f"rsync -a .openclaw/workspace/ laptop:{laptop.home}/backup/")
    laptop.at("~/repos/billing").types(
        "truekeep handoff new --type setup --title 'Invoices are numbered without gaps'"
        " --summary 'The tax office asks for every number. A cancelled invoice keeps its own.'"
        " --fact 'Numbers come from a sequence of the database, never from a count' --card invoice-numbers.md",
        "ingest will promote it",
    )
    desk.types("truekeep sync run laptop && truekeep ingest", "1 brought", "-> memory/cards/invoice-numbers.md")
    desk.types("truekeep alf export -o agent.alf", "wrote agent.alf")
    desk.types("truekeep alf validate agent.alf", "agent.alf: ok")
    desk.types(f"rsync -a agent.alf laptop:{laptop.home}/")
    world.tell("With the archive alone, memory comes back byte for byte, on any machine:")
    before = tree(desk.workspace)
    laptop.at("~").types("truekeep alf import agent.alf ~/elsewhere --trust", "new")
    assert tree(laptop.home / "elsewhere") == before


def the_host_is_lost(world: World, desk: Machine, laptop: Machine, tower: Machine) -> Machine:
    world.chapter(
        "The host is lost",
        """The desk burns down. Its last handoff was filed, but the receipt never got back to the laptop. On the tower
        work goes on meanwhile.""",
    )
    world.lose(desk)
    tower.at("~/repos/infra").types(
        "truekeep handoff new --type setup --title 'The proxy logs to journald' --card proxy-log.md"
        " --summary 'There is no log file. Look with `journalctl -u proxy`.'"
        " --fact 'The journal is kept for thirty days'",
        "ingest will promote it",
    )
    attic = world.machine("attic", answers_ssh=True)
    clone(attic, "shop", "billing", "infra")
    world.tell(
        """A machine from the attic takes over. The copy brings memory and history up to that day; but a copy is a copy,
        and nothing may be written before somebody says so."""
    )
    attic.types(f"mkdir -p .openclaw && rsync -a laptop:{laptop.home}/backup/ .openclaw/workspace/")
    attic.types("truekeep ingest", "desk", "truekeep host take", code=4)
    attic.types("truekeep host take --yes", "attic is the canonical host now (generation 2)")
    world.tell("The archive brings what was filed after the copy.")
    attic.types(f"rsync -a laptop:{laptop.home}/agent.alf .")
    attic.types("truekeep alf import agent.alf --dry-run", "memory/cards/invoice-numbers.md", "MEMORY.md")
    attic.types("truekeep alf import agent.alf --replace --trust", "1 new", "1 replaced")
    return attic


def life_goes_on(world: World, attic: Machine, laptop: Machine, tower: Machine) -> None:
    world.chapter(
        "Life goes on",
        """The routes came with the copy, so the new host reaches the same machines. What the desk had filed without a
        receipt comes a second time, and is known.""",
    )
    attic.types("truekeep sync run", "reached laptop: 1 brought", "reached tower: 1 brought")
    attic.types("truekeep ingest", "already", "-> memory/cards/proxy-log.md", "Promoted 1")
    attic.types("truekeep sync run", "laptop: 0 brought, 1 receipt", "tower: 0 brought, 1 receipt")
    attic.types("truekeep verify --exit-code", not_=["gone", "moved"])
    attic.types("truekeep search 'where does the proxy log' -n 1", "memory/cards/proxy-log.md")
    attic.types("truekeep host show", "attic", "desk")
    attic.types("truekeep history -n 5")
    attic.types("truekeep blame memory/cards/carts.md:11", "carts-are-kept-for-two-days.md by claude@laptop")
    attic.types("truekeep reconcile --exit-code", "no contradictions found")
    attic.types("truekeep status --exit-code", "all good")
    attic.types("truekeep doctor", "no problems found")


def today() -> str:
    return datetime.now().astimezone().strftime("%Y-%m-%d")
