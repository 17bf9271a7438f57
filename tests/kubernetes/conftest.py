# SPDX-License-Identifier: Apache-2.0
"""One cluster for all tests that need one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent import Agent
from cluster import Cluster, Missing

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "integrations/kubernetes/manifests"


@pytest.fixture(scope="session")
def build() -> Path:
    return Path(os.environ.get("BERTH_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    # A cold cache is no fault, in CI neither: making the programs takes longer than CI has.
    try:
        made = Cluster(tmp_path_factory.mktemp("cluster"))
    except Missing as reason:
        pytest.skip(str(reason))
    for manifest in ("rbac.yaml", "rbac-pods.yaml"):
        made.apply(MANIFESTS / manifest)
    yield made
    made.stop()


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """Without nodes, pods and a scheduler."""
    yield running
    running.end("kube-scheduler")
    running.clear()


@pytest.fixture
def agent_of(cluster: Cluster, build: Path, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    """Makes the berth-kube of a node, with a service account of the node's name."""
    made: list[Agent] = []

    def make(node: str, *options: str, account: str = "") -> Agent:
        token = tmp_path / f"{node}.token"
        token.write_text(cluster.node_token(account or node))
        agent = Agent(build / "integrations/kubernetes/berth-kube", tmp_path / node, node, "--interval", "5", *options)
        agent.config.write_text(f'server = "{cluster.url}"\nca = "{cluster.authority.certificate}"\ntoken = "{token}"\n')
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.stop(signal.SIGKILL)
