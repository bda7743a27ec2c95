"""Commands that can be run by name (make, just, task, rake, Procfile), and files that only name a version."""

from __future__ import annotations

import re

from truekeep.verify.manifests.builder import ManifestBuilder
from truekeep.verify.manifests.formats import LazyPattern, Leaf, ValueTable, matching_lines, numbered_lines, parse_yaml
from truekeep.verify.manifests.model import MAX_DEPTH, MAX_LINE_LENGTH

# --- Targets and tasks -----------------------------------------------------------------------------------------------

_MAKE_SKIP = LazyPattern(
    r"(?:ifeq|ifneq|ifdef|ifndef|else|endif|-?include|sinclude|export|unexport|override|vpath|private|undefine)\b"
    r"|\$[({][a-z-]+[ \t]"
)
_MAKE_VALUE = LazyPattern(r"\s*([\w.-]{1,80})\s*(?:::?:?|\?)?=\s*([^#]*)")
_MAKE_REFERENCE = LazyPattern(r"\$[({]([\w.-]{1,80})[)}]")
_MAKE_CALL = LazyPattern(r"\$[({][^(){}]*[)}]")
_JUST_RECIPE = LazyPattern(r"@?([A-Za-z_][\w-]*)(?:\s+(?:[^:\"'`]++|\"[^\"]*+\"|'[^']*+'|`[^`]*+`)*+)?:(?!=)")
_RAKE_NAME = r"(?::\"?|['\"])([\w:.-]+)|([A-Za-z_]\w*):(?!:)"
_RAKE_TASK = LazyPattern(rf"(\s*)(?:multitask|task)[\s(]\s*(?:{_RAKE_NAME})")
_RAKE_NAMESPACE = LazyPattern(r"(\s*)namespace[\s(]\s*(?::\"?|['\"])([\w:-]+)")
_RAKE_CLASS = LazyPattern(r"(\s*)[A-Z][\w:]*Task\.new(?:[\s(]\s*[:'\"]([\w:-]+))?")
_RAKE_DEFAULTS = {"RSpec": "spec", "RuboCop": "rubocop", "TestTask": "test", "RDoc": "rdoc", "Yard": "yard"}
_PROCESS = LazyPattern(r"([A-Za-z0-9_-]+):\s")


def read_makefile(builder: ManifestBuilder, text: str) -> None:
    _Makefile(builder).read(text)


class _Makefile:
    """Reads the targets of rules, and the other names in .PHONY. Variables that hold plain words are filled in."""

    def __init__(self, builder: ManifestBuilder) -> None:
        self.builder = builder
        self.values: dict[str, str] = {}
        self.phony: list[tuple[str, int]] = []

    def read(self, text: str) -> None:
        logical: list[tuple[int, str]] = []  # a line with its continuation lines
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
            self.builder.add_script("make", name, number)

    def _rule(self, logical: list[tuple[int, str]]) -> None:
        targets: list[tuple[str, int]] = []
        needs: list[tuple[str, int]] = []
        is_head = True
        for number, line in logical:
            piece = line.partition("#")[0]
            if is_head:
                # Colons and equal signs inside `$(A:b=c)` do not end the targets.
                stop = re.search(r"[:=]", _MAKE_CALL.sub(lambda match: "$" * len(match[0]), piece))
                if stop is None:
                    targets += self._words(piece, number)
                    continue
                head, rest = piece[: stop.start()], piece[stop.start() :]
                if re.match(r":{0,3}=", rest):
                    self._note_variable(logical)
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
                self.builder.add_script("make", name, number)

    def _words(self, text: str, number: int) -> list[tuple[str, int]]:
        if "$" in text:
            text = _MAKE_REFERENCE.sub(lambda match: self.values.get(match[1], match[0]), text)
        return [(word, number) for word in text.split()]

    def _note_variable(self, logical: list[tuple[int, str]]) -> None:
        """Note a variable that holds plain words; ignore one that refers to others or calls a function."""
        match = _MAKE_VALUE.match(" ".join(line for _, line in logical)[:MAX_LINE_LENGTH])
        if match and "$" not in match[2] and len(self.values) < 1_000:
            self.values[match[1]] = match[2].strip()


def read_justfile(builder: ManifestBuilder, text: str) -> None:
    for number, line in numbered_lines(text):
        alias = re.match(r"alias\s+([\w-]+)\s*:=", line)
        recipe = None if alias or line.startswith(("set ", "export ", "import ", "mod ")) else _JUST_RECIPE.match(line)
        if alias or recipe:
            builder.add_script("just", (alias or recipe)[1], number)  # type: ignore[index]


def read_taskfile(builder: ManifestBuilder, text: str) -> None:
    root = parse_yaml(text)
    for name, node in root.table("tasks").items():
        builder.add_script("task", name, node.line)
        if isinstance(node, ValueTable):
            for alias in node.table("aliases").values():
                if isinstance(alias, Leaf):
                    builder.add_script("task", alias.text, alias.line)


def read_rakefile(builder: ManifestBuilder, text: str) -> None:
    """Read tasks with their namespaces, which are recognized by indentation."""
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
            if len(spaces) < MAX_DEPTH:
                spaces.append((indent, namespace[2]))
            continue
        task, made = _RAKE_TASK.match(line), _RAKE_CLASS.match(line)
        name = ""
        if task:
            name = task[2] or task[3]
        elif made:
            name = made[2] or next((name for key, name in _RAKE_DEFAULTS.items() if key in made[0]), "")
        if name:
            builder.add_script("rake", ":".join([*(space for _, space in spaces), name]), number)


def read_procfile(builder: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_PROCESS, text):
        builder.add_script("procfile", match[1], number)


# --- Runtime versions ------------------------------------------------------------------------------------------------

_TOOL = LazyPattern(r"\s*([A-Za-z][\w-]*)[ \t]+v?([^\s#]+)")
_TOOL_NAMES = {"nodejs": "node", "golang": "go", "dotnet-core": "dotnet"}


def read_runtime(builder: ManifestBuilder, text: str) -> None:
    """Read `.python-version` and its like: one version, of the runtime that the ecosystem is named for."""
    runtime = "node" if builder.ecosystem == "npm" else builder.ecosystem
    for number, line in numbered_lines(text):
        word = line.partition("#")[0].strip()
        if word:
            word = re.sub(rf"\A(?:{runtime}-)?v?(?=[0-9])", "", word)
            builder.add_runtime(runtime, word, number)
            return


def read_tool_versions(builder: ManifestBuilder, text: str) -> None:
    for number, match in matching_lines(_TOOL, text):
        version = match[2]
        if match[1] == "java":
            version = re.sub(r"\A[a-z][a-z0-9]*-(?=[0-9])", "", version)
        builder.add_runtime(_TOOL_NAMES.get(match[1], match[1]), version, number)


def read_version(builder: ManifestBuilder, text: str) -> None:
    match = re.match(r"\s{0,100}v?([0-9]{1,9}(?:\.[0-9]{1,9}){1,4}[\w.+-]{0,60})\s*(?:\n|\Z)", text)
    if match:
        builder.version = match[1]
