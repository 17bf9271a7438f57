# SPDX-License-Identifier: Apache-2.0
"""The package's scripts, when it is removed: what they leave in the runtime directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def call(script: str, word: str, root: Path) -> str:
    """Runs a script of the package with other directories. Returns its messages."""
    text = (ROOT / "debian" / f"berth.{script}").read_text()
    for path in ("/run/berth", "/var/lib/berth", "/etc/berth", "/usr/sbin/berthd", "/run/systemd/system"):
        text = text.replace(path, f"{root}{path}")
    return subprocess.run(["sh", "-c", text, "script", word], capture_output=True, text=True, check=True).stderr


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path in ("run/berth", "var/lib/berth", "etc/berth", "usr/sbin"):
        (tmp_path / path).mkdir(parents=True)
    (tmp_path / "run/berth/state.json").write_text("{}")
    (tmp_path / "run/berth/undo.db").write_text("records")
    return tmp_path


def restoring(root: Path, status: int) -> None:
    program = root / "usr/sbin/berthd"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)


def test_a_removal_keeps_an_undo_journal_that_is_not_empty(root: Path) -> None:
    restoring(root, 1)
    call("prerm", "remove", root)
    for word in ("remove", "purge"):
        assert "Install berth again and call 'berthd --restore', or reboot" in call("postrm", word, root)
        # A scheduler finds no state.
        assert [file.name for file in (root / "run/berth").iterdir()] == ["undo.db"]
    assert not (root / "etc/berth").exists() and not (root / "var/lib/berth").exists()


def test_a_removal_after_which_nothing_is_to_be_put_back_leaves_nothing(root: Path) -> None:
    restoring(root, 0)
    call("prerm", "remove", root)
    assert call("postrm", "remove", root) == ""
    assert not (root / "run/berth").exists()
    assert call("postrm", "purge", root) == ""
    assert list(root.glob("run/*")) == [] and not (root / "etc/berth").exists()


def test_an_upgrade_restores_nothing_itself(root: Path) -> None:
    restoring(root, 0)
    call("prerm", "upgrade", root)
    assert not (root / "run/berth/restored").exists()


def test_a_removal_without_a_journal_leaves_nothing(root: Path) -> None:
    (root / "run/berth/undo.db").unlink()
    restoring(root, 1)
    call("prerm", "remove", root)
    assert call("postrm", "remove", root) == ""
    assert not (root / "run/berth").exists()
