"""The state folder: what `init` writes into it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.helpers import run_cli


@pytest.mark.parametrize("earlier", ["# Words of an earlier version.\n", "# My own remark.\n\n"])
def test_init_names_repositories_in_a_configuration_that_sets_nothing(tmp_path: Path, earlier: str) -> None:
    """Whatever its comments say, and they stay."""
    assert run_cli("init", str(tmp_path / "memory")).returncode == 0
    config = tmp_path / "memory" / ".truekeep" / "config.toml"
    config.write_text(earlier + config.read_text())
    assert run_cli("init", str(tmp_path / "memory"), "--repo", "~/repos/*").returncode == 0
    assert config.read_text().startswith(earlier)
    assert 'repositories = ["~/repos/*"]' in config.read_text()


def test_init_leaves_a_configuration_with_settings_alone(tmp_path: Path) -> None:
    assert run_cli("init", str(tmp_path / "memory")).returncode == 0
    config = tmp_path / "memory" / ".truekeep" / "config.toml"
    config.write_text(config.read_text() + "\n[limits]\nreview_days = 7\n")
    before = config.read_text()
    run_cli("init", str(tmp_path / "memory"), "--repo", "~/repos/*")
    assert config.read_text() == before


def test_a_key_of_an_older_version_is_ignored_with_a_warning(tmp_path: Path) -> None:
    assert run_cli("init", str(tmp_path / "memory")).returncode == 0
    (tmp_path / "memory" / ".truekeep" / "config.toml").write_text("[recall]\nlend = false\ntranscripts = false\n")
    done = run_cli("search", "anything", "--workspace", str(tmp_path / "memory"))
    assert "recall.lend has no effect" in done.stderr
    assert "unknown key" not in done.stderr
