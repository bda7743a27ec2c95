"""Names that harnesses read as instructions or act upon as configuration."""

from __future__ import annotations

import pytest

from truekeep.text.instruction_files import is_harness_config, is_instruction_file, is_reserved_for_people


@pytest.mark.parametrize(
    "path",
    [
        *("CLAUDE.md", "memory/cards/claude.md", "rules/Agents.md", "memory/projects/AGENTS.override.md", "GEMINI.md"),
        *("CLAUDE.local.md", ".github/copilot-instructions.md", "a/py.instructions.md", "memory/cards/SOUL.markdown"),
        *("IDENTITY.md", "USER.md", "TOOLS.md", "BOOTSTRAP.md", "HEARTBEAT.md", "MEMORY.md", "skills/x/SKILL.md"),
        *(".cursorrules", "sub/.windsurfrules", "CONVENTIONS.md", "CLA\u200dUDE.md", "ＣＬＡＵＤＥ.md", "claude.md. "),
        *("AmazonQ.md", "CODEBUDDY.md", "IFLOW.md", "OpenCode.md", "GROK.md", "HERMES.md", ".hermes.md", "KIMI.md"),
    ],
)
def test_instruction_files_are_known_in_any_folder_and_letter_case(path: str) -> None:
    assert is_instruction_file(path)
    assert is_reserved_for_people(path)


@pytest.mark.parametrize(
    "path",
    [
        *(
            "",
            "memory/cards/claude-hooks.md",
            "memory/cards/llm-release.md",
            "rules/security.md",
            "memory/2026-11-17.md",
        ),
        *("memory/projects/toolshed.md", "CLAUDE.md/notes.md", ".learnings/ERRORS.md", "README.md"),
    ],
)
def test_other_names_are_no_instruction_files(path: str) -> None:
    assert not is_instruction_file(path)


def test_names_that_agents_open_first_are_a_persons_to_make() -> None:
    assert is_reserved_for_people("memory/cards/Readme.md")
    assert is_reserved_for_people("rules/TEMPLATE.md")
    assert not is_reserved_for_people("rules/readme-style.md")


@pytest.mark.parametrize(
    "path",
    [
        *(".claude/settings.json", "sub/.codex/config.toml", ".CURSOR/rules/a.mdc", ".mcp.json", ".vscode/tasks.json"),
        *(".envrc", ".git/config", ".gitmodules", ".gitattributes", ".github/workflows/x.yml", "git~1/config"),
        *(".g\u200cit/config", ".bashrc", "home/.zshenv", ".ssh/authorized_keys", ".env.local", "opencode.json"),
        *(".amazonq/rules/a.md", ".pi/SYSTEM.md", ".grok/GROK.md", ".iflow/settings.json", ".codebuddy/settings.json"),
        *("hooks/x/HOOK.md", "hooks/x/handler.ts", "agents/ada/Hooks/x/handler.js", "skills/x/run.py", "package.json"),
        *("lefthook.yml", ".lefthook.toml", "lefthook-local.yaml", ".openhands/setup.sh", ".factory/hooks.json"),
    ],
)
def test_configuration_that_something_acts_upon_is_known(path: str) -> None:
    assert is_harness_config(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", ".gitignore", ".gitkeep", "MEMORY.md", ".learnings/ERRORS.md", "memory/cards/git.md", "run.sh"),
        *("memory/hooks/notes.md", "memory/cards/skills.md", "hooks", "lefthook"),
    ],
)
def test_other_files_are_no_configuration(path: str) -> None:
    assert not is_harness_config(path)
