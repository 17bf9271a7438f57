# SPDX-License-Identifier: Apache-2.0
"""The BPF programs on the real kernel: each case of test-host-ebpf is a test of its own here."""

import os

import pytest
from conftest import build_dir
from gtest_cases import cases, run

PROGRAM = build_dir() / "tests" / "host" / "test-host-ebpf"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("case", cases(PROGRAM))
def test_ebpf(case: str) -> None:
    run(PROGRAM, case)
