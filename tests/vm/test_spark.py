# SPDX-License-Identifier: Apache-2.0
"""Spark as berthd sees it from inside its unit, which may not look into other users' processes. JVMs are slow in an emulated host:
test_spark_cluster and tests/spark have real ones, and here programs go by the names of Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from berth import Berth

FAKE = Path(__file__).resolve().parents[1] / "spark" / "fake_driver.py"
PLACE = "/run/berth-test-spark"
DRIVER = "berth-test-be-driver.service"
EXECUTOR = "berth-test-be-executor.service"
SHARED = "berth-test-be-shared.service"
EXECUTOR_NAME = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def spark(berth: Berth) -> Any:
    return berth.json("list", "--spark")["spark"]


def start(berth: Berth, unit: str, name: str, arguments: str, before: str = "") -> None:
    command = f"{before} exec -a java python3 {name} {arguments}"
    berth.start_unit(unit, f"bash -c '{command}'", "User=tester", f"WorkingDirectory={PLACE}")


def progress_of(berth: Berth, *units: str) -> set[float | None]:
    progress = {item["id"]: item["progress"] for item in berth.json("list")["workloads"]}
    return {progress[f"system.slice/{unit}"] for unit in units}


def test_the_sandboxed_daemon_asks_a_driver_and_spares_what_is_shared(berth: Berth) -> None:
    berth.guest.run(f"mkdir -p -m 777 {PLACE}")
    berth.guest.write_file(f"{PLACE}/org.apache.spark.deploy.SparkSubmit", FAKE.read_text())
    berth.guest.write_file(f"{PLACE}/{EXECUTOR_NAME}", "import time\ntime.sleep(36000)\n")
    start(berth, DRIVER, "org.apache.spark.deploy.SparkSubmit", "honest asked 4040")
    start(berth, EXECUTOR, EXECUTOR_NAME, "--app-id app-fake --executor-id 0")
    start(berth, SHARED, EXECUTOR_NAME, "--app-id app-fake --executor-id 1", "(sleep 36000 &);")
    berth.start(extra="[spark]\nwatch = true\ninterval = 0.5\n")

    # A process that has just started goes by its name some moments later.
    def known() -> Any:
        found = spark(berth)
        units = {DRIVER: "candidates", EXECUTOR: "candidates", SHARED: "spared"}
        return found if "app-fake" in found["apps"] and all(f"system.slice/{unit}" in found[kind] for unit, kind in units.items()) else None

    found = berth.guest.poll(known, 120, what=lambda: f"berthd to know the application and its processes: {spark(berth)}")
    assert found["apps"]["app-fake"]["computation"] == 1.5
    assert found["apps"]["app-fake"]["stages_done"] == 1
    assert found["candidates"][f"system.slice/{DRIVER}"]["kind"] == "driver"
    assert found["candidates"][f"system.slice/{EXECUTOR}"]["kind"] == "executor"
    assert f"system.slice/{SHARED}" not in found["candidates"]
    assert "sleep (pid " in found["spared"][f"system.slice/{SHARED}"]
    assert found["order"].index(f"system.slice/{EXECUTOR}") < found["order"].index(f"system.slice/{DRIVER}")
    # One task is done; the end of the application is counted as another. It is known a tick after the application is.
    berth.guest.poll(lambda: progress_of(berth, DRIVER, EXECUTOR) == {0.5}, 60, what=lambda: f"half: {progress_of(berth, DRIVER, EXECUTOR)}")
    berth.guest.run(f"systemctl stop {DRIVER}")
    berth.guest.poll(lambda: spark(berth)["apps"] == {}, 120, what="berthd to forget the application")


def sparkd_pids(berth: Berth) -> list[str]:
    return berth.guest.run("pgrep -x berth-sparkd || true").stdout.split()


def has_application(berth: Berth) -> None:
    berth.guest.run(f"mkdir -p -m 777 {PLACE}")
    berth.guest.write_file(f"{PLACE}/org.apache.spark.deploy.SparkSubmit", FAKE.read_text())
    start(berth, DRIVER, "org.apache.spark.deploy.SparkSubmit", "honest asked 4040")
    berth.start(extra="[spark]\nwatch = true\ninterval = 0.5\n")
    berth.guest.poll(lambda: "app-fake" in spark(berth)["apps"], 120, what="berthd to know the application")


def test_a_process_without_rights_reads_what_drivers_say(berth: Berth) -> None:
    has_application(berth)
    [pid] = sparkd_pids(berth)
    status = dict(line.split(":\t", 1) for line in berth.guest.run(f"cat /proc/{pid}/status").stdout.splitlines() if ":\t" in line)
    assert status["Uid"].split()[0] != "0"
    assert {status[name] for name in ("CapPrm", "CapEff", "CapBnd")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    unit = berth.guest.run(f"cat /proc/{pid}/cgroup").stdout.strip().removeprefix("0::")
    assert unit.startswith("/berth.slice/")
    assert berth.guest.run(f"cat /sys/fs/cgroup{unit}/memory.max").stdout.strip() == str(128 << 20)
    # Root without berth-sparkd's limits sees files there.
    assert berth.guest.run("ls /var/lib").stdout and not berth.guest.run(f"ls /proc/{pid}/root/var/lib", check=False).stdout
    assert "/libcurl." not in berth.guest.run(f"cat /proc/{berth.pid()}/maps").stdout
    berth.stop()
    berth.guest.poll(lambda: sparkd_pids(berth) == [], 60, what="berth-sparkd to end with its connection")
    assert berth.guest.run("ls /run/berth-sparkd.socket || true").stdout == ""


def test_berthd_goes_on_without_a_reader_that_died(berth: Berth) -> None:
    has_application(berth)
    [pid] = sparkd_pids(berth)
    berth.guest.run(f"kill -SEGV {pid}")
    berth.guest.poll(lambda: sparkd_pids(berth) not in ([], [pid]), 120, what="another berth-sparkd")
    berth.wait_ticks(1)
    assert "the other side has closed the connection" in berth.journal("berth-sparkd, which asks")
    berth.guest.poll(lambda: "app-fake" in spark(berth)["apps"], 120, what="berthd to know the application still, or again")


def test_berthd_goes_on_beside_a_reader_that_hangs(berth: Berth) -> None:
    has_application(berth)
    [pid] = sparkd_pids(berth)
    berth.guest.run(f"kill -STOP {pid}")
    try:
        berth.guest.poll(lambda: "it took too long" in berth.journal("berth-sparkd, which asks"), 180, what="berthd to say so")
        berth.wait_ticks(1)
        berth.guest.poll(lambda: len(sparkd_pids(berth)) == 2, 120, what="another berth-sparkd")
        berth.guest.poll(lambda: "app-fake" in spark(berth)["apps"], 120, what="berthd to know the application again")
    finally:
        berth.guest.run(f"kill -KILL {pid}")
