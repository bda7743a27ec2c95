"""What became of the things that an old commit had: still there, moved to a place, or gone. Git is the judge.

Only what is beyond doubt gets a verdict. All else is dropped and counted, with the reason: homonyms, files that were
split, names that are still used but no longer defined, names in strings, in examples or in what others wrote.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from bench.truth.git import Git
from bench.truth.source import Definition, find_prose, find_words, role
from bench.truth.world import World

TRUE, MOVED, GONE = "true", "moved", "gone"
NOTATION = {"rs": "::", "php": "::", "rb": "#", "cpp": "::", "cc": "::", "hpp": "::"}
DAY = 86_400
BODY = 12  # lines of a definition that are compared
PLAIN_PATH = re.compile(r"[\w@./+-]{3,110}")
PLAIN_NAME = re.compile(r"[A-Za-z_]\w{3,}")
STATEMENT = re.compile(r"[A-Za-z_(\[{}].*[\w)\]};,:]")
NOT_CODE = re.compile(r"^\s*(#|//|/?\*|--|<!--|\"\"\"|''')|[`|]")


class Fact(NamedTuple):
    """One thing that could be named about the old commit, and what became of it."""

    kind: str  # path, directory, symbol, method, place, line, flag, env, commit, script, package
    text: str  # as one would write it
    verdict: str
    where: str = ""  # the place now, for what moved
    path: str = ""  # the file that is named with it
    name: str = ""  # what stands at a line
    end: int = 0  # the last line of a range
    mentioned: bool = False  # gone from code, and still a word in comments, documentation or tests
    flags: tuple[str, ...] = ()
    why: str = ""


class Judge:
    """All facts of one old commit, beside the newest one."""

    def __init__(self, old: World, new: World, seed: str) -> None:
        self.old, self.new, self.seed = old, new, seed
        self.heirs = old.git.heirs(old.commit, old.paths)
        self.ends = old.git.renames(old.commit, 40)
        self.heads = Counter(heir.path for heir in self.heirs.values() if heir.path)
        self.dropped: Counter[tuple[str, str]] = Counter()
        self.settled = self.find_settled()
        self.files = self.judge_paths()
        self.judged = self.judge_definitions()

    def facts(self) -> Iterator[Fact]:
        yield from self.name_facts()
        yield from self.statement_facts()
        yield from self.listed_facts("script", self.old.scripts, self.new.scripts)
        yield from self.listed_facts("package", self.old.packages, self.new.packages)
        yield from self.commit_facts()

    def name_facts(self) -> Iterator[Fact]:
        """Of paths, symbols, flags and variables: what a sentence may name alone."""
        yield from self.files.values()
        yield from self.base_name_facts()
        yield from self.directory_facts()
        yield from self.symbol_facts()
        yield from self.word_facts("flag", self.old.flags, self.new.flags, spell_flag)
        yield from self.word_facts("env", self.old.environment, self.new.environment, lambda name: {name})

    def drop(self, kind: str, reason: str) -> None:
        self.dropped[kind, reason] += 1

    def order(self, key: str) -> int:
        """A place in line that is the same every time, on every machine."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}\0{key}".encode()).digest()[:8], "big")

    def sample(self, items: Iterable[str], count: int) -> list[str]:
        return sorted(items, key=self.order)[:count]

    def find_settled(self) -> set[str]:
        """Files that did not change for days around: a card says a day, and a line is only known to the commit."""
        git, at = self.old.git, self.old.git.when(self.old.commit)
        around = [git.before(at - 2 * DAY), git.before(at + 2 * DAY)]
        trees = [git.tree(commit) for commit in around if commit]
        return {path for path, blob in self.old.tree.items() if all(tree.get(path) == blob for tree in trees)}

    # Files

    def judge_paths(self) -> dict[str, Fact]:
        found = {}
        for path in self.old.paths:
            if role(path) == "vendored" or not PLAIN_PATH.fullmatch(path) or self.old.is_data(path):
                continue
            if "/" not in path and "." not in path:
                continue  # INSTALL could be anything
            fact = self.judge_path(path)
            if isinstance(fact, Fact):
                found[path] = fact
            else:
                self.drop("path", fact)
        return found

    def judge_path(self, path: str) -> Fact | str:
        """What became of a file, or the reason for doubt."""
        heir, new = self.heirs[path], self.new
        if path in new.tree:
            if heir.path == path and not heir.steps:
                return Fact("path", path, TRUE, why="in both trees, never renamed")
            return "renamed, and another file of that name came"
        if heir.path is not None:
            return self.judge_moved_path(path, heir.path)
        name = path.rpartition("/")[2]
        stem = path.rpartition(".")[0] or path
        if path in self.ends:
            return "deleted, and a comparison of both ends finds a likeness"
        if any(other not in self.old.tree for other in new.base_names.get(name, ())):
            return "deleted, and a new file has its name"
        if stem in self.new_stems:
            return "deleted, and something new has its stem"
        mentioned = path in new.path_words
        return Fact("path", path, GONE, mentioned=mentioned, why="deleted by a commit, no rename, no likeness")

    def judge_moved_path(self, path: str, target: str) -> Fact | str:
        heir, text = self.heirs[path], self.old.text(path)
        same_name = path.rpartition("/")[2] == target.rpartition("/")[2]
        if target not in self.new.tree:
            return "the records lead to a path that is not there"
        if target in self.old.tree:
            return "renamed onto a file that was there before"
        if self.heads[target] > 1:
            return "several files became one"
        if len(text) < 200 or self.blobs[self.old.tree[path]] > 1:
            return "renamed, but too small or too common to be told apart"
        if heir.alike < (50 if same_name else 70):
            return "renamed, but hardly alike"
        if self.ends.get(path, target) != target:
            return "the records and the comparison of both ends disagree"
        return Fact("path", path, MOVED, target, why=f"{heir.steps} rename record(s), at least {heir.alike} % alike")

    @cached_property
    def new_stems(self) -> set[str]:
        """What new files are called without their suffix, and new folders."""
        added = [path for path in self.new.paths if path not in self.old.tree]
        files = {path[: match.start()] for path in added for match in re.finditer(r"\.", path)}
        return files | {"/".join(path.split("/")[:count]) for path in added for count in range(1, path.count("/") + 1)}

    @cached_property
    def blobs(self) -> Counter[str]:
        return Counter(self.old.tree.values())

    def base_name_facts(self) -> Iterator[Fact]:
        """A file by its name alone, where there was one of that name. That it went to another folder is no rot."""
        for name, paths in self.old.base_names.items():
            if len(paths) != 1 or "." not in name.lstrip(".") or role(paths[0]) not in ("code", "config"):
                continue
            fact, now = self.files.get(paths[0]), self.new.base_names.get(name, ())
            if fact and fact.verdict == TRUE and len(now) == 1:
                yield fact._replace(text=name, flags=("base name",))
            elif fact and fact.verdict == GONE and not now:
                mentioned = name in self.new.path_words
                yield fact._replace(text=name, flags=("base name",), mentioned=mentioned)

    def directory_facts(self) -> Iterator[Fact]:
        for folder, paths in self.old.folders.items():
            known = [path for path in paths if path in self.heirs]
            if len(known) < 2 or role(f"{folder}/x.py") == "vendored" or not PLAIN_PATH.fullmatch(folder):
                continue
            if folder in self.new.folders:
                stayed = sum(path in self.new.tree for path in known)
                if stayed:
                    yield Fact("directory", folder, TRUE, why=f"{stayed} of {len(known)} files are still in it")
                else:
                    self.drop("directory", "there, with nothing of what it had")
                continue
            heirs = [self.heirs[path].path for path in known]
            left = [heir for heir in heirs if heir is not None and heir in self.new.tree]
            if not left:
                above = folder.rpartition("/")[0]
                mentioned = any(f"{folder}/" in text for text in self.new.everything.values())
                if f"{above}/" in ("/", *(f"{one}/" for one in self.new.folders)):
                    yield Fact("directory", folder, GONE, mentioned=mentioned, why="every file in it was deleted")
                else:
                    self.drop("directory", "gone with the folder above it")
                continue
            targets = Counter(
                heir[: -len(path) + len(folder)]
                for path, heir in zip(known, heirs, strict=True)
                if heir in self.new.tree and heir and heir.endswith(path[len(folder) :])
            )
            target, count = targets.most_common(1)[0] if targets else ("", 0)
            if count >= 2 and count >= 0.9 * len(left) and count >= 0.5 * len(known) and target not in self.old.folders:
                yield Fact("directory", folder, MOVED, target, why=f"{count} of {len(known)} files went there")
            else:
                self.drop("directory", "its files went to several places, or merged with others")

    # Symbols

    def judge_definitions(self) -> list[tuple[Definition, str]]:
        """The definitions that one could write about, each with what is known of the word in the newest commit."""
        wanted = [
            one
            for one in self.old.definitions
            if role(one.path) == "code" and one.kind != "other" and PLAIN_NAME.fullmatch(one.name)
            if not one.name.startswith("__") and one.name.lower() not in ("main", "self", "test", "init")
        ]
        missing = {one.name for one in wanted if one.name not in self.new.by_name}
        self.places = find_words(self.new.folder, self.new.paths, missing)
        return [(one, self.fate(one)) for one in wanted]

    def fate(self, one: Definition) -> str:
        """defined (somewhere), gone, mentioned, or the reason for doubt."""
        if one.name in self.new.by_name:
            return "defined"
        places = self.places.get(one.name, set())
        if one.name in self.new.test_names:
            return "defined in tests only"
        if doubt := places - {"comment", "doc", "test"}:
            return f"not defined, but in {', '.join(sorted(doubt))}"
        return "mentioned" if places else "gone"

    def symbol_facts(self) -> Iterator[Fact]:
        for one, fate in self.judged:
            if fate in ("gone", "mentioned"):
                seen = ", ".join(sorted(self.places.get(one.name, ()))) or "nowhere"
                why = f"was at {one.path}:{one.line}; no definition, the word is in: {seen}"
                base = Fact("symbol", one.name, GONE, mentioned=fate == "mentioned", flags=(one.kind,), why=why)
                if is_known_alone(one):
                    yield base
                yield from self.gone_details(one, base)
            elif fate == "defined":
                yield from self.defined_facts(one)
            else:
                self.drop("symbol", fate)

    def gone_details(self, one: Definition, base: Fact) -> Iterator[Fact]:
        if self.is_method(one):
            yield base._replace(kind="method", text=self.speak(one))
        yield base._replace(kind="place", path=one.path, name=one.scope)
        if self.is_single(self.old, one):
            name = self.speak(one) if one.scope and self.is_shared(one, []) else one.name
            yield base._replace(kind="line", text=f"{one.path}:{one.line}", path=one.path, name=name, end=one.end)

    def is_single(self, world: World, one: Definition) -> bool:
        return sum(other.qualified == one.qualified for other in world.by_path[one.path]) == 1

    def defined_facts(self, one: Definition) -> Iterator[Fact]:
        now = self.new.by_name[one.name]
        same = [other for other in now if other.qualified == one.qualified]
        here = [other for other in same if other.path == one.path]
        heir = self.heirs[one.path].path
        there = [other for other in same if other.path == heir]
        if here or there:
            why = f"still defined at {(here or there)[0].path}"
            if is_known_alone(one):
                yield Fact("symbol", one.name, TRUE, flags=(one.kind,), why=why)
        else:
            self.drop("symbol", "defined elsewhere only")
        yield from self.method_facts(one, here or there)
        if here:
            yield Fact("place", one.name, TRUE, path=one.path, name=one.scope, why=f"defined there at {here[0].line}")
            yield from self.line_fact(one, here)
        elif any(other.path == one.path for other in now):
            self.drop("place", "defined there, but as something else")
        elif target := self.find_target(one):
            kept = one.path in self.new.tree and one.name in "\n".join(self.new.lines(one.path))
            flags = ("still named there",) if kept else ()
            why = f"the only one, now at {target.path}:{target.line}"
            yield Fact("place", one.name, MOVED, target.path, one.path, one.scope, flags=flags, why=why)
            yield from self.line_fact(one, [target])
        elif self.is_lone_homonym(one):
            others = ", ".join(sorted({other.path for other in now})[:3])
            why = f"no longer in that file; others of that name were there before: {others}"
            yield Fact("place", one.name, GONE, path=one.path, name=one.scope, flags=("homonym",), why=why)
        else:
            self.drop("place", "homonyms, or too different to be the same")

    def find_target(self, one: Definition) -> Definition | None:
        """Where it lives now: the only definition of that name and kind then and now, and alike."""
        before = [other for other in self.old.by_name[one.name] if other.kind == one.kind]
        after = [other for other in self.new.by_name[one.name] if other.kind == one.kind]
        if len(before) != 1 or len(after) != 1 or before[0] != one or role(after[0].path) != "code":
            return None
        target = after[0]
        if target.scope != one.scope or target.name in self.new.test_names:
            return None
        alike = self.alike(self.body(self.old, one), self.body(self.new, target))
        return target if alike >= (0.3 if target.path == self.heirs[one.path].path else 0.6) else None

    def body(self, world: World, one: Definition) -> list[str]:
        lines = world.lines(one.path)[
            one.line - 1 : one.end if one.line < one.end < one.line + BODY else one.line + BODY
        ]
        return [" ".join(line.split()) for line in lines if line.strip()]

    def alike(self, left: list[str], right: list[str]) -> float:
        return difflib.SequenceMatcher(None, "\n".join(left), "\n".join(right), autojunk=False).ratio()

    def is_lone_homonym(self, one: Definition) -> bool:
        """Gone from its file without a trace, while all others of that name are where they were."""
        if one.path not in self.new.tree or self.heirs[one.path].steps:
            return False
        if re.search(rf"\b{re.escape(one.name)}\b", "\n".join(self.new.lines(one.path))):
            return False
        before = {self.heirs[other.path].path for other in self.old.by_name[one.name] if other.path != one.path}
        return all(other.path in before for other in self.new.by_name[one.name])

    def method_facts(self, one: Definition, here: list[Definition]) -> Iterator[Fact]:
        if not self.is_method(one):
            return
        text = self.speak(one)
        if here:
            yield Fact("method", text, TRUE, why=f"still defined at {here[0].path}:{here[0].line}")
            return
        owners = [other for other in self.new.by_name.get(one.scope, ()) if other.kind == "class"]
        if len(owners) == 1 and self.has_lost(owners[0], one):
            why = f"{one.scope} at {owners[0].path}:{owners[0].line} inherits from nothing and has no such word"
            yield Fact("method", text, GONE, flags=("homonym",), why=why)
            return
        self.drop("method", "no longer in that class, but maybe inherited or moved")

    def is_method(self, one: Definition) -> bool:
        """Whether it belongs to a class of this repository, and is no constructor that has the name of the class."""
        owners = self.old.by_name.get(one.scope, ())
        return one.kind == "function" and one.name != one.scope and any(other.kind == "class" for other in owners)

    def has_lost(self, owner: Definition, one: Definition) -> bool:
        """Whether a class that inherits nothing is where it was, without this method."""
        if not owner.plain or owner.path != self.heirs[one.path].path:
            return False
        if any(other.scope == one.scope for other in self.new.by_name[one.name]):
            return False
        block = "\n".join(self.new.lines(owner.path)[owner.line - 1 : owner.end or None])
        return not re.search(rf"\b{re.escape(one.name)}\b", block)

    def line_fact(self, one: Definition, now: list[Definition]) -> Iterator[Fact]:
        shared = self.is_shared(one, self.new.by_path[now[0].path])
        single = self.is_single(self.old, one) and len(now) == 1 and self.is_single(self.new, now[0])
        if not single or (shared and not one.scope):
            self.drop("line", "defined more than once in the file")
            return
        text = f"{one.path}:{one.line}"
        there = f"{now[0].path}:{now[0].line}"
        verdict, where = (TRUE, "") if text == there else (MOVED, there)
        name = self.speak(one) if shared else one.name
        yield Fact("line", text, verdict, where, one.path, name, one.end, why=f"{one.kind} {name} is at {there}")

    def speak(self, one: Definition) -> str:
        """The name of a method as people of its language write it."""
        signs = NOTATION.get(one.path.rpartition(".")[2], ".")
        return f"{one.scope}{signs}{one.name}"

    def is_shared(self, one: Definition, now: Iterable[Definition]) -> bool:
        """Whether its name alone is not enough to find it in its file."""
        others = (other for other in (*self.old.by_path[one.path], *now) if other.name == one.name)
        return any(other.qualified != one.qualified for other in others)

    # Lines that define nothing

    def statement_facts(self) -> Iterator[Fact]:
        """Ordinary lines, each alone of its text in the file, mapped by the comparison of the file and its heir."""
        code = [path for path in self.old.paths if role(path) == "code" and path in self.settled]
        stable = self.sample([path for path in code if self.is_edited(path)], 90)
        for path in stable:
            yield from self.lines_of(path, self.files[path].where or path)
        for path in self.sample([path for path in code if self.is_gone(path)], 40):
            for number, text in self.telling_lines(path)[:2]:
                if not self.new.statements[text]:
                    why = "the file was deleted, and no line of code reads like this now"
                    yield Fact("line", f"{path}:{number}", GONE, path=path, flags=("bare",), why=why)

    def is_edited(self, path: str) -> bool:
        fact = self.files.get(path)
        if not fact or fact.verdict == GONE:
            return False
        return self.old.tree[path] != self.new.tree[fact.where or path]

    def is_gone(self, path: str) -> bool:
        fact = self.files.get(path)
        return fact is not None and fact.verdict == GONE

    def telling_lines(self, path: str) -> list[tuple[int, str]]:
        """Lines of code that are alone of their text in the file, in an order of our own."""
        lines = [line.strip() for line in self.old.lines(path)]
        counts = Counter(lines)
        other = {one.line for one in self.old.by_path[path]} | find_prose(self.old.text(path), path)
        found = [
            (number, text)
            for number, text in enumerate(lines, start=1)
            if 25 <= len(text) <= 100
            and counts[text] == 1
            and number not in other
            and STATEMENT.fullmatch(text)
            and not NOT_CODE.search(text)
            and re.search(r"[=(]", text)
        ]
        return sorted(found, key=lambda item: self.order(f"{path}:{item[0]}"))

    def lines_of(self, path: str, target: str) -> Iterator[Fact]:
        mapped = self.old.git.line_map(self.old.commit, path, target)
        now = [line.strip() for line in self.new.lines(target)]
        counts, dense = Counter(now), thicken(self.new.text(target))
        taken = Counter[str]()
        for number, text in self.telling_lines(path):
            line = mapped.get(number)
            if line is not None and counts[text] == 1 and now[line - 1] == text:
                there = f"{target}:{line}"
                verdict, where = (TRUE, "") if there == f"{path}:{number}" else (MOVED, there)
                why = f"unchanged, now at {there}: {text}"
                fact = Fact("line", f"{path}:{number}", verdict, where, path, flags=("bare",), why=why)
                quoted = fact._replace(flags=("quoted",), name=text)
            elif line is None and taken[GONE] < 2 and thicken(text) not in dense and self.is_unlike(text, now):
                why = f"deleted, and nothing like it is left: {text}"
                fact = quoted = Fact("line", f"{path}:{number}", GONE, "", path, text, flags=("quoted",), why=why)
            else:
                if line is not None or taken[GONE] < 2:
                    self.drop("line", "a statement that was edited or is there twice")
                continue
            taken[fact.verdict] += 1
            if taken[fact.verdict] <= 2:
                yield fact if taken[fact.verdict] == 1 else quoted

    def is_unlike(self, text: str, now: list[str]) -> bool:
        """Whether no line reads like this one, here or, word for word, anywhere."""
        return not self.new.statements[text] and not difflib.get_close_matches(text, now, 1, 0.6)

    # Words of other kinds

    def word_facts(self, kind: str, old: set[str], new: set[str], spell: Callable[[str], set[str]]) -> Iterator[Fact]:
        """Flags and environment variables: defined then and now, or in no spelling anywhere in the product."""
        for word in sorted(old):
            if word in new:
                yield Fact(kind, word, TRUE, why="still defined")
                continue
            product = self.new.everything["product"]
            if any(has_word(product, spelt) for spelt in spell(word)):
                self.drop(kind, "no longer defined as before, but in the product's text")
                continue
            seen = [part for part in ("doc", "test") if word in self.new.everything[part]]
            yield Fact(kind, word, GONE, mentioned=bool(seen), why=f"only in: {', '.join(seen) or 'nothing'}")

    def listed_facts(self, kind: str, old: dict[str, set[str]], new: dict[str, set[str]]) -> Iterator[Fact]:
        """Scripts and packages, by the files that list them."""
        for name, paths in sorted(old.items()):
            path = min(paths, key=lambda one: (one.count("/"), one))
            if kind == "script" and "/" in path:
                continue  # one would have to say where to run it
            if path in new.get(name, ()):
                yield Fact(kind, name, TRUE, path=path, why=f"still in {path}")
            elif name in new:
                self.drop(kind, "in another manifest")
            elif path not in self.new.tree:
                self.drop(kind, "the manifest is gone")
            elif kind == "package" and has_word(self.new.everything["product"], name):
                self.drop(kind, "no longer asked for, but a word of code or of a lock file")
            else:
                mentioned = any(name in self.new.everything[part] for part in ("doc", "test"))
                yield Fact(kind, name, GONE, path=path, mentioned=mentioned, why=f"no longer in {path}, nor in another")

    def commit_facts(self) -> Iterator[Fact]:
        git = self.old.git
        known = git.run("rev-list", "-400", self.old.commit).split()
        for number, commit in enumerate(self.sample(known, 24)):
            length = (40, 7, 8, 10, 12, 9)[number % 6]
            short = commit[:length]
            if is_telling(short) and len(git.run("rev-parse", f"--disambiguate={short}").split()) == 1:
                yield Fact("commit", short, TRUE, why=f"an ancestor of HEAD: {commit}")
            else:
                self.drop("commit", "ambiguous, or like a number or a word")
        for number in range(12):
            made = hashlib.sha1(f"{self.seed}:{number}".encode()).hexdigest()
            short = made[: (40, 7, 10)[number % 3]]
            if is_telling(short) and not git.run("rev-parse", f"--disambiguate={short}", codes=(0, 128)).split():
                yield Fact("commit", short, GONE, flags=("unknown",), why="no object of that id")
        for number in range(12):
            commit = lose_commit(git, self.old.commit, f"{self.seed}:{number}")
            short = commit[: (40, 8, 11)[number % 3]]
            if not is_telling(short):
                continue
            yield Fact("commit", short, GONE, flags=("on no branch",), why="an object that no branch or tag reaches")


