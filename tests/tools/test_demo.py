# SPDX-License-Identifier: Apache-2.0
"""tools/demo does not touch a host that others use without being told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def risk(path: str, cgroup_root: Path) -> str:
    words = ["bash", "-c", f". tools/lib.sh; PATH={path}; risk_of_native {cgroup_root}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def installed(directory: Path) -> Path:
    program = directory / "berthd"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return directory


def test_an_installed_berth_and_pods_are_a_risk(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert risk(str(empty), tmp_path) == ""
    (tmp_path / "kubepods.slice").mkdir()
    assert risk(str(empty), tmp_path).startswith("pods of Kubernetes run here")
    assert risk(str(installed(tmp_path)), empty).startswith("berth is installed here")


def test_native_refuses_where_berth_is_installed_and_nobody_can_be_asked(tmp_path: Path) -> None:
    environment = dict(os.environ, PATH=f"{installed(tmp_path)}:{os.environ['PATH']}")
    done = subprocess.run(["tools/demo", "--native"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert "because berth is installed here" in done.stderr and "add --yes, or use --guest" in done.stderr
