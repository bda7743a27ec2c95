"""Finds the repository of cards that name none, by checking their claims against every configured checkout.

A claim identifies a repository if it is distinctive (a path with folders, a name that is not a common word, a commit, a
flag or variable of its own) and exactly one repository here has it, now or in its history. A card is matched if several
claims identify the same repository, none identifies another, and most of what the card names is there; or if its text
contains the full name of one repository. Otherwise the candidates are reported and nothing is written. A card can only
be matched to a checkout that the user configured.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from truekeep.core.dates import as_stamp
from truekeep.core.errors import EditedSince
from truekeep.core.file_io import ChangedSince, UnsafePath, read_regular
from truekeep.core.git import Git
from truekeep.core.model import Splice
from truekeep.core.repository import GitFailed, repository_name
from truekeep.memory.card import Card, parse_card, place_field
from truekeep.memory.frontmatter import quote
from truekeep.memory.ledger import LedgerEntry
from truekeep.memory.staging import Staging
from truekeep.search.file_metadata import describe
from truekeep.text.encoding import decode_text
from truekeep.text.phrases import load_phrases
from truekeep.text.secrets.scanner import withhold
from truekeep.text.unicode import printable
from truekeep.verify.cache import retry_if_damaged
from truekeep.verify.checkout import VerifyTimeout
from truekeep.verify.checkouts import Checkout, choose_checkout
from truekeep.verify.claim import Claim
from truekeep.verify.claims.extract import extract_claims
from truekeep.verify.claims.patterns import PRODUCTS, TOOLS, TOP_FOLDERS, WELL_KNOWN
from truekeep.verify.dispatch import judge
from truekeep.verify.question import Question
from truekeep.verify.repository import Options, World
from truekeep.verify.verdict import CHANGED, CONFIRMED, GONE, MOVED, Verdict

if TYPE_CHECKING:
    from datetime import datetime

    from truekeep.memory.transaction import MemoryTransaction
    from truekeep.verify.cache import FactsCache
    from truekeep.verify.results import MemoryText

MATCHED, AMBIGUOUS, THIN = OUTCOMES = ("matched", "ambiguous", "thin")
_MIN_CLAIMS = 3  # that identify the repository
_MIN_SURE_CLAIMS = 2  # of these, paths, definitions or commits rather than variables and flags
_MAX_CLAIMS_PER_CARD = 100  # distinctive ones
_MAX_PROOFS_SHOWN = 5

_PRESENT_REASONS = frozenset(("exists", "defined", "in-code", "same-line", "on-branch", "other-branch"))
_PAST_REASONS = frozenset(
    ("deleted", "deleted-here", "removed", "only-mentioned", "several", "line-removed", "beyond-the-end", "unreachable")
)
_KNOWN_REASONS = frozenset(
    ("several", "ambiguous", "other-branch")
)  # unverifiable, but the repository has something of that name

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "codeberg.org")


@cache
def _common_names() -> frozenset[str]:
    """Return lower-case names that too many projects use to identify one."""
    files = (name.partition(".")[0] for name in WELL_KNOWN)
    names = (name.lower() for name in (*TOP_FOLDERS, *files))
    return load_phrases("repositories").words("common") | TOOLS | PRODUCTS | frozenset(names)


class Proof(NamedTuple):
    """A claim that exactly one repository here has."""

    claim: Claim
    verdict: Verdict
    is_sure: bool  # a path, a definition, a commit


class RepositoryCandidate(NamedTuple):
    """A repository that a card may be about, and the evidence for it."""

    repository: str  # as a card names it; empty if its name is not unique
    root: str
    proofs: tuple[Proof, ...]
    is_named: bool  # in the card's text
    unknown: int  # distinctive claims of the card that it does not have

    @property
    def evidence(self) -> tuple[Verdict, ...]:
        return tuple(proof.verdict for proof in self.proofs)


class Match(NamedTuple):
    """The result of matching one card."""

    path: str
    outcome: str
    why: str
    candidates: tuple[RepositoryCandidate, ...]  # most likely first; for a match, only that one
    digest: str  # of the card's bytes when it was read
    problem: str = ""  # why the repository cannot be written into its frontmatter

    @property
    def repository(self) -> str:
        return self.candidates[0].repository if self.outcome == MATCHED else ""

    @property
    def is_writable(self) -> bool:
        return self.outcome == MATCHED and not self.problem


class AssignmentOutcome(NamedTuple):
    """The result of writing a match into its card."""

    path: str
    entry: int | None  # of the ledger; None if nothing was written
    message: str


class _LocalRepository(NamedTuple):
    """A repository on this machine, and the checkout to use for it."""

    name: str
    checkout: Checkout
    remotes: tuple[str, ...]  # its full names, lower case


class _CardClaims(NamedTuple):
    """A card with its distinctive claims."""

    memory: MemoryText
    digest: str
    card: Card
    claims: tuple[Claim, ...]


class Matching:
    """Finds the repositories of the cards of one workspace."""

    def __init__(self, root: str, store: FactsCache, *, now: datetime) -> None:
        self._root, self._store, self._now = root, store, now

    def find(
        self,
        memories: Sequence[MemoryText],
        find_checkouts: Callable[[], list[Checkout]],
        *,
        progress: Callable[[str, int, int], None] = lambda *_: None,
    ) -> tuple[list[Match], list[str]]:
        """Match cards without a repository; also return a message for each checkout that could not be read."""
        asked = [item for memory in memories if (item := self._ask(memory)) is not None]
        checkouts = find_checkouts() if asked else []
        unread = [f"{item.root} was not asked: {item.problem}" for item in checkouts if item.problem]
        places = _local_repositories(checkouts)
        answers: list[dict[int, list[Verdict | None]]] = []
        for number, place in enumerate(places):
            progress("match", number, len(places))
            try:
                answers.append(retry_if_damaged(partial(self._answers, place.checkout.root, asked)))
            except (GitFailed, VerifyTimeout) as error:
                answers.append({})
                unread.append(f"{place.checkout.root} was not asked: {error}")
        progress("match", len(places), len(places))
        found = [
            self._decide(item, places, [answer.get(at, []) for answer in answers]) for at, item in enumerate(asked)
        ]
        return found, unread

    def _ask(self, memory: MemoryText) -> _CardClaims | None:
        try:
            data = read_regular(Path(self._root, memory.path), follow=False)
        except OSError:
            return None
        if decode_text(data) != memory.text:
            return None  # changed while it was read
        claims: dict[tuple[str, str], Claim] = {}
        for claim in extract_claims(memory.text, is_changelog=memory.is_changelog, is_rst=memory.is_rst).claims:
            if not claim.is_past and len(claims) < _MAX_CLAIMS_PER_CARD and is_distinctive(claim):
                # A claim that is gone also identifies a repository, whatever the sentence says.
                claims.setdefault(_key(claim), claim._replace(may_be_past=False))
        card = parse_card(memory.path.rpartition("/")[2], memory.text)
        return _CardClaims(memory, hashlib.sha256(data).hexdigest(), card, tuple(claims.values()))

    def _answers(self, root: str, asked: Sequence[_CardClaims]) -> dict[int, list[Verdict | None]]:
        """Check the claims of all cards against one repository, in one pass."""
        owners = [at for at, item in enumerate(asked) for _ in item.claims]
        questions = [
            Question(claim, item.memory.path, item.memory.origin.written_at) for item in asked for claim in item.claims
        ]
        if not questions:
            return {}
        options = Options(system=False, deleting=False)
        verdicts = judge(World(root, self._store, workspace=self._root, options=options), questions)
        found: dict[int, list[Verdict | None]] = defaultdict(list)
        for at, verdict in zip(owners, verdicts, strict=True):
            found[at].append(verdict)
        return found

    def _decide(
        self, asked: _CardClaims, places: Sequence[_LocalRepository], answers: Sequence[Sequence[Verdict | None]]
    ) -> Match:
        named, others = _named_repositories(asked.memory.text, places)
        knowing = [sum(bool(answer) and _knows(answer[at]) for answer in answers) for at in range(len(asked.claims))]
        candidates = []
        for place, verdicts in zip(places, answers, strict=True):
            proofs = []
            unknown = 0
            for at, claim in enumerate(asked.claims if verdicts else ()):
                verdict, is_sure = verdicts[at], claim.kind not in ("env", "flag")
                if verdict is not None and _knows(verdict):
                    proofs += [Proof(claim, verdict, is_sure)] if knowing[at] == 1 and _proves(verdict) else []
                elif is_sure and not claim.is_weak:
                    unknown += 1
            is_named = place.name in named
            if proofs or is_named:
                candidates.append(
                    RepositoryCandidate(place.name, place.checkout.root, tuple(proofs), is_named, unknown)
                )
        candidates.sort(key=lambda item: (-_weight(item.proofs), not item.is_named, item.repository, item.root))
        outcome, why = _judge(candidates, others)
        chosen = tuple(candidates[:1] if outcome == MATCHED else candidates)
        match = Match(asked.memory.path, outcome, why, chosen, asked.digest)
        return match._replace(problem=_obstacle(asked, match)) if outcome == MATCHED else match

    def write(self, matches: Sequence[Match], transaction: MemoryTransaction, *, actor: str) -> list[AssignmentOutcome]:
        """Write the matches into the cards, one ledger entry each. The caller holds the lock."""
        done = []
        for match in matches:
            if not match.is_writable:
                continue
            staging = Staging(transaction.vault)
            late = AssignmentOutcome(match.path, None, "edited meanwhile, so it was left alone; run it again")
            try:
                data = staging.read(match.path)
                if data is None or hashlib.sha256(data).hexdigest() != match.digest:
                    done.append(late)
                    continue
                staging.splice(_splice(match.path, data, match.repository), 0)
                note = f"repository: {match.repository} ({match.why})"[:300]
                transaction.act(staging, LedgerEntry(at=as_stamp(self._now), verb="assigned", actor=actor, note=note))
            except (UnsafePath, ChangedSince, OSError) as error:
                done.append(AssignmentOutcome(match.path, None, f"left alone ({error})"))
            except EditedSince:
                done.append(late)
            else:
                entry = next(transaction.ledger.entries(limit=1)).id
                done.append(AssignmentOutcome(match.path, entry, f"repository: {match.repository}"))
        return done


# Distinctive claims.


def is_distinctive(claim: Claim) -> bool:
    """Whether it is unlikely that two projects share what a claim names."""
    name = claim.name
    if claim.kind in ("path", "line", "directory"):
        return _is_own_path(name, is_folder=claim.kind == "directory")
    if claim.kind in ("symbol", "method", "env"):
        return not name.startswith("__") and _is_own_name(name)
    if claim.kind == "flag":
        return claim.owner.lower() not in TOOLS and _is_own_name(name.lstrip("-"))
    return claim.kind == "commit"


def _is_own_path(path: str, *, is_folder: bool) -> bool:
    parts = path.removeprefix("./").strip("/").split("/")
    if len(parts) < 2 or path.startswith(("/", "~")) or ".." in parts:
        return False
    folders = [part for part in parts[:-1] if _is_own_word(part)]
    if parts[-1] in WELL_KNOWN or is_folder or not _is_own_word(parts[-1].lstrip(".").partition(".")[0]):
        return len(folders) + (is_folder and _is_own_word(parts[-1])) >= 2
    return True


def _is_own_word(word: str) -> bool:
    """Whether the name of a file or folder contains an uncommon word."""
    return any(len(part) > 3 and not _is_common(part) for part in _words(word))


def _is_own_name(name: str) -> bool:
    """Whether a name in code has at least two words, one of them uncommon."""
    return len(_words(name)) > 1 and _is_own_word(name)


def _words(name: str) -> list[str]:
    return [part.lower() for part in _WORD.findall(name)]


def _is_common(word: str) -> bool:
    return word in _common_names() or word.removesuffix("s") in _common_names() or word.isdigit()


def _key(claim: Claim) -> tuple[str, str]:
    if claim.kind in ("path", "line", "directory"):
        return "path", claim.name.removeprefix("./").strip("/")
    if claim.kind == "commit":
        return "commit", claim.name[:7]
    return ("name", claim.name)


def _knows(verdict: Verdict | None) -> bool:
    """Whether the repository has or had something of that name."""
    if verdict is None or verdict.reason in ("in-memory", "on-this-host"):
        return False
    if verdict.verdict == GONE:
        return verdict.reason in _PAST_REASONS
    return verdict.verdict in (CONFIRMED, MOVED, CHANGED) or verdict.reason in _KNOWN_REASONS


def _proves(verdict: Verdict) -> bool:
    """Whether the repository itself defines or contains it, rather than only using it."""
    if verdict.verdict == CONFIRMED:
        return verdict.reason in _PRESENT_REASONS
    return verdict.verdict in (MOVED, CHANGED, GONE)


def _weight(proofs: Sequence[Proof]) -> int:
    """Count the proofs; a commit counts twice, because it cannot match by chance."""
    return sum(2 if proof.claim.kind == "commit" else 1 for proof in proofs)


def _sure(candidate: RepositoryCandidate) -> int:
    return _weight([proof for proof in candidate.proofs if proof.is_sure])


def _judge(candidates: Sequence[RepositoryCandidate], others: Sequence[str]) -> tuple[str, str]:
    """Decide the outcome and its reason from the sorted candidates and the named repositories that are not here."""
    named = [item for item in candidates if item.is_named]
    if len(named) > 1:
        return AMBIGUOUS, f"its text names {', '.join(item.repository for item in named)}"
    if not candidates:
        return THIN, "nothing that it names is in exactly one repository here"
    first = named[0] if named else candidates[0]
    rivals = [item.repository or item.root for item in candidates if item is not first and _sure(item)]
    if rivals:
        return AMBIGUOUS, f"what it names is in {', '.join([first.repository or first.root, *rivals])}"
    if not first.repository:
        return AMBIGUOUS, f"{first.root} has no name that tells it from another checkout here"
    namesakes = [name for name in others if name.rpartition("/")[2] == first.repository.rpartition("/")[2].lower()]
    if namesakes and not first.is_named:
        return AMBIGUOUS, f"its text names {namesakes[0]}, which is not here"
    known, sure = _weight(first.proofs), _sure(first)
    if first.is_named:
        if others and not sure:
            return AMBIGUOUS, f"its text names {first.repository}, and also {others[0]}"
        if first.unknown > known:
            return AMBIGUOUS, f"its text names {first.repository}, which does not have most of what it names"
        also = f", which has {_list_proofs(first.proofs)}" if first.proofs else ""
        return MATCHED, f"its text names {first.repository}{also}"
    if known < _MIN_CLAIMS or sure < _MIN_SURE_CLAIMS:
        return THIN, f"only {_list_proofs(first.proofs)} identified it; {_MIN_CLAIMS} are needed"
    if first.unknown * 2 > known:
        return THIN, f"{_list_proofs(first.proofs)} identified it, but {first.unknown} of what it names are not there"
    return MATCHED, f"{_list_proofs(first.proofs)}, in no other checkout here"


def _list_proofs(proofs: Sequence[Proof]) -> str:
    shown = [f"{proof.claim.shown}" for proof in proofs[:_MAX_PROOFS_SHOWN]]
    more = f" and {len(proofs) - _MAX_PROOFS_SHOWN} more" if len(proofs) > _MAX_PROOFS_SHOWN else ""
    return printable(", ".join(shown) + more)


# The repositories here, and their names in texts.


def _local_repositories(checkouts: Sequence[Checkout]) -> list[_LocalRepository]:
    """List each repository once, with the checkout that verify would use for it."""
    found: dict[str, Checkout] = {}
    for item in sorted((item for item in checkouts if not item.problem), key=lambda item: item.is_linked):
        found.setdefault(_identity(item), item)
    names = {key: _name(item, key, checkouts) for key, item in found.items()}
    shared = Counter(name.lower() for name in names.values())
    return [
        _LocalRepository(
            names[key] if shared[names[key].lower()] == 1 else "",
            item,
            tuple(name.lower() for name in item.names[:-1]),
        )
        for key, item in found.items()
    ]


def _identity(item: Checkout) -> str:
    """Return what all clones and worktrees of a repository share: the remote, or else the git folder."""
    if len(item.names) > 1:
        return item.name.lower()
    if not item.is_linked:
        return os.path.realpath(os.path.join(item.root, ".git"))
    try:
        common_dir = os.fsdecode(Git(item.root).run("rev-parse", "--git-common-dir")).strip()
    except GitFailed:
        return item.root
    return os.path.realpath(os.path.join(item.root, common_dir))


def _name(item: Checkout, identity: str, checkouts: Sequence[Checkout]) -> str:
    """Return the name to write for a repository; empty if the name would not select this one."""
    for name in (repository_name(Path(item.root)), item.name):
        chosen = choose_checkout(name, checkouts)
        if chosen is not None and _identity(chosen) == identity:
            return name
    return ""


def _named_repositories(text: str, places: Sequence[_LocalRepository]) -> tuple[set[str], list[str]]:
    """Find the repositories here that a text names in full, and full names of other repositories on known hosts."""
    low = text.lower()
    named: set[str] = set()
    hosts = set(_HOSTS)
    for place in places:
        for remote in place.remotes:
            host, _, rest = remote.partition("/")
            hosts.add(host)
            if place.name and (_has_full(low, host, rest) or _has_short(low, rest)):
                named.add(place.name)
    known = {remote for place in places for remote in place.remotes}
    others = dict.fromkeys(
        full
        for host in sorted(hosts)
        for match in re.finditer(_begins(host) + r"([\w.-]{1,100})/([\w.-]{1,100})", low)
        if (full := f"{host}/{match[1]}/{match[2].rstrip('.').removesuffix('.git')}") not in known
        and not any(name.startswith(f"{full}/") for name in known)
    )
    return named, list(others)


def _begins(host: str) -> str:
    return r"(?:(?<=//)|(?<=@)|(?<![\w.@/-]))(?:www\.)?" + re.escape(host) + "[:/]"


def _has_full(low: str, host: str, rest: str) -> bool:
    return host in low and re.search(_begins(host) + re.escape(rest) + r"(?:\.git)?(?![\w-]|\.\w)", low) is not None


def _has_short(low: str, rest: str) -> bool:
    """Whether the text contains owner/name where it cannot be a path."""
    owner, _, name = rest.partition("/")
    if rest not in low or not name or _is_common(owner) or "/" in name:
        return False
    return re.search(r"(?<![\w./@:~-])" + re.escape(rest) + r"(?:\.git)?(?![\w/-]|\.\w)", low) is not None


# Writing the field.


def _obstacle(asked: _CardClaims, match: Match) -> str:
    """Return why the repository cannot be written into a card; empty if it can."""
    card, name = asked.card, match.repository
    if card.problem:
        return f"its frontmatter cannot be read ({card.problem}): fix it by hand first"
    if card.body == asked.memory.text:
        return f"it has no frontmatter: put ---, topic: …, repository: {name} and --- above its text"
    if [key for key in card.front.names() if key.casefold() == "repository" and key != "repository"]:
        return "its frontmatter spells the key repository in another way: fix it by hand"
    if card.front.has_mapping("repository"):
        return "its frontmatter has something nested as repository: fix it by hand"
    data = asked.memory.text.encode("utf-8", "surrogatepass")
    cut = _splice(match.path, data, name)
    new = decode_text(data[: cut.offset] + cut.inserted + data[cut.offset + len(cut.removed) :]) or ""
    is_read = parse_card(card.name, new).repository == describe(match.path, new).repository == name
    return "" if is_read and withhold(name) == name else f"{name} cannot be written into frontmatter"


def _splice(path: str, data: bytes, repository: str) -> Splice:
    card = parse_card(path.rpartition("/")[2], decode_text(data) or "")
    offset, removed, inserted = place_field(data, card, "repository", quote(repository))
    return Splice(path=path, offset=offset, removed=removed, inserted=inserted)


def count_outcomes(matches: Sequence[Match]) -> Mapping[str, int]:
    return {outcome: sum(item.outcome == outcome for item in matches) for outcome in OUTCOMES}
