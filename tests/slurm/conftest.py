# SPDX-License-Identifier: Apache-2.0
"""One farm of three nodes for all tests. Before each test all nodes are alike, and no job is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import farm as farms
import pytest
from farm import Farm
from waiting import until

ROOT = Path(__file__).resolve().parents[2]


def absent(reason: str) -> None:
    """Where nobody looks on, a part that cannot run is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def build() -> Path:
    return Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def namespaces() -> None:
    if reason := farms.missing():
        absent(reason)
    farms.enter_namespaces()


@pytest.fixture(scope="session")
def three(namespaces: None, build: Path) -> Farm:
    try:
        return Farm(build, ROOT / "integrations/slurm/job_submit.lua", ["n1", "n2", "n3"])
    except AssertionError:
        print(farms.logs())
        raise


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report = outcome.get_result()
    if report.failed and "three" in getattr(item, "funcargs", {}):
        report.sections.append(("the farm's logs", farms.logs()))


@pytest.fixture
def farm(three: Farm) -> Iterator[Farm]:
    three.set_options()
    for file in farms.FLEET.iterdir():
        file.unlink()
    for node in three.nodes:
        three.say(node)
    until(three.idle, "idle farm")
    three.published()
    yield three
    farms.call("scancel", "--user=root")
    until(lambda: not farms.call("squeue", "-h"), "empty queue")
    for node in three.nodes:
        if three.drained(node) and not three.field(node, "Reason").startswith("berth:"):
            three.update(node, "state=resume")
