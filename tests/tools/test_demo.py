# SPDX-License-Identifier: Apache-2.0
"""tools/demo does not touch a host that others use without being told, and its table compares the ways."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from demonstration import table  # noqa: E402


def risk(path: str, cgroup_root: Path) -> str:
    words = ["bash", "-c", f". tools/lib.sh; PATH={path}; risk_of_native {cgroup_root}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def lack(cgroup_root: Path, run: Path, vcpus: int = 4) -> str:
    words = ["bash", "-c", f". tools/lib.sh; nproc() {{ echo {vcpus}; }}; lack_of_native {cgroup_root} {run}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


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


def test_a_host_without_systemd_the_cpuset_controller_or_four_vcpus_is_not_one_to_run_on(tmp_path: Path) -> None:
    controllers = tmp_path / "cgroup.controllers"
    assert lack(tmp_path, tmp_path) == "systemd does not run here"
    (tmp_path / "systemd/system").mkdir(parents=True)
    for text in (None, "cpu memory\n", "cpu cpusets\n"):
        if text:
            controllers.write_text(text)
        assert lack(tmp_path, tmp_path) == "cgroup v2 has no cpuset controller here"
    controllers.write_text("cpuset cpu memory\n")
    assert lack(tmp_path, tmp_path) == ""
    assert lack(tmp_path, tmp_path, 3) == "it has fewer than four vCPUs"


def test_native_refuses_where_berth_is_installed_and_nobody_can_be_asked(tmp_path: Path) -> None:
    environment = dict(os.environ, PATH=f"{installed(tmp_path)}:{os.environ['PATH']}")
    done = subprocess.run(["tools/demo", "--native"], cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout == ""
    assert "because berth is installed here" in done.stderr and "add --yes, or use --guest" in done.stderr


def test_the_price_of_each_way_is_against_the_load_without_berth() -> None:
    def measured(p99: float, cores: float) -> dict[str, float]:
        return {"p99": p99, "p90": 1, "requests": 500, "batch_cores": cores}

    rounds = [{"unpinned": measured(200, 6), "shared": measured(50, 5), "vcpus": measured(100, 3)}] * 3
    default, own = table.price({"rounds": rounds})
    assert default.startswith("by berth's default: p99 of nginx x0.25; the batch keeps 83% of its CPU time")
    assert own.startswith("on vCPUs of its own: p99 of nginx x0.5; the batch keeps 50% of its CPU time")
    for measured_in_round in rounds:
        measured_in_round["shared"]["requests"] = 99
    assert table.price({"rounds": rounds})[0].startswith("by berth's default: p90 of nginx x1;")
