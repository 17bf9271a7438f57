# SPDX-License-Identifier: Apache-2.0
"""Executors that share their Worker's cgroup, each in a leaf of its own while berth enforces, of a cluster that goes on
all the while."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Scene
from sparklib import CONFIG, PATIENCE_S, Application, Berthd, Groups, own_dirs, until

ROUNDS, ROWS = 2, 100_000
# Who is not quick to end is not to be killed for it here.
PATIENT = 'eviction.grace = "1h"\n' + CONFIG
ENFORCE = f'mode = "enforce"\n{PATIENT}'


def place(pid: int) -> str | None:
    """The cgroup that a process lives in; None where it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                return line[4:]
    return None


def leaf_of(pid: int) -> str | None:
    """The leaf that a process lives in; None where it is in none."""
    path = place(pid)
    return path if path and path.startswith(f"{Groups.NAME}/worker.berth-executor-{pid}-") else None


def leaves(scene: Scene) -> list[str]:
    return sorted(path.name for path in scene.groups.base.glob("*.berth-executor-*"))


def make_room(scene: Scene) -> None:
    """The applications that all tests share have ended, as after test_endings: the cluster's cores are for others."""
    scene.end_ml.touch()
    scene.ml.process.wait(timeout=PATIENCE_S)
    if scene.etl.process.poll() is None:
        scene.etl.process.kill()
        scene.etl.process.wait(timeout=PATIENCE_S)
    until("their executors have ended", lambda: not scene.etl.executor_pids() and not scene.ml.executor_pids())


class Pair:
    """An application with two executors, that waits to be told to end."""

    def __init__(self, scene: Scene, name: str, directory: Path) -> None:
        make_room(scene)
        self.end = directory / f"end-{name}"
        self.app: Application = scene.cluster.submit(name, str(ROUNDS), "4", "wait", str(self.end), cores=2)
        self.app.says("^(ready)")
        until("it has two executors", lambda: len(self.app.executor_pids()) == 2)

    def pids(self) -> list[int]:
        return sorted(self.app.executor_pids().values())

    def ends_well(self) -> None:
        self.end.touch()
        assert int(self.app.says(r"^total (\d+)")) == ROUNDS * ROWS * (ROWS - 1) // 2
        assert self.app.process.wait(timeout=PATIENCE_S) == 0


@pytest.fixture
def pair(scene: Scene, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pair]:
    made = Pair(scene, f"leaf-{request.node.name[5:20]}", tmp_path)
    yield made
    if made.app.process.poll() is None:
        made.app.process.kill()
        made.app.process.wait()


@pytest.fixture
def enforcing(scene: Scene, build: Path, tmp_path: Path) -> Iterator[Berthd]:
    if Path("/run/systemd/system").is_dir():
        pytest.skip("systemd runs here, whose cgroups these would be; tests/vm/test_leaf.py has what is done then")
    started = Berthd(build, tmp_path, config=PATIENT, enforce=True)
    yield started
    if started.process.returncode is None:
        started.stop()


def all_in_leaves(pair: Pair) -> bool:
    pids = pair.pids()
    return len(pids) == 2 and all(leaf_of(pid) for pid in pids)


def known_by_itself(berthd: Berthd, leaf: str) -> bool:
    found = berthd.spark()["candidates"].get(leaf)
    return found is not None and found["kind"] == "executor"


