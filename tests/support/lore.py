"""What people and agents write down in a made-up year: services, their values, things to know, all in several wordings.

The sentences were written before anybody looked at how truekeep reads values, the way people write them: that some of
them may be missed is the point. A wording is plain text with the slots that it needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

AREAS = """
    billing invoice payout refund tax ledger pricing coupon loyalty checkout cart catalog search media thumbnail geocode
    route fleet driver courier parcel warehouse stock supplier customs email sms push webhook audit consent session
    identity token quota meter trace alert incident backup snapshot archive import export report forecast survey chat
""".split()  # noqa: SIM905
ROLES = "api worker gateway exporter scheduler proxy indexer dashboard broker relay collector mirror".split()  # noqa: SIM905
REPOSITORIES = "shop depot atlas ledgerline courier-app console".split()  # noqa: SIM905
TOOLS = """
    PostgreSQL Node Redis Terraform Go Python Kubernetes nginx RabbitMQ Kafka Ruby Django React webpack Elasticsearch
    Grafana Prometheus Vault Consul Helm Ansible Docker Gradle Java Rust TypeScript pnpm Vite Poetry OpenSSL
""".split()  # noqa: SIM905


class Service(NamedTuple):
    """Something that runs somewhere."""

    area: str
    role: str

    @property
    def slug(self) -> str:
        return f"{self.area}-{self.role}"

    @property
    def name(self) -> str:
        return f"{self.area} {'API' if self.role == 'api' else self.role}"

    @property
    def setting(self) -> str:
        return f"{self.area}_{self.role}".upper()


def services(random: Random, count: int) -> list[Service]:
    """Different ones, in no order."""
    every = [Service(area, role) for area in AREAS for role in ROLES]
    random.shuffle(every)
    return every[:count]


# What has a value. In each list, any two sentences about one thing are about the same thing.

VALUES: dict[str, tuple[str, ...]] = {
    "port": (
        "The {name} listens on port {value}.",
        "The {name} runs on port {value} behind the load balancer.",
        "Port {value} belongs to the {name}.",
        "The port of the {name} is {value}, not the framework's default.",
        "The {name}'s port is {value}.",
        "{slug}: port {value}",
        "We moved the {name} to port {value} because Jenkins had taken 8080.",
        "The {name} binds to `0.0.0.0:{value}`.",
        "nginx forwards to the {name} on port {value}.",
        "For the {name}, use port {value}.",
        "The {name} is exposed on port {value} of the host.",
        "The {name} is reachable at `http://localhost:{value}`.",
        "`{slug}` answers on `:{value}`; TLS ends at the proxy.",
    ),
    "version": (
        "The {name} is at version {value}.",
        "`{slug}` is pinned to {value}.",
        "`{slug}` stays at {value} until the migration is through.",
        "We run {slug} {value}.",
        "The version of the {name} is {value}.",
        "The current version of the {name} is {value}.",
        "{slug} version: {value}",
        "The {name} was upgraded to {value}.",
        "The released version of `{slug}` is v{value}.",
    ),
    "tool": (
        "{tool} is pinned to {value} because newer releases break the plugin.",
        "We use {tool} {value}.",
        "The {tool} version is {value}.",
        "{tool} stays at version {value} until the vendor has a fix.",
        "{tool} {value} is required; older ones fail at start.",
        "{tool}: {value}",
        "The project is on {tool} {value}.",
        "We upgraded {tool} to {value}.",
        "{tool} must be {value} or the lock file changes.",
    ),
    "logs": (
        "The {name} writes its logs to `{value}`.",
        "Logs of the {name} are in `{value}`.",
        "The logs of the {name} are written to {value}.",
        "The {name} logs to `{value}`.",
        "Look for the {name}'s logs in {value}.",
        "The log directory of the {name} is `{value}`.",
        "{slug} logs: `{value}`",
    ),
    "config": (
        "The {name} reads its configuration from `{value}`.",
        "The configuration of the {name} is in `{value}`.",
        "The config file of the {name} is `{value}`.",
        "The {name} is configured in {value}.",
        "The {name} keeps its config at `{value}`.",
        "The {name}'s config file lives at {value}.",
        "{slug} config: `{value}`",
    ),
    "data": (
        "The {name} keeps its data in `{value}`.",
        "The data directory of the {name} is `{value}`.",
        "The {name} stores its data under {value}.",
        "Data of the {name} is stored in `{value}`.",
        "The {name}'s data directory is {value}.",
    ),
    "switch": (
        "Feature flag `{flag}` is {on}.",
        "The flag `{flag}` is {enabled}.",
        "`{flag}` is {on} for everybody.",
        "`{flag}` is set to `{true}`.",
        "`{flag}` must stay {on}; support asked for it.",
        "`{flag}` is {enabled} because the vendor's API times out.",
        "We keep `{flag}` turned {on}.",
        "{flag} = {true}",
    ),
    "setting": (
        "`{setting}` is {value}.",
        "`{setting}` is set to {value}.",
        "`{setting}={value}` on every host.",
        "Set `{setting}` to {value}, or uploads are cut off.",
        "{setting}: {value}",
        "The value of `{setting}` is {value}.",
        "We run with `{setting}={value}`.",
        "`{setting}` must be {value}.",
    ),
    "option": (
        "Run the {name} with `--{option} {value}`.",
        "The {name} is started with `--{option}={value}`.",
        "Start `{slug}` with `--{option} {value}`, or it falls behind.",
        "The {name} runs with `--{option} {value}`.",
        "`{slug} --{option}={value}` is how it is started.",
    ),
}
OPTIONS = "batch-size workers max-retries prefetch page-size shards queue-depth parallel timeout-ms burst".split()  # noqa: SIM905
SETTINGS = "MAX_UPLOAD_MB POOL_SIZE RETRY_LIMIT CACHE_TTL BATCH_ROWS PAGE_LIMIT LEASE_SECONDS QUEUE_LENGTH".split()  # noqa: SIM905
FLAGS = "new_checkout dark_mode async_export strict_mode fast_path dual_write shadow_reads lazy_load".split()  # noqa: SIM905

# Numbers, paths and words near a thing that are not its value, or not the one that others speak of.

ASIDES: tuple[str, ...] = (
    "Until 2024 the {name} listened on port {stray}.",
    "The {name} used to run on port {stray}.",
    "The metrics endpoint of the {name} is on port {stray}.",
    "In staging the {name} listens on port {stray}.",
    "The {name} answers 502 while the cache warms up, and 503 during a deploy.",
    "Port {stray} is closed on the hosts of the {name}.",
    "The {name} talks to Redis on port 6379.",
    "Do not start the {name} on port {stray}: the firewall drops it.",
    "The {name} retries {few} times and then gives up.",
    "The load test sent {stray} requests a minute to the {name}.",
    "Version {old} of the {name} lost messages on restart.",
    "Since version {old} the {name} checks signatures.",
    "The {name} was rewritten after {old}; tickets about older versions can be closed.",
    "The dump of the {name} from March is in `/tmp/{slug}-dump`.",
    "Old logs of the {name} were copied to `/mnt/cold/{slug}` once.",
    "If `{setting}` were {stray}, the {name} would run out of memory.",
    "`{setting}` was {stray} before the incident.",
    "The {name} needs {few} replicas at noon.",
    "Ticket {stray} has the discussion about the {name}.",
    "By default `{setting}` is {stray}.",
    "`{slug}` serves metrics over HTTP on port {stray}.",
)

# Other sentences about the same things. Nobody looks at them while mending how values are read: they tell how well that
# does on sentences that it was not made for.

HELD_VALUES: dict[str, tuple[str, ...]] = {
    "port": (
        "The {name} can be reached on port {value}.",
        "The {name} is served from port {value}.",
        "The {name} moved to port {value}.",
        "The {name} listens on {value}.",
        "`{slug}` is published on {value}/tcp.",
        "The default port for the {name} is {value}.",
        "Port {value} is used by the {name}.",
        "Port {value}: {name}",
        "**{slug}**: listens on `{value}`",
        "`curl http://localhost:{value}/healthz` checks the {name}.",
        "The {name} (port {value}) sits behind nginx.",
    ),
    "version": (
        "{slug} {value} is what production runs.",
        "`{slug}=={value}` is in the lock file.",
        "`{slug}@{value}` is what we ship.",
        "The {name} is on {value}.",
        "Current {slug} release: {value}",
        "We are on version {value} of the {name}.",
        "The {name} has been at {value} since the spring.",
        "Keep the {name} at {value}.",
    ),
    "tool": (
        "Stick to {tool} {value}.",
        "Only {tool} {value} works.",
        "We are on {tool} {value}.",
        "The required {tool} version is {value}.",
        "Install {tool} {value}, nothing newer.",
        "`{tool}` is locked at {value}.",
        "Needs {tool} v{value}.",
    ),
    "logs": (
        "Log files of the {name} end up in {value}.",
        "Find the {name} logs in `{value}`.",
        "The {name} puts its logs into {value}.",
        "The log path of the {name} is {value}.",
        "The {name}'s logs are at `{value}`.",
    ),
    "config": (
        "Edit `{value}` to configure the {name}.",
        "Configuration for the {name} comes from `{value}`.",
        "The {name} loads its config from {value}.",
        "`{value}` is the config file of the {name}.",
    ),
    "data": (
        "The {name}'s data lives in {value}.",
        "All data of the {name} is under `{value}`.",
        "The {name} saves its data to {value}.",
        "`{value}` holds the data of the {name}.",
    ),
    "switch": (
        "We turned {on} `{flag}`.",
        "Leave `{flag}` {on}.",
        "`{flag}` should be {on}.",
        "`{flag}: {true}`",
        "The `{flag}` feature is {enabled}.",
        "`{flag}` stays {enabled}.",
    ),
    "setting": (
        "`{setting}` has to be {value}.",
        "Use `{setting}={value}`.",
        "We raised `{setting}` to {value}.",
        "`{setting}` stays at {value}.",
        "export {setting}={value}",
    ),
    "option": (
        "Pass `--{option} {value}` to the {name}.",
        "The {name} needs `--{option}={value}`.",
        "Use `--{option} {value}` for the {name}.",
        "`--{option} {value}` is what the {name} runs with.",
        "We launch the {name} with `--{option}={value}`.",
    ),
}
HELD_ASIDES: tuple[str, ...] = (
    "The {name} will move to port {stray} next year.",
    "Port {stray} was the port of the {name} before the move.",
    "A {name} on port {stray} would clash with Grafana.",
    "In tests the {name} gets port {stray}.",
    "The {name} used {old} for a long time.",
    "Upgrading the {name} from {old} took a weekend.",
    "Bug in {old}: the {name} forgot its offsets.",
    "Do not set `{setting}` to {stray}.",
    "`{setting}` used to be {stray}.",
    "Never pass `--burst {stray}` to the {name}.",
    "The {name} no longer writes to `/var/old/{slug}`.",
    "For debugging, the {name} can write to `/tmp/{slug}.log`.",
    "For example, `{setting}={stray}`.",
    "The {name} handles {stray} orders a day.",
)

# Things to know, each in several wordings that say the same.

FACTS: tuple[tuple[str, ...], ...] = (
    (
        "Restart the {other} before the {name}, or health checks fail for {few} minutes.",
        "When both are restarted, the {other} goes first; otherwise the {name} is unhealthy for {few} minutes.",
    ),
    (
        "The {name} drops messages larger than {size} kB without a word.",
        "Messages above {size} kB are silently dropped by the {name}.",
    ),
    (
        "Decided: retries in the {name} stay at {few}, because the upstream bans noisy clients.",
        "The {name} retries {few} times and no more; that was decided because upstream bans clients that are noisy.",
    ),
    (
        "Never run migrations for the {name} while the {other} is importing; the lock is held for the whole import.",
        "Migrations of the {name} wait until the {other} has finished importing, since the import holds the lock.",
    ),
    (
        "The {name} signs its callbacks; a receiver that skips the check was a finding in the {word} audit.",
        "Callbacks from the {name} are signed. Skipping that check in a receiver was found by the {word} audit.",
    ),
    (
        "{person} wants a changelog entry for every change to the {name}, even for typing fixes.",
        "Every change to the {name} needs an entry in the changelog, typing fixes included; {person} insists on it.",
    ),
    (
        "The {name} caches {thing} for {few} hours, so a change is seen late.",
        "Changes to {thing} show up late because the {name} caches them for {few} hours.",
    ),
    (
        "Time zones in the {name} are those of the {place} office, not UTC.",
        "Careful with times from the {name}: they are in the zone of the {place} office and not in UTC.",
    ),
    (
        "The {name} must not log {thing}; the contract with the {place} customer forbids it.",
        "Because of the contract with the {place} customer, {thing} must never appear in logs of the {name}.",
    ),
    (
        "We chose {tool} over a home-grown {word} for the {name}, since nobody wants to be on call for it.",
        "For the {name} a home-grown {word} was turned down in favour of {tool}: nobody wants to be on call for one.",
    ),
    (
        "The sandbox of the {name} accepts every card number that ends in {size}.",
        "Any card number ending in {size} is accepted in the sandbox of the {name}.",
    ),
    (
        "The {name} reads {thing} once at start; changing them needs a restart.",
        "A restart is needed after changing {thing}: the {name} reads them at start only.",
    ),
    (
        "Deploys of the {name} are frozen from the {word} close until {person} lifts it.",
        "{person} lifts the deploy freeze of the {name} after the {word} close; until then nothing goes out.",
    ),
    (
        "The queue between the {name} and the {other} is not ordered; sort by the {word} number.",
        "Sort by the {word} number, since the queue from the {name} to the {other} does not keep the order.",
    ),
    (
        "Two instances of the {name} at a time corrupt {thing}; the {word} lock keeps them apart.",
        "The {word} lock exists because {thing} get corrupted when the {name} runs twice at a time.",
    ),
    (
        "The {place} region of the {name} is read-only; writes go to the other one and come back in {few} seconds.",
        "Writes to the {name} go elsewhere, as its {place} region is read-only, and appear there {few} seconds later.",
    ),
    (
        "Use the {word} client for the {name}; the generated one leaks connections.",
        "The generated client leaks connections, so the {name} is called through the {word} client.",
    ),
    (
        "The {name} treats an empty {word} as all of them, which once mailed every customer.",
        "An empty {word} means all of them to the {name}. That once sent mail to every customer.",
    ),
    (
        "{person} prefers small pull requests for the {name}: one {word} a time, tests first.",
        "Pull requests to the {name} should be small, one {word} each, with the tests first; {person} asked for that.",
    ),
    (
        "Backups of the {name} are taken by the {other} and are encrypted with the {place} key.",
        "The {other} takes the backups of the {name}; the {place} key encrypts them.",
    ),
    (
        "The {name} sends {thing} in cents, the {other} in whole units.",
        "Amounts differ: {thing} are cents in the {name} and whole units in the {other}.",
    ),
    (
        "Alerts of the {name} below {size} errors an hour are noise and were muted on purpose.",
        "On purpose, alerts of the {name} are muted below {size} errors an hour; they are noise.",
    ),
    (
        "The vendor of the {word} module answers tickets for the {name} only in English and before noon.",
        "Tickets to the vendor of the {word} module, which the {name} needs, are answered before noon and in English.",
    ),
    (
        "Soft deletes in the {name} keep {thing} for {size} days; legal asked for that.",
        "Legal wants {thing} kept for {size} days, which is why the {name} deletes softly.",
    ),
    (
        "The integration tests of the {name} need the {word} fixture and fail with a time-out without it.",
        "Without the {word} fixture, integration tests of the {name} end in a time-out.",
    ),
    (
        "The {name} paginates by {word}, not by offset; pages may be short without being the last.",
        "Pages of the {name} go by {word} instead of offset, and a short page is not the last one.",
    ),
    (
        "Rotating the key of the {name} needs the {other} drained first, or {few} in ten requests fail.",
        "Drain the {other} before the key of the {name} is rotated; otherwise {few} of ten requests fail.",
    ),
    (
        "The {place} team owns the {name}; questions go to their channel and not to {person}.",
        "Questions about the {name} belong in the channel of the {place} team, which owns it, not with {person}.",
    ),
    (
        "The {name} compares {thing} case-sensitively, although the {other} does not.",
        "Case matters for {thing} in the {name}; in the {other} it does not.",
    ),
    (
        "Feature work on the {name} happens behind the {word} switch; {person} removes it after two quiet weeks.",
        "After two quiet weeks {person} takes out the {word} switch that feature work on the {name} hides behind.",
    ),
    (
        "The {word} report of the {name} counts returns twice; finance knows and corrects it by hand.",
        "Finance corrects the {word} report by hand, as the {name} counts returns twice in it.",
    ),
    (
        "The {name} has no staging data for the {place} market; use the recorded {word} set.",
        "There is no staging data of the {place} market in the {name}; the recorded {word} set stands in.",
    ),
    (
        "Bulk loads into the {name} go through the {word} endpoint; the ordinary one locks {thing} row by row.",
        "The ordinary endpoint of the {name} locks {thing} row by row, so bulk loads take the {word} endpoint.",
    ),
    (
        "The {name} falls back to {place} when the {other} is slow, and bills are then off by a day.",
        "If the {other} is slow, the {name} falls back to {place}; bills are off by a day then.",
    ),
    (
        "A {word} certificate of the {name} expires without a warning; {person} renews it by hand.",
        "{person} renews the {word} certificate of the {name} by hand: nothing warns before it expires.",
    ),
    (
        "The {name} needs {thing} sorted by {word}; unsorted input doubles its memory.",
        "Memory of the {name} doubles when {thing} are not sorted by {word}.",
    ),
)
THINGS = """
    prices, tax rates, addresses, customer names, order lines, delivery slots, exchange rates, feature lists,
    access rules, receipts, stock counts, route plans, phone numbers, signatures, discount codes, opening hours,
    return labels, driver notes, cost centres, account numbers, billing periods, mail templates, audit trails,
    consent texts, search synonyms, image sizes, holiday calendars, packing lists, shift plans, credit notes,
    vehicle weights, gate codes, loyalty points, tariff codes, survey answers
