# SPDX-License-Identifier: Apache-2.0
"""berth-kube and an API server that is away, slow, refuses, or answers nonsense."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent import Agent
from certificates import Authority
from fakeserver import FakeServer
from waiting import PATIENCE_S, until

NODE = "n1"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def server(authority: Authority) -> Iterator[FakeServer]:
    made = FakeServer(authority, NODE)
    yield made
    made.stop()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("good-token\n")
    return file


@pytest.fixture
def agent(server: FakeServer, authority: Authority, token: Path, build: Path, tmp_path: Path) -> Iterator[Agent]:
    made = Agent(build / "integrations/kubernetes/berth-kube", tmp_path / NODE, NODE, "--interval", "5")
    made.config.write_text(f'server = "{server.url}"\nca = "{authority.certificate}"\ntoken = "{token}"\n')
    made.say(cpu=6.5)
    yield made
    made.stop(signal.SIGKILL)


def test_a_closed_standard_error_ends_nothing(server: FakeServer, agent: Agent) -> None:
    agent.log = Path("/dev/full")
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    # It says that berthd is silent.
    agent.state_file.unlink()
    until(lambda: server.amount() == "0", "nothing for best-effort work")
    agent.say(cpu=4)
    until(lambda: server.amount() == "4k" or server.amount() == "4000", "be-cpu")
    assert agent.stop() == 0
    assert server.amount() is None


def test_publishes_and_takes_back(server: FakeServer, agent: Agent) -> None:
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    assert server.amount("be-memory") == str(2 * 1024**3)
    assert server.taint() is None
    agent.say(cpu=6.5, state="no-schedule")
    until(lambda: server.taint() == "cpu", "taint")
    assert agent.stop() == 0
    assert server.amount() is None and server.taint() is None
    # All else is as it was.
    assert server.node["status"] == {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}}
    assert server.node["spec"] == {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]}


def test_a_silent_berthd_has_nothing(server: FakeServer, agent: Agent) -> None:
    agent.say(cpu=6.5, state="no-schedule")
    agent.start()
    until(lambda: server.taint() == "cpu", "taint")
    agent.state_file.unlink()
    until(lambda: server.amount() == "0" and server.amount("be-memory") == "0" and server.taint() is None, "nothing")
    agent.says("berthd does not run")
    agent.say(cpu=6.5)
    until(lambda: server.amount() == "6500", "berthd's return")
    agent.say(cpu=6.5, age_s=1000)
    until(lambda: server.amount() == "0", "nothing of an old state")
    agent.says("berthd hangs")


def test_publishes_to_a_node_that_was_made_anew(server: FakeServer, agent: Agent) -> None:
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    with server.lock:
        server.make_anew("u-2")
    until(lambda: server.amount() == "6500", "be-cpu of the new object")
    agent.says("made anew")


@pytest.mark.parametrize("mode", [409, 429, 500, 503, "hang", "long", "html"])
def test_backs_off_from_a_server_that_fails(server: FakeServer, agent: Agent, mode: str | int) -> None:
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    server.mode = mode
    agent.say(cpu=3)
    agent.says("cannot publish")
    begun = len(server.requests)
    # Three more attempts; each conflict is three requests.
    until(lambda: len(server.requests) >= begun + (9 if mode == 409 else 2 if mode == "hang" else 3), "further attempts")
    times = [at for at, _ in server.requests[begun:]]
    assert times == sorted(times)
    assert sum("cannot publish" in line for line in agent.said()) == 1
    assert server.amount() == "6500"
    server.mode = "good"
    until(lambda: server.amount() == "3000", "publication after the fault")
    agent.says("published again after")


def test_waits_as_long_as_the_server_asks(server: FakeServer, agent: Agent) -> None:
    server.mode, server.retry_after = 429, 12
    agent.start()
    agent.says("this is 429")
    server.mode = "good"
    until(lambda: server.amount() == "6500", "publication")
    first, second = server.requests[0][0], server.requests[1][0]
    assert second - first >= 12


def test_refused_credentials_are_said_and_new_ones_are_taken(server: FakeServer, agent: Agent, token: Path) -> None:
    server.token = "another"
    agent.start()
    agent.says("401: Unauthorized (the credentials are refused)")
    assert server.amount() is None
    token.write_text("another")
    until(lambda: server.amount() == "6500", "publication with the new token")
    server.mode = 403
    agent.says("the credentials are not enough")
    assert sum("cannot publish" in line for line in agent.said()) == 2


def test_a_server_that_is_away_is_found_again(server: FakeServer, agent: Agent, authority: Authority) -> None:
    port = server.server_address[1]
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    server.stop()
    agent.says("cannot publish")
    again = FakeServer(authority, NODE, port)
    try:
        until(lambda: again.amount() == "6500", "publication after the server's return")
    finally:
        again.stop()


def test_a_server_of_another_authority_is_not_trusted(server: FakeServer, agent: Agent, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other")
    lines = [line for line in agent.config.read_text().splitlines() if not line.startswith("ca")]
    agent.config.write_text("\n".join([*lines, f'ca = "{other.certificate}"']))
    done = agent.once()
    assert done.returncode == 1
    assert f"cannot publish: ca {other.certificate} does not vouch for {server.url}: SSL certificate problem" in done.stderr
    assert server.requests == []


def test_an_authority_that_is_replaced_is_read_again(server: FakeServer, agent: Agent, authority: Authority, tmp_path: Path) -> None:
    used = tmp_path / "ca.crt"
    used.write_bytes(Authority(tmp_path / "other").certificate.read_bytes())
    agent.config.write_text(agent.config.read_text().replace(str(authority.certificate), str(used)))
    agent.start()
    agent.says("does not vouch for")
    used.write_bytes(authority.certificate.read_bytes())
    until(lambda: server.amount() == "6500", "publication with the right authority")


def test_files_that_do_not_fit_each_other_are_named(agent: Agent, authority: Authority) -> None:
    certificate, key = authority.issue("n1", "/O=berth-kube/CN=berth-kube:n1")
    _, other = authority.issue("n2", "/O=berth-kube/CN=berth-kube:n2")
    words = agent.words
    agent.words = [*words, "--certificate", str(certificate), "--key", str(other)]
    done = agent.once()
    assert done.returncode == 1
    assert f"certificate {certificate} and key {other} cannot be used together: " in done.stderr
    agent.words = [*words, "--certificate", str(key), "--key", str(certificate)]
    assert f"certificate {key} has a private key in place of a certificate" in agent.once().stderr
    agent.words = [*words, "--ca", str(authority.key)]
    assert f"ca {authority.key} has a private key in place of a certificate" in agent.once().stderr


def test_a_stop_does_not_wait_for_a_server_that_hangs(server: FakeServer, agent: Agent) -> None:
    server.mode = "hang"
    agent.start()
    until(lambda: server.requests, "request")
    begun = time.monotonic()
    assert agent.stop() == 0
    # The unit has TimeoutStopSec=30; a busy machine may take a little longer.
    assert time.monotonic() - begun < PATIENCE_S
    agent.says("cannot take the published figures back")
    agent.says("They stay on the node n1")


def test_a_stop_goes_on_until_the_server_is_back(server: FakeServer, agent: Agent) -> None:
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    server.mode = 503
    assert agent.process is not None
    agent.process.terminate()
    agent.says("cannot take the published figures back, and tries again")
    server.mode = "good"
    assert agent.process.wait(PATIENCE_S) == 0
    assert server.amount() is None
    agent.says("took the published figures back")


def test_no_connection_resumes_the_identity_of_an_old_certificate(server: FakeServer, agent: Agent, authority: Authority) -> None:
    certificate, key = authority.issue("n1", "/O=berth-kube/CN=berth-kube:n1")
    agent.words += ["--certificate", str(certificate), "--key", str(key)]
    agent.start()
    until(lambda: server.amount() == "6500", "be-cpu")
    fresh, fresh_key = authority.issue("n1-new", "/O=berth-kube/CN=berth-kube:n1-new")
    certificate.write_bytes(fresh.read_bytes())
    key.write_bytes(fresh_key.read_bytes())
    # After a failure it connects again.
    server.mode = 503
    agent.says("this is 503")
    server.mode = "good"
    until(lambda: len(server.clients) > 1 and server.clients[-1] == "berth-kube:n1-new", "connection with the new certificate")
    assert not any(server.resumed)


def test_once_and_withdraw(server: FakeServer, agent: Agent) -> None:
    assert agent.once().returncode == 0
    assert server.amount() == "6500"
    agent.words.append("--withdraw")
    assert agent.once().returncode == 0
    assert server.amount() is None
    server.mode = 500
    done = agent.once()
    assert done.returncode == 1 and "this is 500" in done.stderr


def test_a_dry_run_asks_nobody(server: FakeServer, agent: Agent) -> None:
    agent.say(cpu=6.5, state="no-schedule")
    agent.words.append("--dry-run")
    done = agent.once()
    assert done.returncode == 0
    assert done.stdout == (
        f"PATCH {server.url}/api/v1/nodes/n1/status\n"
        '{"status":{"allocatable":{"berth.org/be-cpu":"6500","berth.org/be-memory":"2147483648"},'
        '"capacity":{"berth.org/be-cpu":"6500","berth.org/be-memory":"2147483648"}}}\n'
        "taint berth.org/no-schedule=cpu:NoSchedule\n"
    )
    assert server.requests == []