def test_each_executor_can_be_evicted_by_itself(scene: Scene, pair: Pair, enforcing: Berthd) -> None:
    worker, master = scene.cluster.worker, scene.cluster.master
    until("each executor has a leaf", lambda: all_in_leaves(pair))
    evicted, other = pair.pids()
    leaf = leaf_of(evicted)
    until("berth knows both by themselves", lambda: all(known_by_itself(enforcing, leaf_of(pid)) for pid in (evicted, other)))
    assert place(worker.pid) == scene.groups.workload("worker")
    assert enforcing.spark()["candidates"][leaf]["app"] == pair.app.id
    # A leaf's memory is read a tick after the leaf is made.
    until("berth knows what it holds, wherever that is charged", lambda: enforcing.spark()["candidates"][leaf]["frees_bytes"] > 10 << 20)
    entries = json.loads(enforcing.ctl("log", "--json"))["entries"]
    made = [entry for entry in entries if entry["kind"] == "leaf" and entry["result"] == "applied"]
    assert {entry["new"] for entry in made} == {leaf_of(evicted), leaf_of(other)}
    assert {entry["old"] for entry in made} == {scene.groups.workload("worker")}
    assert "serves executors in other cgroups" in enforcing.ctl("explain", scene.groups.workload("worker"))

    enforcing.ctl("evict", "--yes", leaf)
    until("it has ended", lambda: place(evicted) is None)
    until("its leaf is gone", lambda: not (scene.groups.base.parent / leaf).exists())
    assert enforcing.steps(leaf)[0] == "terminate applied", "no SIGPWR to one that does not handle it"
    assert leaf_of(other), "the other one lives on"
    assert worker.process.poll() is None
    assert master.process.poll() is None
    # The Master has another one started in its place, by the Worker, where that lives.
    until("its replacement has a leaf", lambda: all_in_leaves(pair) and evicted not in pair.pids())

    pids = pair.pids()
    enforcing.stop()
    assert [place(pid) for pid in pids] == [scene.groups.workload("worker")] * 2
    assert leaves(scene) == []
    assert other in pids
    pair.ends_well()


def test_an_application_that_ends_meanwhile_ends_the_eviction(scene: Scene, pair: Pair, enforcing: Berthd) -> None:
    until("each executor has a leaf", lambda: all_in_leaves(pair))
    evicted = pair.pids()[0]
    leaf = leaf_of(evicted)
    until("berth knows it by itself", lambda: known_by_itself(enforcing, leaf))
    os.kill(evicted, signal.SIGSTOP)  # it does not end at the first step
    enforcing.ctl("evict", "--yes", leaf)
    until("it was told to end", lambda: enforcing.steps(leaf) == ["terminate applied"])
    pair.ends_well()
    # Its Worker kills what does not end with its application.
    until("it has ended", lambda: place(evicted) is None)
    until("berth says so", lambda: enforcing.steps(leaf) == ["terminate applied", "end applied"])
    until("its leaf is gone", lambda: not (scene.groups.base.parent / leaf).exists())


def test_a_crash_leaves_what_a_restore_puts_back(scene: Scene, pair: Pair, enforcing: Berthd, build: Path, tmp_path: Path) -> None:
    until("each executor has a leaf", lambda: all_in_leaves(pair))
    os.kill(enforcing.process.pid, signal.SIGKILL)
    enforcing.process.wait(timeout=PATIENCE_S)
    enforcing.bus.terminate()
    enforcing.bus.wait()
    assert all_in_leaves(pair)
    command = [str(build / "daemon" / "berthd"), "--restore", "--json", *own_dirs(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    assert {item["after"] for item in json.loads(done.stdout)["restored"]} == {scene.groups.workload("worker")}
    assert {place(pid) for pid in pair.pids()} == {scene.groups.workload("worker")}
    assert leaves(scene) == []
    pair.ends_well()


def test_never_means_back_at_once(scene: Scene, pair: Pair, enforcing: Berthd, tmp_path: Path) -> None:
    until("each executor has a leaf", lambda: all_in_leaves(pair))
    (tmp_path / "berth.toml").write_text(ENFORCE.replace("[spark]\n", '[spark]\nleaf = "never"\n'))
    enforcing.ctl("reload")
    assert leaves(scene) == []
    assert {place(pid) for pid in pair.pids()} == {scene.groups.workload("worker")}
    spared = f"{scene.groups.workload('worker')} is spared: its cgroup is shared by"
    until("berth has seen them there", lambda: spared in enforcing.ctl("list", "--spark"))
    pair.ends_well()
