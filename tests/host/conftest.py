# SPDX-License-Identifier: Apache-2.0
"""What the tests on this machine's own kernel share: the build they run against."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def build_dir() -> Path:
    """The build directory: BERTH_BUILD, or build/ of the source tree."""
    return Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def build() -> Path:
    return build_dir()