def is_known_alone(one: Definition) -> bool:
    """Whether one would write of it without saying where: at the top of a file, or with a telling name."""
    return not one.scope or (one.kind == "function" and len(one.name) >= 8 and "_" in one.name.strip("_"))


def is_telling(commit: str) -> bool:
    """Whether an abbreviation cannot be taken for a number or a word."""
    return bool(re.search(r"[a-f]", commit) and re.search(r"\d.*\d", commit))


def has_word(text: str, word: str) -> bool:
    return word in text and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def thicken(text: str) -> str:
    """Code without blanks, breaks and last commas, as formatters change no more than these."""
    return re.sub(r"\s+", "", text).replace(",)", ")").replace(",]", "]").replace(",}", "}").rstrip(",;{")


def lose_commit(git: Git, parent: str, message: str) -> str:
    """A commit that is in the repository and on no branch, the same one every time."""
    at = f"{git.when(parent) + 60} +0000"
    names = {
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "Bench"), ("EMAIL", "bench@example.invalid"), ("DATE", at))
    }
    return git.run("commit-tree", f"{parent}^{{tree}}", "-p", parent, "-m", message, environment=names).strip()


def spell_flag(flag: str) -> set[str]:
    """All ways in which code may spell a flag, so that none is missed before it is called gone."""
    name = flag.lstrip("-")
    parts = name.split("-")
    camel = "".join(part.capitalize() for part in parts)
    return {flag, name, "_".join(parts), camel, camel[:1].lower() + camel[1:], "_".join(parts).upper()}