"""
THING_LIST = [thing.strip() for thing in THINGS.split(",")]
PLACES = """
    Hamburg Porto Lyon Oslo Dublin Austin Toronto Osaka Lagos Lima Pune Tallinn Ghent Bergen Malmo Turin Seville Gdansk
    Quito Nairobi Perth Leeds Utrecht Basel Graz Cork Split Riga Vilnius Aarhus Bilbao Brno
""".split()  # noqa: SIM905
PEOPLE = """
    Amira Jonas Priya Tomasz Ines Kofi Lena Marek Yuki Omar Greta Paolo Nadia Sven Chiara Emeka Freya Hugo Ilse Rafael
    Selma Viktor Wanjiru Zoe
""".split()  # noqa: SIM905
WORDS = """
    quarterly monthly legacy nightly regional weekly wholesale seasonal interim customs carrier merchant tenant voucher
    cursor sequence partition window payload digest contract baseline canary reserve settlement manifest invoice pallet
    tracking shipment region locale tariff rebate margin handover inventory docking picking staging retail outbound
    inbound batch cluster replica envelope fragment checksum heartbeat lease throttle watermark snapshot rollback
    primary secondary fallback courier mailbox printer scanner turnstile forklift tablet kiosk terminal beacon
""".split()  # noqa: SIM905


class Said(NamedTuple):
    """One thing to know about a service: which, and what is in its slots."""

    fact: int
    slots: tuple[tuple[str, str], ...]

    def worded(self, wording: int) -> str:
        wordings = FACTS[self.fact]
        return wordings[wording % len(wordings)].format(**dict(self.slots))


def a_fact(random: Random, service: Service, other: Service, fact: int | None = None) -> Said:
    slots = {
        "name": service.name,
        "slug": service.slug,
        "other": other.name,
        "few": str(random.randint(2, 9)),
        "size": str(random.randint(11, 999)),
        "word": random.choice(WORDS),
        "thing": random.choice(THING_LIST),
        "place": random.choice(PLACES),
        "person": random.choice(PEOPLE),
        "tool": random.choice(TOOLS),
    }
    return Said(random.randrange(len(FACTS)) if fact is None else fact, tuple(slots.items()))


def an_aside(random: Random, service: Service, text: str = "") -> str:
    return (text or random.choice(ASIDES)).format(
        name=service.name,
        slug=service.slug,
        setting=f"{service.setting}_{random.choice(SETTINGS)}",
        stray=random.randint(1024, 9999),
        few=random.randint(2, 9),
        old=f"{random.randint(0, 3)}.{random.randint(0, 20)}.{random.randint(0, 9)}",
    )


class Thing(NamedTuple):
    """Something that has a value."""

    kind: str
    service: Service
    more: str = ""  # the tool, the option, the setting or the flag

    def value(self, random: Random) -> str:
        slug = self.service.slug
        if self.kind == "port":
            return str(random.randint(3000, 9899))
        if self.kind in ("version", "tool"):
            return f"{random.randint(1, 24)}.{random.randint(0, 30)}.{random.randint(0, 9)}"
        if self.kind in ("logs", "config", "data"):
            root = {"logs": "/var/log", "config": "/etc", "data": "/srv"}[self.kind]
            tail = {"logs": "", "config": "/config.toml", "data": "/data"}[self.kind]
            return f"{root}/{random.choice(WORDS)}/{slug}{tail}"
        if self.kind == "switch":
            return random.choice(("true", "false"))
        return str(random.randint(2, 4000))

    def other_value(self, random: Random, value: str) -> str:
        if self.kind == "switch":
            return "false" if value == "true" else "true"
        while (other := self.value(random)) == value:
            pass
        return other

    def say(self, value: str, wording: int, texts: Mapping[str, Sequence[str]] = VALUES) -> str:
        return texts[self.kind][wording % len(texts[self.kind])].format(
            name=self.service.name,
            slug=self.service.slug,
            value=value,
            tool=self.more,
            option=self.more,
            setting=self.more,
            flag=self.more,
            true=value,
            on="on" if value == "true" else "off",
            enabled="enabled" if value == "true" else "disabled",
        )


def a_thing(random: Random, service: Service, kind: str = "") -> Thing:
    """Something of a service that has a value. A tool's version holds for a whole repository."""
    kind = kind or random.choice([kind for kind in VALUES if kind != "tool"])
    if kind == "tool":
        return Thing(kind, service, random.choice(TOOLS))
    if kind == "option":
        return Thing(kind, service, random.choice(OPTIONS))
    if kind == "setting":
        return Thing(kind, service, f"{service.setting}_{random.choice(SETTINGS)}")
    if kind == "switch":
        return Thing(kind, service, f"{service.area}_{service.role}_{random.choice(FLAGS)}")
    return Thing(kind, service)


def wordings(kind: str) -> Sequence[int]:
    return range(len(VALUES[kind]))
