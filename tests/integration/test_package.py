"""The wheel and the sdist: what is in them, that they can be made again byte for byte, and that they install."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from email.parser import Parser
from pathlib import Path

import pytest

from tests.support.helpers import a_card, a_handoff
from truekeep import __version__

pytest.importorskip("hatchling", reason="hatchling builds; it comes with the dev extra")
ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "man", "completions", "docs", "tests", "demo")
FILES = (
    "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml", "constraints.txt", "hatch_build.py", "Makefile",
    ".gitignore",
)  # fmt: skip
EPOCH = "1794000000"


def run(*command: str | Path, cwd: Path | None = None, code: int = 0, **environment: str) -> str:
    """What a program prints."""
    surroundings = {**os.environ, **environment}
    surroundings.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=surroundings, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def build(source: Path, into: Path, *targets: str) -> list[Path]:
    run(sys.executable, "-m", "hatchling", "build", "-d", into, *(word for name in targets for word in ("-t", name)),
        cwd=source, SOURCE_DATE_EPOCH=EPOCH)  # fmt: skip
    return [next(into.glob(f"*{ending}")) for ending in (".whl", ".tar.gz") if list(into.glob(f"*{ending}"))]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a repository of its own: nobody changes it meanwhile."""
    folder = tmp_path_factory.mktemp("checkout")
    skipped = shutil.ignore_patterns("__pycache__", "data", "*.pyc", "images")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    for name in FILES:
        shutil.copy2(ROOT / name, folder / name)
    git = ("git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "core.hooksPath=/dev/null")
    run("git", "init", "-q", folder)
    run(*git, "add", "-A")
    run(*git, "commit", "-q", "-m", "All")
    return folder


@pytest.fixture(scope="module")
def built(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    wheel, sdist = build(checkout, tmp_path_factory.mktemp("dist"), "wheel", "sdist")
    return wheel, sdist


def test_the_wheel_holds_what_the_program_needs(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        names = set(wheel.namelist())
    package = ROOT / "src" / "truekeep"
    needed = {
        f"truekeep/{path.relative_to(package)}"
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert needed - names == set()
    about = f"truekeep-{__version__}"
    assert {f"{about}.dist-info/licenses/LICENSE", "truekeep/py.typed", "truekeep/commit.txt"} <= names
    shared = {name.removeprefix(f"{about}.data/data/") for name in names if ".data/" in name}
    assert shared == {
        "share/man/man1/truekeep.1",
        "share/bash-completion/completions/truekeep",
        "share/zsh/site-functions/_truekeep",
        "share/fish/vendor_completions.d/truekeep.fish",
    }
    assert not [name for name in names if not name.startswith(("truekeep/", f"{about}.")) or name.endswith(".pyc")]


def test_the_sdist_holds_what_a_packager_needs(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {
        "pyproject.toml",
        "hatch_build.py",
        "LICENSE",
        "README.md",
        "man/truekeep.1",
        "tests/support/helpers.py",
    } <= names
    assert not [name for name in names if name.endswith(".pyc") or ".venv" in name or name.startswith("demo-home")]


def test_the_metadata_is_whole(built: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(built[0]) as wheel:
        told = Parser().parsestr(wheel.read(f"truekeep-{__version__}.dist-info/METADATA").decode())
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("truekeep", __version__, "MIT")
    assert told["Requires-Python"] == ">=3.11"
    assert {"Typing :: Typed", "Programming Language :: Python :: 3.11"} <= set(told.get_all("Classifier", ()))
    assert set(told.get_all("Provides-Extra", ())) == {"age", "transformer", "server", "site", "dev"}
    assert told["Description-Content-Type"] == "text/markdown"


def test_the_readme_stands_alone(built: tuple[Path, Path]) -> None:
    """On an index there is no repository around it: what links into one would lead nowhere."""
    with zipfile.ZipFile(built[0]) as wheel:
        text = Parser().parsestr(wheel.read(f"truekeep-{__version__}.dist-info/METADATA").decode()).get_payload()
    assert isinstance(text, str)
    assert text.lstrip().startswith("# truekeep")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"\]\((?!https?:|#)[^)]*\)", prose) == []
    blocks = re.findall(r"^```.*?^```", (ROOT / "README.md").read_text(), flags=re.DOTALL | re.MULTILINE)
    assert blocks
    assert all(block in text for block in blocks)


def test_links_lead_to_the_source_where_one_is_named() -> None:
    sys.path.insert(0, str(ROOT))
    try:
        from hatch_build import readme_alone
    finally:
        sys.path.remove(str(ROOT))
    text = "![A page](docs/a.png) and [docs](docs/a.md), [out](https://x.example/)\n```\n[kept](a.md)\n```\n"
    led = readme_alone(text, "https://git.example/truekeep")
    assert "![A page](https://git.example/truekeep/raw/main/docs/a.png)" in led
    assert "[docs](https://git.example/truekeep/blob/main/docs/a.md), [out](https://x.example/)" in led
    assert "[kept](a.md)" in led


def test_two_builds_are_the_same_bytes(built: tuple[Path, Path], checkout: Path, tmp_path: Path) -> None:
    again = build(checkout, tmp_path / "again", "wheel", "sdist")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_the_sdist_makes_the_same_wheel(built: tuple[Path, Path], tmp_path: Path) -> None:
    with tarfile.open(built[1]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (wheel,) = build(tmp_path / f"truekeep-{__version__}", tmp_path / "dist", "wheel")
    assert wheel.read_bytes() == built[0].read_bytes()


def test_the_homebrew_formula_installs_what_the_sdist_has(built: tuple[Path, Path], tmp_path: Path) -> None:
    formula = run(sys.executable, "-m", "tools.homebrew", built[1], cwd=ROOT)
    assert f'sha256 "{hashlib.sha256(built[1].read_bytes()).hexdigest()}"' in formula
    assert f"/v{__version__}/{built[1].name}" in formula
    with tarfile.open(built[1]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    named = re.findall(r'"((?:man|completions)/[^"]+|constraints\.txt)"', formula)
    assert len(named) == 5
    assert set(named) <= names
    if ruby := shutil.which("ruby"):
        (tmp_path / "truekeep.rb").write_text(formula)
        assert "Syntax OK" in run(ruby, "-c", tmp_path / "truekeep.rb")
    assert "name the sdist" in run(sys.executable, "-m", "tools.homebrew", built[0], cwd=ROOT, code=2)


def test_every_import_is_declared() -> None:
    """What the package imports comes with Python, with it, or with a dependency that it names."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = settings["optional-dependencies"]
    named = [*settings["dependencies"], *(name for extra in ("age", "transformer", "server") for name in extras[extra])]
    known = {re.split(r"[<>=;\[ ]", name)[0].lower() for name in named}
    known.add("_sha2")  # Python's own, from 3.12 on
    spelled = {
        "re2": "google-re2",
        "markdown_it": "markdown-it-py",
        "backports": "backports.zstd",
        "psycopg_pool": "psycopg",
        "prometheus_client": "prometheus-client",
        "mcp_types": "mcp-types",
        "tree_sitter": "tree-sitter",
        "yaml": "pyyaml",
    }
    imported: dict[str, str] = {}
    for path in (ROOT / "src" / "truekeep").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            imported |= {module.partition(".")[0]: path.name for module in modules}
    foreign = {name: at for name, at in imported.items() if name not in sys.stdlib_module_names | {"truekeep", ""}}
    assert {name: at for name, at in foreign.items() if spelled.get(name, name) not in known} == {}


# --- Installed ------------------------------------------------------------------------------------------------------


INVOICES = "Numbers of invoices begin at one each year."


def five_minutes(program: Path, home: Path, commit: str) -> None:
    """What somebody does first, with nothing but what was installed."""
    repo = home / "repos" / "shop"
    repo.mkdir(parents=True)
    run("git", "init", "-q", repo)

    def truekeep(*arguments: str, code: int = 0) -> str:
        return run(program, *arguments, cwd=repo, code=code, HOME=str(home), TRUEKEEP_NO_BACKGROUND="1",
                   TRUEKEEP_MACHINE_ID="packed", TRUEKEEP_WORKSPACE="")  # fmt: skip

    assert truekeep("--version").startswith(f"truekeep {__version__} (commit {commit[:12]})\n")
    truekeep("init", "--repo", "~/repos/*")
    truekeep(
        "handoff", "new", "--title", "Staging sits behind a proxy", "--type", "setup",
        "--summary", "The proxy terminates TLS. Clients that bypass it get a reset.",
        "--fact", "Staging answers on port 8443 only",
    )  # fmt: skip
    assert "Promoted 1" in truekeep("ingest")
    assert "8443" in truekeep("search", "which port does staging answer on")
    assert "--port" in truekeep("serve", "--help")
    assert "-F _truekeep_completion truekeep" in truekeep("completion", "bash")
    assert "MCP" in truekeep("mcp", "--help")
    (repo / "note.md").write_text(a_handoff(title="Invoices", card="invoices.md", content=a_card("Invoices", INVOICES)))
    truekeep("handoff", "lint", "note.md")
    truekeep("alf", "export", "-o", "all.alf")
    truekeep("doctor")


def installed(folder: Path, *more: str | Path) -> tuple[Path, Path]:
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--disable-pip-version-check", *more)
    return python, folder / "bin" / "truekeep"


@pytest.fixture(scope="module")
def commit(checkout: Path) -> str:
    return run("git", "-C", checkout, "rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def beside(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean environment with the wheel in it; its dependencies are those of this one, so no index is needed."""
    folder = tmp_path_factory.mktemp("venv")
    python, program = installed(folder, "--no-deps", "--no-index", built[0])
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(site) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert run(python, "-c", "import truekeep; print(truekeep.__file__)").startswith(site)
    return program


def test_what_is_installed_works(beside: Path, tmp_path: Path, commit: str) -> None:
    five_minutes(beside, tmp_path, commit)


@pytest.mark.needs("man")
def test_man_finds_the_page(beside: Path) -> None:
    shared = beside.parent.parent / "share" / "man"
    assert run("man", "-M", shared, "-w", "truekeep").strip() == str(shared / "man1" / "truekeep.1")


asks_index = pytest.mark.skipif(
    not os.environ.get("TRUEKEEP_TEST_INDEX"), reason="asks the package index; `make package` does"
)


@asks_index
def test_it_installs_from_an_index(built: tuple[Path, Path], tmp_path: Path, commit: str) -> None:
    _, program = installed(tmp_path / "venv", built[0])
    five_minutes(program, tmp_path / "home", commit)


@asks_index
@pytest.mark.parametrize(
    ("install", "uninstall"),
    [
        pytest.param(("uv", "tool", "install"), ("uv", "tool", "uninstall"), marks=pytest.mark.needs("uv"), id="uv"),
        pytest.param(("pipx", "install"), ("pipx", "uninstall"), marks=pytest.mark.needs("pipx"), id="pipx"),
    ],
)
def test_it_installs_as_a_tool_in_a_new_home(
    install: tuple[str, ...], uninstall: tuple[str, ...], built: tuple[Path, Path], own_home: Path, commit: str
) -> None:
    """And goes away again, with the memory left as it is."""
    run(*install, "--python", Path(sys.executable).resolve(), built[0], HOME=str(own_home))
    program = own_home / ".local" / "bin" / "truekeep"
    five_minutes(program, own_home, commit)
    run(*uninstall, "truekeep", HOME=str(own_home))
    assert not program.exists()
    assert list((own_home / ".openclaw" / "workspace" / "memory").rglob("*.md"))


@asks_index
@pytest.mark.needs("dpkg-deb", "debootstrap")
@pytest.mark.skipif(os.geteuid() != 0, reason="a chroot needs root")
def test_the_debian_package_works_in_a_new_system(tmp_path: Path) -> None:
    from tools.deb import build_package

    (tmp_path / "build").mkdir()
    package = build_package(tmp_path / "build", tmp_path / "dist")
    system = tmp_path / "system"
    codename = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE)
    assert codename
    run("debootstrap", "--variant=minbase", "--include=python3,git,man-db", codename[1], system)
    shutil.copy2(package, system / "tmp")
    run("chroot", system, "dpkg", "-i", f"/tmp/{package.name}")
    program = tmp_path / "truekeep"
    program.write_text(
        f'#!/bin/sh\nexec chroot {system} env -C "${{PWD#{system}}}" HOME="${{HOME#{system}}}" truekeep "$@"\n'
    )
    program.chmod(0o755)
    five_minutes(program, system / "root", run("git", "-C", ROOT, "rev-parse", "HEAD").strip())
    assert run("chroot", system, "man", "-w", "truekeep").startswith("/usr/share/man/man1/truekeep.1")
    run("chroot", system, "dpkg", "--remove", "truekeep")
    assert not (system / "opt/truekeep").exists()
    assert list((system / "root/.openclaw/workspace/memory").rglob("*.md"))


# --- Extras ---------------------------------------------------------------------------------------------------------

NEEDS_AGE: dict[str, tuple[str, ...]] = {
    "export": ("alf", "export", "-o", "x.alf", "--encrypt", "age1x"),
    "delta": ("alf", "delta", "--since", "plain.alf", "-o", "x.alf-delta", "--encrypt", "age1x"),
    "apply": ("alf", "apply", "plain.alf", "one.alf-delta", "-o", "x.alf", "--encrypt", "age1x"),
    "purge": ("alf", "purge", "plain.alf", "--record", "x", "-o", "x.alf", "--encrypt", "age1x"),
    "import": ("alf", "import", "sealed.alf"),
    "show": ("alf", "show", "sealed.alf"),
    "validate": ("alf", "validate", "sealed.alf"),
}


@pytest.fixture(scope="module")
def bare(beside: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """truekeep without its extras, on a workspace with archives."""
    home = tmp_path_factory.mktemp("bare")
    without = home / "without"
    for name in ("pyrage", "onnxruntime", "tokenizers"):
        (without / name).mkdir(parents=True)
        (without / name / "__init__.py").write_text(f"raise ModuleNotFoundError('No module', name={name!r})\n")

    def truekeep(*arguments: str, code: int = 0) -> str:
        command = [str(beside), *arguments]
        surroundings = {
            **os.environ, "HOME": str(home), "PYTHONPATH": str(without), "TRUEKEEP_MACHINE_ID": "x",
            "TRUEKEEP_NO_BACKGROUND": "1", "TRUEKEEP_WORKSPACE": "",
        }  # fmt: skip
        done = subprocess.run(command, cwd=home, env=surroundings, capture_output=True, text=True, timeout=120)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    truekeep("init")
    truekeep("alf", "export", "-o", "plain.alf")
    (home / ".openclaw" / "workspace" / "memory" / "cards" / "x.md").write_text("x\n")
    truekeep("alf", "delta", "--since", "plain.alf", "-o", "one.alf-delta")
    (home / "sealed.alf").write_bytes(b"age-encryption.org/v1\n-> X25519 x\n")
    return truekeep


@pytest.mark.parametrize("arguments", NEEDS_AGE.values(), ids=NEEDS_AGE)
def test_without_age_the_extra_is_named(bare: Callable[..., str], arguments: tuple[str, ...]) -> None:
    told = bare(*arguments, code=6)
    assert "pip install 'truekeep[age]'" in told
    assert "Traceback" not in told


def test_without_the_transformer_words_answer_and_the_extra_is_named(
    bare: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = tmp_path_factory.mktemp("model")
    for name in ("model.onnx", "tokenizer.json"):
        (model / name).write_text("{}")
    workspace = model / "workspace"
    bare("init", str(workspace))
    config = workspace / ".truekeep" / "config.toml"
    config.write_text(f'[recall]\nembedder = "transformer"\nmodel = "{model}"\n')
    (workspace / "memory" / "2026-11-10.md").write_text("# 2026-11-10\n\nStaging answers on port 8443.\n")
    for command in (("index",), ("search", "staging port")):
        told = bare(*command, "-w", str(workspace))
        assert "pip install 'truekeep[transformer]'" in told, command
    assert "8443" in told


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ada/.local/share/pipx/venvs/truekeep", "pipx install --force 'truekeep[age]'"),
        ("/home/ada/.local/share/uv/tools/truekeep", "uv tool install 'truekeep[age]'"),
        ("/home/ada/venv", "pip install 'truekeep[age]'"),
    ],
)
def test_extras_come_by_the_tool_that_installed_it(monkeypatch: pytest.MonkeyPatch, prefix: str, command: str) -> None:
    from truekeep.core.extras import install_command

    monkeypatch.setattr(sys, "prefix", prefix)
    assert install_command("age") == command


# --- The man page, the version --------------------------------------------------------------------------------------


MAN_PAGE = ROOT / "man" / "truekeep.1"


def test_the_man_page_is_up_to_date() -> None:
    from tools.manual import render_manual

    assert MAN_PAGE.read_text() == render_manual(), "run `make docs`"


@pytest.mark.needs("groff")
def test_groff_finds_no_fault_with_the_man_page() -> None:
    assert run("groff", "-man", "-ww", "-z", MAN_PAGE) == ""


@pytest.mark.needs("mandoc")
def test_mandoc_finds_no_fault_with_the_man_page() -> None:
    run("mandoc", "-T", "lint", "-W", "error", MAN_PAGE)


@pytest.mark.needs("man")
def test_man_shows_the_page() -> None:
    shown = run("man", "-l", MAN_PAGE, MANWIDTH="100", MANPAGER="cat", PAGER="cat")
    assert "truekeep handoff new" in shown
    assert "EXIT STATUS" in shown


def test_the_version_loads_little() -> None:
    program = (
        "import sys\nfrom truekeep.interfaces.cli.app import run\ncode = run(['--version'])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\nsys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"truekeep {__version__}")
    loaded = set(done.stderr.split())
    assert not loaded & {
        "numpy",
        "wordllama",
        "email",
        "importlib.metadata",
        "truekeep.workspace.workspace",
        "mcp",
        "httpx",
    }
