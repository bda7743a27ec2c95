"""Commands that run something by the name that the repository gives it: a target, a script, a framework's command."""

# ruff: noqa: SIM905  (a list of words reads best as words)
from __future__ import annotations

import re
from typing import NamedTuple

from truekeep.verify.claims.patterns import RawClaim

_OPTIONS = r"(?:\s+-[^\s]+)*"
_END = r"(?=\s|$)"
_NPM_OWN = frozenset(
    "install i ci add remove rm uninstall update upgrade init create publish pack link unlink audit outdated "
    "exec x dlx list ls "
    "view info config login logout whoami version cache prune dedupe run set get why up import store workspace "
    "workspaces "
    "patch approve-builds rebuild help doctor explain fund search token root bin prefix dist-tag pm".split()
)
_COMPOSER_OWN = frozenset(
    "about archive audit browse bump check-platform-reqs clear-cache clearcache cc completion config create-project "
    "depends why diagnose dump-autoload dumpautoload exec fund global help init install i licenses list outdated "
    "prohibits why-not reinstall remove rm uninstall require r run-script run search self-update selfupdate show info "
    "status suggests update upgrade u validate".split()
)


class _Runner(NamedTuple):
    """What a command line that runs something by its name looks like, and who knows the names."""

    owner: str
    pattern: re.Pattern[str]
    is_weak: bool = False  # the program has commands of its own, or takes those of others


def _runner(owner: str, pattern: str, *, is_weak: bool = False) -> _Runner:
    return _Runner(owner, re.compile(pattern + _END), is_weak)


_NAME = r"(?P<name>[A-Za-z][\w:.-]*)"
_SCRIPT = re.compile(rf"(?P<tool>make|gmake|just|npm|pnpm|yarn|bun)(?P<run> run(?:-script)?)? {_NAME}(?= |$)")
_RUNNERS = (
    _runner("composer", rf"composer\s+(?:run|run-script){_OPTIONS}\s+(?P<name>[A-Za-z@][\w:.-]*)"),
    _runner("composer", r"composer\s+(?P<name>[A-Za-z][\w:.-]*)", is_weak=True),
    _runner("artisan", r"(?:(?:php|\S*sail)\s+)?(?:\./)?artisan\s+(?P<name>[a-z][\w-]*(?::[\w-]+)+)"),
    _runner("artisan", r"\S*sail\s+art\s+(?P<name>[a-z][\w-]*(?::[\w-]+)+)"),
    _runner("rake", r"(?:bundle\s+exec\s+)?(?:\.?/?bin/)?(?:rake|rails)\s+(?P<name>[a-z]\w*(?::\w+)+)"),
    _runner("mix", r"mix\s+(?P<name>[a-z]\w*(?:\.\w+)+)"),
    _runner("manage.py", r"(?:python3?\s+)?(?:\./)?(?:[\w-]+/)*manage\.py\s+(?P<name>[a-z]\w*)"),
    _runner("nox", rf"nox{_OPTIONS}\s+(?:-s|--session)(?:\s+|=)(?P<name>[A-Za-z][\w-]*)"),
    _runner("task", r"task\s+(?P<name>[A-Za-z][\w:.-]*)"),
    _runner("mkdocs", r"(?:python3?\s+-m\s+)?mkdocs\s+(?P<name>serve|build|gh-deploy)"),
    _runner("cargo package", r"cargo\s+[a-z]+[^|;&]*?\s(?:-p|--package)(?:\s+|=)(?P<name>[A-Za-z][\w-]*)"),
    _runner("cargo bin", r"cargo\s+[a-z]+[^|;&]*?\s--bin(?:\s+|=)(?P<name>[A-Za-z][\w-]*)"),
    _runner("cargo example", r"cargo\s+[a-z]+[^|;&]*?\s--example(?:\s+|=)(?P<name>[A-Za-z][\w-]*)"),
    _runner("workspace", r"pnpm\s+(?:-[\w-]+\s+)*(?:--filter|-F)(?:\s+|=)[\"']?(?P<name>@?[a-z0-9][\w./-]*)[\"']?"),
    _runner("workspace", r"npm\s+[^|;&]*?(?:--workspace|-w)(?:\s+|=)[\"']?(?P<name>@[a-z0-9][\w.-]*/[\w.-]+)[\"']?"),
    _runner("workspace", r"yarn\s+workspace\s+(?P<name>@?[a-z0-9][\w./-]*)"),
)  # fmt: skip
_WRAPPED = re.compile(r"(?:(?:uv|poetry|pdm|hatch|pipenv|rye)\s+run\s+)")


def task_claims(code: str, at: int, start: int) -> tuple[list[RawClaim], bool]:
    """What a command runs by its name, `at` being where its program begins, and whether its other words say nothing."""
    if (match := _SCRIPT.match(code, at)) is not None and not _is_filtered(match):
        return _script_claims(match, start), True
    if (wrapped := _WRAPPED.match(code, at)) is not None:
        at = wrapped.end()
    found: dict[int, RawClaim | None] = {}
    for runner in _RUNNERS:
        if (match := runner.pattern.match(code, at)) is not None:
            first, last = match.span("name")
            is_others = runner.is_weak and match["name"] in _COMPOSER_OWN
            raw = RawClaim(start + first, start + last, "script", match["name"], "a command", owner=runner.owner,
                           is_weak=runner.is_weak)  # fmt: skip
            found.setdefault(first, None if is_others else raw)
    return [raw for raw in found.values() if raw is not None], False


def _is_filtered(match: re.Match[str]) -> bool:
    return match["tool"] == "yarn" and match["name"] == "workspace"


def _script_claims(match: re.Match[str], start: int) -> list[RawClaim]:
    tool, name = match["tool"], match["name"]
    own = tool in ("make", "gmake", "just") or match["run"] or (tool != "npm" or name in ("test", "start"))
    if not own or "=" in name or not (match["run"] or tool in ("make", "gmake", "just") or name not in _NPM_OWN):
        return []
    first, last = match.span("name")
    return [RawClaim(start + first, start + last, "script", name, "a command", owner=tool)]
