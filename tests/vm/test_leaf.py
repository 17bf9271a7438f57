# SPDX-License-Identifier: Apache-2.0
"""Executors of a Worker that is a unit of systemd's: each gets a scope beside it, and everything goes back. Programs go by the names of
Spark's, as in test_spark."""

from __future__ import annotations

import shlex

import pytest

from berth import Berth

PLACE = "/run/berth-test-spark"
# An instance: no scope may be called so, and its name is escaped in those of its executors'.
WORKER = "berth-test-be-worker@1.service"
SLICE = "Slice=system.slice"  # where the rules look for test units; an instance's own is one below
WORKER_NAME = "org.apache.spark.deploy.worker.Worker"
EXECUTOR_NAME = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
# A Worker with two executors, each with a child of its own, that lives on when they end.
WORKER_TEXT = f"""
import subprocess, time
for number in range(2):
    subprocess.Popen(["java", "{EXECUTOR_NAME}", "--app-id", "app-fake", "--executor-id", str(number)], executable="/usr/bin/python3")
while True:
    time.sleep(3600)
"""
EXECUTOR_TEXT = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
child = subprocess.Popen(["sleep", "36000"])
held = bytearray(30 << 20)
while True:
    time.sleep(3600)
"""
FAST = "[spark]\nwatch = true\ninterval = 0.5\n"
PATIENCE = 300


def start_worker(berth: Berth, *properties: str) -> None:
    berth.guest.run(f"mkdir -p -m 777 {PLACE}")
    berth.guest.write_file(f"{PLACE}/{WORKER_NAME}", WORKER_TEXT)
    berth.guest.write_file(f"{PLACE}/{EXECUTOR_NAME}", EXECUTOR_TEXT)
    command = f"exec -a java python3 {WORKER_NAME}"
    berth.start_unit(WORKER, f"bash -c '{command}'", "User=tester", f"WorkingDirectory={PLACE}", SLICE, *properties)
    berth.guest.poll(lambda: len(executors(berth)) == 2, PATIENCE, what="two executors")


def executors(berth: Berth) -> list[int]:
    found = berth.guest.run(f"pgrep -f {shlex.quote('^java ' + EXECUTOR_NAME)}", check=False).stdout
    return sorted(int(pid) for pid in found.split())


def place(berth: Berth, pid: int) -> str:
    return berth.guest.run(f"sed -n s,^0::/,,p /proc/{pid}/cgroup", check=False).stdout.strip()


def scopes(berth: Berth) -> list[str]:
    listed = berth.guest.run("systemctl list-units --all --plain --no-legend '*.berth-executor-*'").stdout
    return sorted(line.split()[0] for line in listed.splitlines() if line.strip())


def workload(unit: str) -> str:
    """The id that berth knows a unit by."""
    return f"system.slice/{unit}"


def group(unit: str) -> str:
    """For the shell."""
    return shlex.quote(f"/sys/fs/cgroup/{workload(unit)}")


def shown(berth: Berth, unit: str, name: str) -> str:
    return berth.guest.run(f"systemctl show -P {name} {shlex.quote(unit)}").stdout.strip()


def in_scopes(berth: Berth) -> bool:
    return len(scopes(berth)) == 2 and all(place(berth, pid).endswith(".scope") for pid in executors(berth))


@pytest.fixture
def divided(berth: Berth) -> Berth:
    """Both executors are in scopes of their own, and berth knows each by itself."""
    start_worker(berth)
    berth.start("enforce", extra=FAST)
    berth.guest.poll(lambda: in_scopes(berth), PATIENCE, what="a scope for each executor")

    def known() -> bool:
        found = berth.json("list", "--spark")["spark"]["candidates"]
        return all(found.get(workload(scope), {}).get("kind") == "executor" for scope in scopes(berth))

    berth.guest.poll(known, PATIENCE, what="berthd to know both by themselves")
    return berth


def test_each_is_a_scope_of_its_own_and_goes_by_itself(divided: Berth) -> None:
    guest = divided.guest
    for scope in scopes(divided):
        assert shown(divided, scope, "StopPropagatedFrom") == WORKER
        assert shown(divided, scope, "Slice") == "system.slice"
        assert shown(divided, scope, "BindsTo") == ""
        assert WORKER not in shown(divided, scope, "After").split(), "both stop at once"
        for same in ("TimeoutStopUSec", "TasksMax"):
            assert shown(divided, scope, same) == shown(divided, WORKER, same)
        for weight, file in {"CPUWeight": "cpu.weight", "IOWeight": "io.weight"}.items():
            given = guest.run(f"test -e {group(WORKER)}/{file}", check=False).returncode == 0
            assert shown(divided, scope, weight) == ("50" if given else "[not set]"), "as far as weights are given out there"
        guest.poll(f"test $(wc -l < {group(scope)}/cgroup.procs) = 2", 60, what=f"{scope} to have its child, too")
    first, second = scopes(divided)

    # An executor that has just started still allocates it, and a scope's memory is read a tick after the scope is made.
    def frees() -> bool:
        return divided.json("list", "--spark")["spark"]["candidates"][workload(first)]["frees_bytes"] >= 30 << 20

    guest.poll(frees, PATIENCE, what="what it frees to be known, though it was allocated in the Worker's cgroup")
    worker = shown(divided, WORKER, "MainPID")
    pid = int(first.split("-")[-2])
    guest.run(f"berthctl evict --yes {shlex.quote(workload(first))}")
    guest.poll(lambda: scopes(divided) == [second], PATIENCE, what="it to end")
    assert pid not in executors(divided)
    assert shown(divided, WORKER, "ActiveState") == "active"
    assert shown(divided, WORKER, "MainPID") == worker
    # Who stops the Worker stops its executors.
    guest.run(f"systemctl stop {WORKER}")
    all_end(divided)


def all_end(berth: Berth) -> None:
    berth.guest.poll(lambda: executors(berth) == [], PATIENCE, what="the executors to end")
    berth.guest.poll(lambda: scopes(berth) == [], PATIENCE, what="their scopes to be collected")


def test_who_dies_takes_its_executors_along(divided: Berth) -> None:
    divided.guest.run(f"systemctl kill --kill-whom=main -s KILL {WORKER}")
    all_end(divided)


def test_who_is_restarted_does_not_keep_its_former_executors(divided: Berth) -> None:
    former = executors(divided)
    divided.guest.run(f"systemctl restart {WORKER}")
    divided.guest.poll(lambda: not set(former) & set(executors(divided)), PATIENCE, what="the former ones to end")
    divided.guest.poll(lambda: in_scopes(divided), PATIENCE, what="a scope for each new one")


def test_all_goes_back_when_berth_stops(divided: Berth) -> None:
    divided.stop()
    assert [place(divided, pid) for pid in executors(divided)] == [workload(WORKER)] * 2
    divided.guest.poll(lambda: scopes(divided) == [], PATIENCE, what="the scopes to be collected")
    assert shown(divided, WORKER, "ActiveState") == "active"
    divided.guest.run(f"systemctl stop {WORKER}")
    assert executors(divided) == []


def test_all_goes_back_when_berth_only_observes(divided: Berth) -> None:
    divided.guest.run("berthctl mode observe")

    def back() -> bool:
        return [place(divided, pid) for pid in executors(divided)] == [workload(WORKER)] * 2

    divided.guest.poll(back, PATIENCE, what="both to be back")
    divided.guest.poll(lambda: scopes(divided) == [], PATIENCE, what="the scopes to be collected")
    divided.guest.run("berthctl mode enforce")
    divided.guest.poll(lambda: in_scopes(divided), PATIENCE, what="a scope for each executor again")


def test_what_is_set_of_the_worker_is_set_of_its_executors(divided: Berth) -> None:
    divided.guest.run(f"berthctl set {workload(WORKER)} class=latency-sensitive")

    def back() -> bool:
        return [place(divided, pid) for pid in executors(divided)] == [workload(WORKER)] * 2

    divided.guest.poll(back, PATIENCE, what="both to be back")


def test_all_goes_back_after_a_crash(divided: Berth) -> None:
    divided.add_unit_drop_in("[Service]\nRestart=no\n")
    divided.guest.run("systemctl kill -s KILL berthd.service")

    def back() -> bool:
        return [place(divided, pid) for pid in executors(divided)] == [workload(WORKER)] * 2

    divided.guest.poll(back, PATIENCE, what="both to be back")
    divided.guest.poll(lambda: scopes(divided) == [], PATIENCE, what="the scopes to be collected")


def test_who_would_escape_a_limit_stays(berth: Berth) -> None:
    start_worker(berth, "MemoryMax=1G")
    berth.start("enforce", extra=FAST)

    def told() -> bool:
        spared = berth.json("list", "--spark")["spark"]["spared"].get(workload(WORKER), "")
        return "gets no cgroup of its own" in spared and "memory.max is 1073741824" in spared

    berth.guest.poll(told, PATIENCE, what="the reason to be told")
    berth.guest.poll(lambda: berth.logged("leaf"), PATIENCE, what="a word about it")
    assert scopes(berth) == []
    assert [entry["result"] for entry in berth.logged("leaf")] == ["failed"], "one about all of them"


def test_a_setting_that_comes_later_brings_executors_back(divided: Berth) -> None:
    divided.guest.run(f"systemctl set-property --runtime {WORKER} IPAddressDeny=10.0.0.0/8")

    def back() -> bool:
        return [place(divided, pid) for pid in executors(divided)] == [workload(WORKER)] * 2

    # Once the setting is gone, each gets a scope again after a minute: LeavesTest.ALimitThatIsSetLaterBringsAllBackUntilItIsGone.
    divided.guest.poll(back, PATIENCE, what="both to be back")


def test_who_would_escape_a_setting_stays(berth: Berth) -> None:
    start_worker(berth, "IPAddressDeny=10.0.0.0/8")
    berth.start("enforce", extra=FAST)

    def told() -> bool:
        return "IPAddressDeny=" in berth.json("list", "--spark")["spark"]["spared"].get(workload(WORKER), "")

    berth.guest.poll(told, PATIENCE, what="the reason to be told")
    assert scopes(berth) == []


def test_who_is_the_main_process_stays(berth: Berth) -> None:
    berth.guest.run(f"mkdir -p -m 777 {PLACE}")
    berth.guest.write_file(f"{PLACE}/{EXECUTOR_NAME}", EXECUTOR_TEXT)
    both = f"sleep 36000 & exec -a java python3 {EXECUTOR_NAME} --app-id app-fake --executor-id 0"
    berth.start_unit(WORKER, f"bash -c '{both}'", "User=tester", f"WorkingDirectory={PLACE}", SLICE)
    berth.guest.poll(lambda: len(executors(berth)) == 1, PATIENCE, what="an executor")
    # Somebody who is none of its children: the first of all has its own cgroup again.
    berth.guest.run(f"bash -c 'echo $$ > {group(WORKER)}/cgroup.procs; exec setsid sleep 36000' > /dev/null 2>&1 &")
    berth.start("enforce", extra=FAST)

    def told() -> bool:
        return "main process of its unit" in berth.json("list", "--spark")["spark"]["spared"].get(workload(WORKER), "")

    berth.guest.poll(told, PATIENCE, what="the reason to be told")
    assert scopes(berth) == []
