"""What can be run by name: make, just, task, rake and Procfiles."""

from __future__ import annotations

import re

from truekeep.verify.manifests.draft import ManifestBuilder
from truekeep.verify.manifests.formats.table import Leaf, ValueTable
from truekeep.verify.manifests.formats.yaml import flow_table, parse_yaml
from truekeep.verify.manifests.limits import DEEPEST, LONGEST_LINE
from truekeep.verify.manifests.text import Pattern, matching_lines, numbered_lines

_MAKE_SKIP = Pattern(
    r"(?:ifeq|ifneq|ifdef|ifndef|else|endif|-?include|sinclude|export|unexport|override|vpath|private|undefine)\b"
    r"|\$[({][a-z-]+[ \t]"
)
_MAKE_VALUE = Pattern(r"\s*([\w.-]{1,80})\s*(?:::?:?|\?)?=\s*([^#]*)")
_MAKE_REFERENCE = Pattern(r"\$[({]([\w.-]{1,80})[)}]")
_MAKE_CALL = Pattern(r"\$[({][^(){}]*[)}]")
_JUST_RECIPE = Pattern(r"@?([A-Za-z_][\w-]*)(?:\s+(?:[^:\"'`]++|\"[^\"]*+\"|'[^']*+'|`[^`]*+`)*+)?:(?!=)")
_RAKE_NAME = r"(?::\"?|['\"])([\w:.-]+)|([A-Za-z_]\w*):(?!:)"
_RAKE_TASK = Pattern(rf"(\s*)(?:multitask|task)[\s(]\s*(?:{_RAKE_NAME})")
_RAKE_NAMESPACE = Pattern(r"(\s*)namespace[\s(]\s*(?::\"?|['\"])([\w:-]+)")
_RAKE_CLASS = Pattern(r"(\s*)[A-Z][\w:]*Task\.new(?:[\s(]\s*[:'\"]([\w:-]+))?")
_RAKE_DEFAULTS = {"RSpec": "spec", "RuboCop": "rubocop", "TestTask": "test", "RDoc": "rdoc", "Yard": "yard"}
_PROCESS = Pattern(r"([A-Za-z0-9_-]+):\s")


def read_makefile(draft: ManifestBuilder, text: str) -> None:
    _Makefile(draft).read(text)


class _Makefile:
    """The targets of a makefile's rules, and what .PHONY names besides. Variables that hold words are filled in."""

    def __init__(self, draft: ManifestBuilder) -> None:
        self.draft = draft
        self.values: dict[str, str] = {}
        self.phony: list[tuple[str, int]] = []

    def read(self, text: str) -> None:
        logical: list[tuple[int, str]] = []  # a line with those that it goes on in
        is_definition = False
        for number, line in numbered_lines(text):
            if not logical and (not line or line[0] in "\t#"):
                continue
            is_continued = line.endswith("\\")
            logical.append((number, line[:-1] if is_continued else line))
            if is_continued and len(logical) < 1_000:
                continue
            first = logical[0][1].lstrip(" ")
            if is_definition or re.match(r"(?:override\s+)?define\b", first):
                is_definition = not first.startswith("endef")
            elif not _MAKE_SKIP.match(first):
                self._rule(logical)
            logical = []
        for name, number in self.phony:
            self.draft.run("make", name, number)

    def _rule(self, logical: list[tuple[int, str]]) -> None:
        targets: list[tuple[str, int]] = []
        needs: list[tuple[str, int]] = []
        is_head = True
        for number, line in logical:
            piece = line.partition("#")[0]
            if is_head:
                # Colons and equal signs in `$(A:b=c)` are not the rule's.
                stop = re.search(r"[:=]", _MAKE_CALL.sub(lambda match: "$" * len(match[0]), piece))
                if stop is None:
                    targets += self._words(piece, number)
                    continue
                head, rest = piece[: stop.start()], piece[stop.start() :]
                if re.match(r":{0,3}=", rest):
                    self._remember(logical)
                    return
                targets += self._words(head.rstrip("&"), number)
                piece = rest.lstrip(":")
                is_head = False
            needs += self._words(piece.partition(";")[0], number)
        if is_head:
            return
        for name, number in targets:
            if name == ".PHONY":
                self.phony += [(word, at) for word, at in needs if "$" not in word and "%" not in word]
            elif "%" not in name and "$" not in name and (name[0] != "." or "/" in name):
                self.draft.run("make", name, number)

    def _words(self, text: str, number: int) -> list[tuple[str, int]]:
        if "$" in text:
            text = _MAKE_REFERENCE.sub(lambda match: self.values.get(match[1], match[0]), text)
        return [(word, number) for word in text.split()]

    def _remember(self, logical: list[tuple[int, str]]) -> None:
        """A variable, when it holds nothing but words; one that grows or calls something is not known."""
        match = _MAKE_VALUE.match(" ".join(line for _, line in logical)[:LONGEST_LINE])
        if match and "$" not in match[2] and len(self.values) < 1_000:
            self.values[match[1]] = match[2].strip()


def read_justfile(draft: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        alias = re.match(r"alias\s+([\w-]+)\s*:=", line)
        recipe = None if alias or line.startswith(("set ", "export ", "import ", "mod ")) else _JUST_RECIPE.match(line)
        if alias or recipe:
            draft.run("just", (alias or recipe)[1], number)  # type: ignore[index]


def read_taskfile(draft: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)[0]
    for name, node in root.table("tasks").items():
        draft.run("task", name, node.line)
        if isinstance(node, ValueTable):
            for alias in flow_table(node.get("aliases")).values():
                if isinstance(alias, Leaf):
                    draft.run("task", alias.text, alias.line)


def read_rakefile(draft: ManifestBuilder, text: str) -> None:
    """Tasks with the namespaces that they stand in, told by indentation."""
    spaces: list[tuple[int, str]] = []
    for number, line in numbered_lines(text):
        bare = line.lstrip()
        if not bare or bare[0] == "#":
            continue
        indent = len(line) - len(bare)
        while spaces and indent <= spaces[-1][0]:
            spaces.pop()
        namespace = _RAKE_NAMESPACE.match(line)
        if namespace:
            if len(spaces) < DEEPEST:
                spaces.append((indent, namespace[2]))
            continue
        task, made = _RAKE_TASK.match(line), _RAKE_CLASS.match(line)
        name = ""
        if task:
            name = task[2] or task[3]
        elif made:
            name = made[2] or next((name for key, name in _RAKE_DEFAULTS.items() if key in made[0]), "")
        if name:
            draft.run("rake", ":".join([*(space for _, space in spaces), name]), number)


def read_procfile(draft: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_PROCESS, text):
        draft.run("procfile", match[1], number)
