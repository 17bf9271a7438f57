# SPDX-License-Identifier: Apache-2.0
"""Discovery and sampling on the real cgroup v2 tree: each case of test-host-cgroup is a test of its own here."""

import os

import pytest
from conftest import build_dir
from gtest_cases import cases, run

PROGRAM = build_dir() / "tests" / "host" / "test-host-cgroup"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("case", cases(PROGRAM))
def test_cgroup(case: str) -> None:
    run(PROGRAM, case)
