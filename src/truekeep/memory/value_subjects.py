"""How the clause around a value names the thing that has it: "the gateway listens on port 5204" is about "gateway"."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from truekeep.memory.card import words_of
from truekeep.memory.value_patterns import value_patterns

MAX_NAME_DIGITS = 3  # "worker-1" is a name, but a longer number is a year or a port


class Clause(NamedTuple):
    """The words around a value: those that name the thing, and those that say which one it is."""

    words: tuple[str, ...]
    which: tuple[str, ...] = ()


class Scope(NamedTuple):
    """The context of a line: the topic of the text, the heading above it, the repository."""

    topic: tuple[str, ...]
    heading: tuple[str, ...]
    repository: str

    def name(self, clause: Clause, *, narrow: bool = True) -> tuple[str, ...]:
        """The words that name the thing of a clause; without words of its own, those of the topic.

        Not `narrow`: a repository has only one such thing, so it needs no topic.
        """
        patterns = value_patterns()
        own = (*clause.words, *clause.which)
        if any(word not in patterns.generic and word not in patterns.aspects for word in clause.words):
            return own
        if not narrow and self.repository:
            return own
        inside = tuple(word for word in self.heading if word not in patterns.generic and word not in self.topic)
        return (*self.topic, *inside, *own)


def read_clause(
    before: str, after: str, *, keep_containers: bool = False, words_by: Callable[[str], tuple[str, ...]] | None = None
) -> Clause | None:
    """The words of the clause around a value; None if the clause goes on in a way that is not understood."""
    patterns = value_patterns()
    words = words_by or (lambda text: name_words(text, keep_containers=keep_containers))
    where = patterns.where.match(before)
    pieces = patterns.clause_break.split(before)
    own = patterns.asked.sub(" ", patterns.ends_up.sub(" ", pieces[-1]))
    for directed in patterns.directed.finditer(own):
        if words(own[directed.end() :]):
            own = own[directed.end() :]
            break
    if not words(own) and len(pieces) > 1:
        if not patterns.whose.match(pieces[-2]):
            return None  # the subject is further in front
        own = pieces[-2]
    tail = patterns.tail.match(after)
    if tail is None and patterns.or_else.match(after) and patterns.must.search(own):
        after = ""
    somewhere = words(where["where"]) if where is not None else ()
    if tail is None:
        return Clause(words(own), somewhere) if patterns.clause_end.match(after) else None
    which = (*somewhere, *words(tail["which"]))
    how = tail["how"].lower()
    if not words(own):
        return Clause(which) if how in patterns.tail_owner else Clause((), which)
    return Clause(words(own), which) if how not in patterns.tail_target else None


def name_words(text: str, *, keep_containers: bool = False) -> tuple[str, ...]:
    """The words that name something; with `keep_containers`, also "file", "folder" and the like."""
    patterns = value_patterns()
    names = []
    for word in words_of(text):
        is_number = word.isdigit() and len(word) > MAX_NAME_DIGITS
        is_stop_word = word in patterns.stop and not (keep_containers and word in patterns.containers)
        if not is_number and not is_stop_word:
            names.append(singular(word))
    return tuple(dict.fromkeys(names))


def versioned_words(text: str) -> tuple[str, ...]:
    """The words that name something that has versions. "Go" is the language only if it is capitalised."""
    runtimes = value_patterns().runtimes
    words = ("golang" if word == "Go" else word.lower() for word in re.findall(r"[\w.]+", text))
    named = (part for word in words for part in ((word,) if word in runtimes else name_words(word)))
    return tuple(dict.fromkeys(runtime_name(word) for word in named))


def subject_of(words: tuple[str, ...], *, is_path: bool = False) -> str:
    """The name of a thing, its words in alphabetical order. Generic words count only if there are no others."""
    patterns = value_patterns()
    if not is_path:
        return " ".join(sorted({word for word in words if word not in patterns.generic} or set(words)))
    named = {patterns.same_thing.get(word, word) for word in words}
    telling = {
        word for word in named if word not in patterns.containers and (word not in patterns.generic or word == "config")
    }
    if telling and not telling & patterns.contents and "directory" in named:
        telling.add("directory")  # the folder of a configuration is not its file
    return " ".join(sorted(telling or named))


def singular(word: str) -> str:
    if word in value_patterns().runtimes:
        return word
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def runtime_name(name: str) -> str:
    return value_patterns().same_runtime.get(name, name)
