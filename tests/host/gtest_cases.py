# SPDX-License-Identifier: Apache-2.0
"""Makes each case of a GoogleTest program a test of its own."""

import subprocess
from pathlib import Path

import pytest


def cases(program: Path) -> list[str]:
    """Suite.Case of every test in the program; without a program one test that says so."""
    if not program.exists():
        return ["missing"]
    listing = subprocess.run([program, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    names, suite = [], ""
    for line in listing.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split("#")[0].strip())
        elif line.endswith("."):
            suite = line
    return names


def run(program: Path, case: str) -> None:
    """Runs one case; fails with its output, or skips with its reason."""
    assert program.exists(), f"{program} is not built"
    done = subprocess.run(
        [program, f"--gtest_filter={case}"], capture_output=True, text=True, timeout=1800, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 1 test." in done.stdout or "[  SKIPPED ] 1 test" in done.stdout, done.stdout
    if "[  SKIPPED ] 1 test" in done.stdout:
        pytest.skip(done.stdout.split("Skipped\n")[-1].splitlines()[0])
