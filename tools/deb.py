"""A Debian package: python -m tools.deb, or make deb; dist/truekeep_VERSION_ARCHITECTURE.deb, for this Debian's Python.

It has an environment of its own in /opt/truekeep, with the versions of constraints.txt: it needs nothing but Debian's
Python and git.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from truekeep import __version__

ROOT = Path(__file__).parents[1]
SYSTEM_PYTHON = "/usr/bin/python3"
HOME = "opt/truekeep"
CONTROL = """\
Package: truekeep
Version: {version}
Architecture: {architecture}
Maintainer: truekeep maintainers <maintainers@users.noreply.example>
Installed-Size: {size}
Depends: python3 (>= {python}), python3 (<< {next_python}), git
Recommends: openssh-client, rsync
Section: utils
Priority: optional
Description: one memory for all your coding agents, checked against the code
 Claude Code, Codex and OpenClaw each keep their own notes. truekeep keeps one
 memory beneath them, in plain Markdown, and checks what a note names (a path,
 a symbol, a flag, a port) against the current code.
"""


def main() -> int:
    if missing := [program for program in ("dpkg-deb", SYSTEM_PYTHON) if shutil.which(program) is None]:
        print(f"{missing[0]} is not here: build the package on Debian or Ubuntu", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="truekeep-deb-") as folder:
        package = build_package(Path(folder), ROOT / "dist")
    print(
        f"{package.relative_to(ROOT)}: {package.stat().st_size >> 20} MB; `apt install ./{package.relative_to(ROOT)}`"
    )
    return 0


def build_package(folder: Path, into: Path) -> Path:
    tree = folder / "tree"
    _install_program(folder, tree)
    _install_pages(tree)
    architecture = _run("dpkg", "--print-architecture").strip()
    name = f"truekeep_{__version__}_{architecture}.deb"
    _write_control(tree, architecture)
    into.mkdir(exist_ok=True)
    _run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, into / name)
    return into / name


def _install_program(folder: Path, tree: Path) -> None:
    """The program and all that it needs, in an environment that is made for its place in the package."""
    environment = tree / HOME
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    _run(SYSTEM_PYTHON, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    _run(*pip, "--constraint", ROOT / "constraints.txt", wheel)
    for script in (environment / "bin").iterdir():
        if script.name not in ("truekeep", "python", "python3"):
            script.unlink()
    for text in (environment / "bin" / "truekeep", environment / "pyvenv.cfg"):
        text.write_text(text.read_text().replace(str(tree), ""))
    _run(python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", tree, "-p", "/", environment)


def _install_pages(tree: Path) -> None:
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/truekeep").symlink_to(f"/{HOME}/bin/truekeep")
    page = tree / "usr/share/man/man1/truekeep.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress((ROOT / "man/truekeep.1").read_bytes(), mtime=0))
    for source, target in (
        ("completions/truekeep.bash", "usr/share/bash-completion/completions/truekeep"),
        ("completions/_truekeep", "usr/share/zsh/vendor-completions/_truekeep"),
        ("completions/truekeep.fish", "usr/share/fish/vendor_completions.d/truekeep.fish"),
        ("LICENSE", "usr/share/doc/truekeep/copyright"),
    ):
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / source, tree / target)


def _write_control(tree: Path, architecture: str) -> None:
    version = _run(SYSTEM_PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()
    size = sum(path.lstat().st_size for path in tree.rglob("*")) >> 10
    text = CONTROL.format(
        version=__version__,
        architecture=architecture,
        size=size,
        python=".".join(version),
        next_python=f"{version[0]}.{int(version[1]) + 1}",
    )
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(text)


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
