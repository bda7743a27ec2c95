"""The names of files that harnesses, editors, shells and git obey as instructions or configuration.

A harness takes such a file for orders of its user, in any folder; so none may get into memory without a person. Names
are compared as the most lenient file system does: in any letter case, without invisible characters.
"""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath

_TEXT = (".md", ".mdc", ".mdx", ".markdown", ".txt")
_VARIANTS = (".local", ".override", ".instructions", ".example", ".template")

_INSTRUCTIONS = frozenset(
    (
        *("claude", "agents", "agent", "gemini", "codex", "qwen", "warp", "crush", "replit"),
        *("amazonq", "codebuddy", "iflow", "opencode", "grok", "hermes", ".hermes", "kimi"),
        *("copilot-instructions", "conventions", "skill"),
        *("soul", "identity", "user", "tools", "boot", "bootstrap", "heartbeat", "memory", "handover"),
        *(".cursorrules", ".windsurfrules", ".clinerules", ".roorules", ".rules", ".goosehints", ".airules"),
        *(".augment-guidelines", ".junie-guidelines"),
    )
)
"""Names without their ending, as harnesses look for them in the folders that they work in."""

_COPIED = frozenset(("readme", "template"))
"""Names that agents open first or copy from."""

_HARMLESS = frozenset((".gitignore", ".gitkeep"))
_CONFIG_FOLDERS = frozenset(
    (
        *(".claude", ".claude-plugin", ".codex", ".cursor", ".gemini", ".qwen", ".windsurf", ".openclaw", ".opencode"),
        *(".copilot", ".aider", ".continue", ".cline", ".clinerules", ".roo", ".kiro", ".kilocode", ".junie", ".trae"),
        *(".openhands", ".factory", ".tabnine", ".zencoder", ".qodo", ".lefthook"),
        *(".amp", ".crush", ".goose", ".augment", ".devin", ".agents", ".agent", ".plandex", ".zed", ".idx"),
        *(".amazonq", ".codebuddy", ".iflow", ".grok", ".hermes", ".kimi", ".pi"),
        *(".vscode", ".idea", ".fleet", ".devcontainer", ".direnv", ".husky", ".circleci", ".mise", ".cargo"),
        *(".ssh", ".gnupg", ".aws", ".azure", ".gcloud", ".kube", ".docker", ".config", ".local"),
    )
)
_WORKSPACE_FOLDERS = frozenset(("hooks", "skills"))
"""Folders of a workspace from which OpenClaw loads code and instructions; below memory/ they are plain folders."""

_CONFIG_FILES = frozenset(
    (
        *("package.json", ".pnpmfile.cjs", "bunfig.toml", ".simple-git-hooks.json", ".pre-commit-config.yml"),
        *(".mcp.json", "mcp.json", "mcp_config.json", ".claude.json", "claude_desktop_config.json", "opencode.json"),
        *("opencode.jsonc", "openclaw.json", "crush.json", ".crush.json", "codex.toml", ".replit"),
        *(".aider.conf.yml", ".aiderignore", ".cursorignore", ".worktreeinclude"),
        *(
            ".envrc",
            ".env",
            ".netrc",
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pypirc",
            ".condarc",
            ".pre-commit-config.yaml",
        ),
        *(".mise.toml", "mise.toml", ".tool-versions", ".hgrc", ".pythonrc", ".pythonstartup", ".pdbrc", ".inputrc"),
        *(".profile", ".login", ".logout", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc"),
        *(
            ".xprofile",
            ".xinitrc",
            ".xsession",
            ".xsessionrc",
            ".vimrc",
            ".exrc",
            ".nvimrc",
            ".emacs",
            ".dir-locals.el",
        ),
        *(".tmux.conf", ".screenrc", ".gdbinit", ".lldbinit", ".forward", ".rhosts", ".crontab"),
    )
)
_LEFTHOOK = ("lefthook.", ".lefthook.", "lefthook-local.", ".lefthook-local.")  # with any of four endings


def is_instruction_file(path: str) -> bool:
    """Whether any harness reads a file of this name as instructions, in any folder."""
    name = _comparable(PurePosixPath(path).name)
    return name in _INSTRUCTIONS or name.endswith(".instructions.md") or _stem_of(name) in _INSTRUCTIONS


def is_reserved_for_people(path: str) -> bool:
    """Whether only a person may create a file of this name: an instruction file, or one that agents open first."""
    return is_instruction_file(path) or _stem_of(_comparable(PurePosixPath(path).name)) in _COPIED


def is_harness_config(path: str) -> bool:
    """Whether a harness, editor, shell, git or ssh reads a file at this path as configuration."""
    parts = [_comparable(part) for part in PurePosixPath(path).parts]
    if any(part in _CONFIG_FOLDERS or (part.startswith((".git", "git~")) and part not in _HARMLESS) for part in parts):
        return True
    if parts and parts[0] != "memory" and not _WORKSPACE_FOLDERS.isdisjoint(parts[:-1]):
        return True
    return bool(parts) and (parts[-1] in _CONFIG_FILES or parts[-1].startswith((".env.", *_LEFTHOOK)))


def _stem_of(name: str) -> str:
    """A comparable name without its extension, and without a suffix such as ".local"."""
    for ending in _TEXT:
        if name.endswith(ending):
            name = name.removesuffix(ending)
            break
    for variant in _VARIANTS:
        name = name.removesuffix(variant)
    return name


def _comparable(name: str) -> str:
    """A name as the most lenient file system compares it: without case, invisible characters and trailing dots."""
    if not name.isascii():
        visible = (character for character in name if unicodedata.category(character) != "Cf")
        name = unicodedata.normalize("NFKC", "".join(visible))
    return name.casefold().rstrip(". ")
