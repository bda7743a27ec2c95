"""A Homebrew formula for one release: python -m tools.homebrew dist/truekeep-0.1.0.tar.gz > truekeep.rb

It installs the sdist of that release into an environment of its own, with the versions of constraints.txt, which the
sdist has. A tap (a repository with `Formula/truekeep.rb`) is all that `brew install` needs.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

RELEASES = "https://github.com/truekeep/truekeep/releases/download"
FORMULA = """\
class Truekeep < Formula
  desc "One memory for all your coding agents, checked against the code"
  homepage "https://github.com/truekeep/truekeep"
  url "{releases}/v{version}/{name}"
  sha256 "{digest}"
  license "MIT"

  depends_on "git"
  depends_on "python@3.13"

  def install
    python = Formula["python@3.13"].opt_bin/"python3.13"
    system python, "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--constraint", "constraints.txt", "."
    bin.install_symlink libexec/"bin/truekeep"
    man1.install "man/truekeep.1"
    bash_completion.install "completions/truekeep.bash" => "truekeep"
    zsh_completion.install "completions/_truekeep"
    fish_completion.install "completions/truekeep.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/truekeep --version")
    system bin/"truekeep", "init", testpath/"memory"
    system bin/"truekeep", "status", "-w", testpath/"memory"
  end
end
"""


def write_formula(sdist: Path) -> str:
    """The formula for a source archive, by its bytes."""
    version = sdist.name.removeprefix("truekeep-").removesuffix(".tar.gz")
    digest = hashlib.sha256(sdist.read_bytes()).hexdigest()
    return FORMULA.format(releases=RELEASES, version=version, name=sdist.name, digest=digest)


def main() -> int:
    archives = [Path(name) for name in sys.argv[1:]]
    if len(archives) != 1 or not archives[0].name.endswith(".tar.gz") or not archives[0].is_file():
        print("name the sdist of the release: python -m tools.homebrew dist/truekeep-0.1.0.tar.gz", file=sys.stderr)
        return 2
    print(write_formula(archives[0]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
