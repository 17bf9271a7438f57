# SPDX-License-Identifier: Apache-2.0
"""The guest as a fixture. `tests/vm/run` boots it and says so by BERTH_GUEST; without, one is booted here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import Berth
from guestlib import Guest


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    if name := os.environ.get("BERTH_GUEST"):
        yield Guest.attach(name)
        return
    with Guest.boot(f"pytest-{os.getpid()}") as booted:
        if staging := os.environ.get("BERTH_STAGING"):
            booted.install(Path(staging))
        yield booted


@pytest.fixture
def berth(guest: Guest) -> Iterator[Berth]:
    """The berth that is installed in the guest; stopped and its test units gone after each test."""
    if guest.run("command -v berthd", check=False).returncode != 0:
        if os.environ.get("BERTH_STAGING"):
            pytest.fail("the staging tree was installed and has no berthd")
        pytest.skip("no berth in the guest; give tests/vm/run --staging")
    subject = Berth(guest)
    yield subject
    subject.clean_up()
