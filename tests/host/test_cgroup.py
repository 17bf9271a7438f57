# SPDX-License-Identifier: Apache-2.0
"""Discovery and sampling on the real cgroup v2 tree: each case of test-host-cgroup is a test of its own here."""

import os
import subprocess

import pytest
from conftest import build_dir

PROGRAM = build_dir() / "tests" / "host" / "test-host-cgroup"


def cases() -> list[str]:
    """Suite.Case of every test in the program; without a program one test that says so."""
    if not PROGRAM.exists():
        return ["missing"]
    listing = subprocess.run([PROGRAM, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names, suite = [], ""
    for line in listing.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("case", cases())
def test_cgroup(case: str) -> None:
    assert PROGRAM.exists(), f"{PROGRAM} is not built"
    done = subprocess.run(
        [PROGRAM, f"--gtest_filter={case}"], capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 1 test." in done.stdout or "[  SKIPPED ] 1 test" in done.stdout, done.stdout
    if "[  SKIPPED ] 1 test" in done.stdout:
        pytest.skip(done.stdout.split("Skipped\n")[-1].splitlines()[0])
