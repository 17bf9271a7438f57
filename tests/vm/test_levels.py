# SPDX-License-Identifier: Apache-2.0
"""How much of its place a service has alone: shared homes, vCPUs and whole cores, and the cores of best-effort work beside them."""

from __future__ import annotations

from typing import Any

import pytest

from berth import BUSY, LIGHT, RULES, Berth, cpus_of

LS1, LS2, BE1 = (f"berth-test-{name}.service" for name in ("ls1", "ls2", "be1"))
SHARED = '[interference]\nisolation = "shared"'
# The guest has two caches with two cores of two threads each.
DOMAINS = {"0": {0, 1, 2, 3}, "1": {4, 5, 6, 7}}
CORES = [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
# Batch work that always wants more. An endless load without a quota would slow the emulated host down.
HOG = ("sh -c 'while :; do :; done'", "CPUQuota=30%")


def interference(berth: Berth) -> dict[str, Any]:
    return berth.json("plan")["findings"]["interference"]


def wait_homes(berth: Berth, *units: str) -> dict[str, dict[str, Any]]:
    """The shared instances once each of these has a home, by unit."""

    def look() -> dict[str, dict[str, Any]] | None:
        shared = {path.rpartition("/")[2]: it for path, it in interference(berth).get("shared", {}).items()}
        return shared if all(shared.get(unit, {}).get("home") for unit in units) else None

    return berth.guest.poll(look, 120, what=lambda: f"homes of {units}: {interference(berth)}")


def wait_left_cores(berth: Berth, home: str) -> None:
    """Until best-effort work has some whole cores of the home, or none, and all of the other domain."""

    def has_whole_cores() -> bool:
        cpus = cpus_of(berth.cpuset(BE1))
        beside = cpus & DOMAINS[home]
        whole = all(core <= beside or not core & beside for core in CORES)
        return whole and beside != DOMAINS[home] and cpus - DOMAINS[home] == set(range(8)) - DOMAINS[home]

    berth.guest.poll(has_whole_cores, 60, what=lambda: f"whole cores beside {home}: {berth.cpuset(BE1)}")


def of_units(attributes: dict[str, str], *units: str) -> dict[str, str]:
    return {path: value for path, value in attributes.items() if any(f"/{unit}/" in path for unit in units)}


def wait_as_before(berth: Berth, before: dict[str, str], *units: str) -> None:
    """Until each attribute of these units has its value of before, and systemd keeps no property of berth's."""

    def changed() -> dict[str, tuple[str, str]]:
        after = of_units(berth.attributes(), *units)
        # An unset cpuset has no file without its controller.
        both = {path: (before.get(path, ""), after.get(path, "")) for path in before | after if path in before or path.endswith("/cpuset.cpus")}
        return {path: values for path, values in both.items() if values[0] != values[1]}

    berth.guest.poll(lambda: not changed(), 60, what=lambda: f"every attribute to be as before, but for {changed()}")
    berth.guest.poll(lambda: berth.drop_ins() == [], 20, what=lambda: f"no drop-in to be left: {berth.drop_ins()}")


def test_shared_services_are_pinned_to_a_home_and_own_nothing(berth: Berth) -> None:
    berth.start_units({LS1: BUSY, LS2: BUSY})
    berth.start("enforce", extra=SHARED)
    homes = wait_homes(berth, LS1, LS2)
    berth.wait_pinned(LS1, LS2)
    for unit in (LS1, LS2):
        assert cpus_of(berth.cpuset(unit)) == DOMAINS[homes[unit]["home"]]
    assert interference(berth)["unplaceable"] == []
    status = berth.json("status")
    assert status["unplaceable"] == [] and status["warnings"] == []
    listed = berth.workloads()[f"system.slice/{LS1}"]
    assert (listed["isolation"], listed["home"]) == ("shared", homes[LS1]["home"])


def test_best_effort_work_has_whole_cores_beside_a_shared_service(berth: Berth) -> None:
    berth.start_units({LS1: BUSY, BE1: LIGHT})
    berth.start("enforce", extra=SHARED)
    wait_left_cores(berth, wait_homes(berth, LS1)[LS1]["home"])
    berth.stop_unit(LS1)
    berth.guest.poll(lambda: berth.cpuset(BE1) == "", 120, what="best-effort work to have all vCPUs")


def test_whole_cores_are_nobody_elses(berth: Berth) -> None:
    rules = RULES.replace("vcpus = 2", 'vcpus = 1\nisolation = "cores"', 1)
    berth.start_units({LS1: LIGHT, LS2: LIGHT, BE1: LIGHT})
    berth.start("enforce", rules=rules)
    berth.wait_pinned(LS1, LS2, BE1)
    pins = {unit: cpus_of(cpus) for unit, cpus in berth.cpusets(LS1, LS2, BE1).items()}
    assert pins[LS1] in CORES and pins[LS2] in CORES and pins[LS1] != pins[LS2]
    assert pins[BE1] == set(range(8)) - pins[LS1] - pins[LS2]


def test_the_level_of_a_running_service_can_be_set(berth: Berth) -> None:
    berth.start_unit(LS1, BUSY)
    berth.start("enforce")
    berth.wait_pinned(LS1)
    assert len(cpus_of(berth.cpuset(LS1))) == 2
    berth.guest.run(f"berthctl set system.slice/{LS1} isolation=shared")
    berth.guest.poll(lambda: cpus_of(berth.cpuset(LS1)) in DOMAINS.values(), 60, what="the pin to a home")
    berth.guest.run(f"berthctl set system.slice/{LS1} isolation=cores")
    berth.guest.poll(lambda: cpus_of(berth.cpuset(LS1)) in CORES, 60, what="a core of its own")


def test_all_is_put_back(berth: Berth) -> None:
    berth.start_units({LS1: BUSY, BE1: LIGHT})
    before = of_units(berth.attributes(), LS1, BE1)
    berth.start("enforce", extra=SHARED)
    wait_homes(berth, LS1)
    berth.wait_pinned(LS1, BE1)
    berth.stop()
    wait_as_before(berth, before, LS1, BE1)


# What users get without a setting


@pytest.fixture
def held(berth: Berth, default_isolation: None) -> dict[str, str]:
    """A service and a hog, which berth holds with no setting about them but their rules; gives their attributes of before."""
    berth.start_unit(LS1, BUSY)
    berth.start_unit(BE1, *HOG)
    before = of_units(berth.attributes(), LS1, BE1)
    berth.start("enforce")
    assert berth.guest.run("grep -r interference /etc/berth", check=False).returncode == 1
    home = wait_homes(berth, LS1)[LS1]["home"]
    berth.guest.poll(lambda: cpus_of(berth.cpuset(LS1)) == DOMAINS[home], 60, what="the pin to the home")
    wait_left_cores(berth, home)
    berth.guest.poll(lambda: idle(berth, BE1) == "1", 60, what="idle priority")
    assert idle(berth, LS1) == "0"
    return before


def idle(berth: Berth, unit: str) -> str:
    """cpu.idle; without the controller, what it would say."""
    return berth.guest.run(f"cat /sys/fs/cgroup/system.slice/{unit}/cpu.idle 2>/dev/null || echo 0").stdout.strip()


def test_without_settings_a_stop_puts_all_back(berth: Berth, held: dict[str, str]) -> None:
    berth.stop()
    wait_as_before(berth, held, LS1, BE1)


def test_without_settings_a_kill_puts_all_back(berth: Berth, held: dict[str, str]) -> None:
    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.kill()
    wait_as_before(berth, held, LS1, BE1)


@pytest.mark.usefixtures("default_isolation")
def test_without_settings_a_service_that_ends_again_and_again_costs_few_writes(berth: Berth) -> None:
    unit = f"/run/systemd/system/{LS1}"
    berth.guest.write_file(
        unit, "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=100ms\nExecStart=timeout 1 " + BUSY.replace("$", "$$") + "\n"
    )
    berth.guest.run("systemctl daemon-reload")
    try:
        berth.start_unit(BE1, *HOG)
        before = of_units(berth.attributes(), BE1)
        # Best-effort work gets nothing back within three times as long, but cores beside the service.
        berth.start("enforce", extra='safety.repin_cooldown = "1min"')
        berth.wait_ticks(3)
        berth.guest.run(f"systemctl start {LS1}")

        def restarts() -> int:
            return int(berth.guest.run(f"systemctl show -P NRestarts {LS1}").stdout)

        berth.guest.poll(lambda: restarts() >= 8, 120, what="eight restarts")
        pins, priorities = (
            [entry["new"] for entry in berth.logged(kind) if entry["workload"].endswith(BE1)] for kind in ("pin", "set-cpu-priority")
        )
        assert len(priorities) == 1, priorities
        assert 1 <= len(pins) < restarts(), pins
        berth.stop()
        wait_as_before(berth, before, BE1)
    finally:
        # systemd forgets a unit without a file, and may leave its empty cgroup.
        forget = f"systemctl daemon-reload; rmdir /sys/fs/cgroup/system.slice/{LS1}"
        berth.guest.run(f"systemctl stop {LS1}; rm -f {unit}; {forget}", check=False)
