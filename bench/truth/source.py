"""What a tree of files defines, and where a word occurs in it: in code, strings, comments, documentation or tests.

Definitions come from Python's ast and from universal-ctags, comments and strings from Pygments. None of this is shared
with the product, and where these tools could be wrong the caller drops the case.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]
from pygments.token import Comment, String  # type: ignore[import-untyped]

LARGEST = 600_000  # bytes; beyond it a file is data, or made by a program
LARGEST_DOC = 5_000_000  # a changelog of many years
LONGEST_LINE = 1_000  # of what a person wrote
LEXERS = {
    suffix: lexer
    for lexer, suffixes in {
        "python": "py pyi",
        "rust": "rs",
        "go": "go",
        "java": "java",
        "kotlin": "kt",
        "ruby": "rb",
        "php": "php",
        "c": "c h",
        "cpp": "cc cpp hpp",
        "scala": "scala",
        "csharp": "cs",
        "javascript": "js mjs cjs jsx",
        "typescript": "ts mts cts tsx",
    }.items()
    for suffix in suffixes.split()
}
DOC_SUFFIXES = {"md", "mdx", "rst", "txt", "adoc", "markdown"}
DOC_NAME = re.compile(r"(?i)^(change|changes|changelog|history|news|authors|contributors|copying|license|readme)\b")
VENDORED = {"vendor", "node_modules", "third_party", "thirdparty", "deps", "dist", ".yarn", "external", "_vendor"}
MADE = re.compile(r"(?i)\.min\.\w+$|(^|[-_.])lock(file)?([-_.]|$)|\.lock$|^go\.sum$|\.(po|pot|mo|svg|map|snap|ipynb)$")
TESTS = {
    "tests",
    "__tests__",
    "spec",
    "specs",
    "testdata",
    "test-data",
    "test_data",
    "e2e",
    "__snapshots__",
    "snapshots",
}
TEST_NAME = re.compile(
    r"^test_\w*\.py$|^conftest\.py$|_tests?\.(go|py|rb|rs)$|^tests?\.rs$|_spec\.rb$|\.(test|spec|e2e|bench)\.[cm]?[jt]sx?$"
    r"|Tests?\.(java|kt|php)$|TestCase\.(java|php)$"
)
# Neither surely a test nor surely the product: django/test is shipped, src/test/java is not.
UNSURE = {
    "test",
    "testing",
    "fixtures",
    "fixture",
    "playground",
    "playgrounds",
    "mock",
    "mocks",
    "benches",
    "integration",
}
UNSURE |= {"bench", "benchmark", "benchmarks", "example", "examples", "sample", "samples", "demo", "demos", "docs_src"}
UNSURE |= {"template", "templates", "stubs", "typeshed", "resources", "generated"}
DOC_FOLDERS = {"doc", "docs", "documentation", "website", "site"}

CLASSES = {"class", "struct", "interface", "trait", "enum", "union", "type", "typedef", "alias"}
FUNCTIONS = {"function", "func", "method", "singletonMethod", "generator", "getter", "setter", "methodSpec"}
CONSTANTS = {"constant", "const", "define", "macro"}
SCOPES = CLASSES | {"implementation"}
KEYWORDS = set("from import export default class function const type async await static return with new".split())
LOCAL = {"local", "parameter", "label", "packageName", "package", "unknown", "use", "import", "library", "file"}


class Definition(NamedTuple):
    name: str
    kind: str  # function, class, constant or other
    scope: str  # the class it is in, by its last name; "" at the top
    path: str
    line: int
    end: int  # 0 when not known
    plain: bool  # a class that inherits from nothing and is not decorated

    @property
    def qualified(self) -> tuple[str, str, str]:
        return self.scope, self.name, self.kind


def role(path: str) -> str:
    """code, test, doc, config, vendored, or unsure: what a word in this file says about the product."""
    *folders, name = path.split("/")
    parts = {part.lower() for part in folders}
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if parts & VENDORED or MADE.search(name):
        return "vendored"
    if parts & TESTS or TEST_NAME.search(name) or any(re.search(r"[-_]tests?$", part) for part in parts):
        return "test"
    if "/src/test/" in f"/{path}" or "/resources/test/" in f"/{path}":
        return "test"
    if suffix in DOC_SUFFIXES or (suffix not in LEXERS and DOC_NAME.match(name)):
        return "doc"
    if parts & UNSURE or parts & DOC_FOLDERS or name.endswith((".d.ts", "_pb2.py", ".pb.go")):
        return "unsure"
    return "code" if suffix in LEXERS else "config"


def read_text(path: Path) -> str | None:
    """The text of a file, or nothing when it is data, a link, or too large to be written by hand."""
    most = LARGEST_DOC if path.suffix[1:].lower() in DOC_SUFFIXES else LARGEST
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > most:
            return None
        content = path.read_bytes()
    except OSError:
        return None
    return None if b"\0" in content[:8_000] else content.decode("utf-8", "replace")


# Definitions


def define(folder: Path, paths: Iterable[str]) -> list[Definition]:
    """What these files define, a Python file by ast and any other by ctags."""
    known = [path for path in paths if path.rpartition(".")[2] in LEXERS and is_written(folder / path)]
    found = [one for path in known if path.endswith(".py") for one in define_python(folder, path)]
    return [*found, *define_others(folder, [path for path in known if not path.endswith((".py", ".pyi"))])]


def is_written(path: Path) -> bool:
    """Whether a person wrote it, and no program that puts all on one line."""
    text = read_text(path)
    return text is not None and max(map(len, text.split("\n"))) <= LONGEST_LINE


def define_python(folder: Path, path: str) -> Iterator[Definition]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse((folder / path).read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    yield from define_body(module.body, "", path, top=True)


def define_body(body: Iterable[ast.stmt], scope: str, path: str, *, top: bool) -> Iterator[Definition]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield Definition(node.name, "function", scope, path, node.lineno, node.end_lineno or 0, False)
            case ast.ClassDef():
                plain = not (node.bases or node.keywords or node.decorator_list)
                plain &= not any(isinstance(one, ast.FunctionDef) and one.name == "__getattr__" for one in node.body)
                yield Definition(node.name, "class", scope, path, node.lineno, node.end_lineno or 0, plain)
                yield from define_body(node.body, node.name, path, top=False)
            case ast.Assign() | ast.AnnAssign():
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name):
                        kind = "constant" if top and target.id.isupper() else "other"
                        yield Definition(target.id, kind, scope, path, node.lineno, node.end_lineno or 0, False)
            case ast.If() | ast.Try() | ast.With():
                for inner in ("body", "orelse", "handlers", "finalbody"):
                    parts = getattr(node, inner, [])
                    statements = [
                        s for one in parts for s in (one.body if isinstance(one, ast.ExceptHandler) else [one])
                    ]
                    yield from define_body(statements, scope, path, top=top)


def define_others(folder: Path, paths: list[str]) -> Iterator[Definition]:
    if not paths:
        return
    done = subprocess.run(
        ["ctags", "--options=NONE", "--output-format=json", "--fields=+neKsi", "-f", "-", "-L", "-"],
        cwd=folder,
        input="\n".join(paths).encode(),
        capture_output=True,
        check=True,
    )
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        tag = json.loads(line)
        if tag.get("_type") == "tag" and tag["kind"] not in LOCAL and (one := parse_tag(tag)):
            yield one


def parse_tag(tag: Mapping[str, Any]) -> Definition | None:
    path, kind, name = str(tag["path"]), str(tag["kind"]), str(tag["name"])
    scope_kind = str(tag.get("scopeKind", ""))
    if kind == "alias" and path.endswith(".php"):
        return None  # an import
    if scope_kind in FUNCTIONS:
        return None  # local to a function
    if name in KEYWORDS or name.lower().startswith(("anonymous", "__anon")):
        return None  # ctags lost its way, or made up a name
    scope = re.split(r"[.\\/:]+", str(tag.get("scope", "")))[-1] if scope_kind in SCOPES else ""
    if kind in CLASSES:
        sort = "class"
    elif kind in FUNCTIONS:
        sort = "function"
    elif kind in CONSTANTS and name.isupper():
        sort = "constant"
    else:
        sort = "other"
    if sort == "class" and LEXERS.get(path.rpartition(".")[2]) in ("javascript", "typescript"):
        sort = sort if re.search(r"\b(class|interface|enum|type)\b", str(tag.get("pattern"))) else "other"
    if scope_kind == "module" and re.search(r"(^|\W)tests?$", str(tag["scope"])):
        sort = "other"  # tests of Rust are in the file that they test
    plain = kind == "class" and not tag.get("inherits") and path.endswith((".java", ".ts", ".js", ".mjs"))
    return Definition(name, sort, scope, path, int(tag["line"]), int(tag.get("end", 0)), plain)


# Words

WORD = re.compile(r"\w+")


@cache
def lexer_for(suffix: str) -> Lexer:
    return get_lexer_by_name(LEXERS[suffix], stripnl=False, ensurenl=False)


def find_prose(text: str, path: str) -> set[int]:
    """The lines that have a comment or a part of a longer string."""
    found: set[int] = set()
    line = 1
    for kind, piece in lexer_for(path.rpartition(".")[2].lower()).get_tokens(text):
        breaks = piece.count("\n")
        if is_comment(kind) or (kind in String and breaks):
            found.update(range(line, line + breaks + 1))
        line += breaks
    return found


def strip_comments(text: str, path: str) -> str:
    """The text without comments, of which nothing can be said to be there."""
    lexer = lexer_for(path.rpartition(".")[2].lower())
    return "".join(piece for kind, piece in lexer.get_tokens(text) if not is_comment(kind))


def is_comment(kind: Any) -> bool:
    """Whether Pygments calls it a comment or a docstring; what C tells its preprocessor is neither."""
    return kind in String.Doc or (kind in Comment and kind not in Comment.Preproc and kind not in Comment.PreprocFile)


def sort_words(text: str, suffix: str) -> dict[str, set[str]]:
    """The words of a source file, by whether they are in code, strings or comments."""
    found: dict[str, set[str]] = {"code": set(), "string": set(), "comment": set()}
    for kind, piece in lexer_for(suffix).get_tokens(text):
        if is_comment(kind):
            sort = "comment"
        elif kind in String and kind not in String.Interpol:
            sort = "string"
        else:
            sort = "code"
        found[sort].update(WORD.findall(piece))
    return found


def find_words(folder: Path, paths: Iterable[str], wanted: set[str]) -> dict[str, set[str]]:
    """For each wanted word where it occurs: code, string, comment (of the product), doc, test, or another role."""
    places: dict[str, set[str]] = defaultdict(set)
    for path in paths:
        text = read_text(folder / path)
        if text is None:
            continue
        here = wanted.intersection(WORD.findall(text))
        if not here:
            continue
        its = role(path)
        if its == "code" and not all("code" in places[word] for word in here):
            for sort, words in sort_words(text, path.rpartition(".")[2].lower()).items():
                for word in words & here:
                    places[word].add(sort)
        elif its != "code":
            for word in here:
                places[word].add(its)
    return places
