# SPDX-License-Identifier: Apache-2.0
"""CPU quotas and memory.high through systemd and the kernel: each case of test-host-limits is a test of its own here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from guestlib import Guest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve() / "tests" / "host" / "test-host-limits"
IN_GUEST = "/root/test-host-limits"


def cases() -> list[str]:
    if not PROGRAM.exists():
        return ["missing"]
    listing = subprocess.run([PROGRAM, "--gtest_list_tests"], capture_output=True, text=True, check=True).stdout
    return [line.split("#")[0].strip() for line in listing.splitlines() if line.startswith("  ")]


@pytest.fixture
def program(guest: Guest) -> str:
    """The program in the guest; berthd's libraries are what it needs."""
    if not PROGRAM.exists():
        pytest.skip(f"{PROGRAM} is not built")
    guest.run("systemctl stop berthd.service", check=False)
    if guest.run(["test", "-x", IN_GUEST], check=False).returncode != 0:
        guest.push(PROGRAM, IN_GUEST)
    return IN_GUEST


@pytest.mark.parametrize("case", cases())
def test_limits(guest: Guest, program: str, case: str) -> None:
    done = guest.run(f"{program} --gtest_filter='*.{case}'", check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[  PASSED  ] 1 test." in done.stdout, done.stdout
