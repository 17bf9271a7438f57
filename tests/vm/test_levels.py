# SPDX-License-Identifier: Apache-2.0
"""How much of its place a service has alone: shared homes, vCPUs and whole cores, and the cores of best-effort work beside them."""

from __future__ import annotations

from typing import Any

from berth import LIGHT, RULES, Berth, cpus_of

LS1, LS2, BE1 = (f"berth-test-{name}.service" for name in ("ls1", "ls2", "be1"))
SHARED = '[interference]\nisolation = "shared"'
# The guest has two caches with two cores of two threads each.
DOMAINS = {"0": {0, 1, 2, 3}, "1": {4, 5, 6, 7}}
CORES = [{0, 1}, {2, 3}, {4, 5}, {6, 7}]
# Uses a third of a vCPU.
BUSY = "sh -c 'while :; do i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; sleep 0.2; done'"


def interference(berth: Berth) -> dict[str, Any]:
    return berth.json("plan")["findings"]["interference"]


def wait_homes(berth: Berth, *units: str) -> dict[str, dict[str, Any]]:
    """The shared instances once each of these has a home, by unit."""

    def look() -> dict[str, dict[str, Any]] | None:
        shared = {path.rpartition("/")[2]: it for path, it in interference(berth).get("shared", {}).items()}
        return shared if all(shared.get(unit, {}).get("home") for unit in units) else None

    return berth.guest.poll(look, 120, what=lambda: f"homes of {units}: {interference(berth)}")


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
    home = wait_homes(berth, LS1)[LS1]["home"]
    berth.wait_pinned(BE1)

    def has_whole_cores() -> bool:
        cpus = cpus_of(berth.cpuset(BE1))
        beside = cpus & DOMAINS[home]
        whole = all(core <= beside or not core & beside for core in CORES)
        return whole and beside != DOMAINS[home] and cpus - DOMAINS[home] == set(range(8)) - DOMAINS[home]

    berth.guest.poll(has_whole_cores, 60, what=lambda: f"whole cores beside {home}: {berth.cpuset(BE1)}")
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
    before = berth.attributes()
    berth.start("enforce", extra=SHARED)
    wait_homes(berth, LS1)
    berth.wait_pinned(LS1, BE1)
    berth.stop()

    def changed() -> dict[str, tuple[str, str]]:
        after = berth.attributes()
        # An unset cpuset whose file went with its controller is as unset as before.
        ours = {path: value for path, value in before.items() if f"/{LS1}/" in path or f"/{BE1}/" in path}
        return {path: (value, after.get(path, "")) for path, value in ours.items() if after.get(path, "") != value}

    berth.guest.poll(lambda: not changed(), 20, what=lambda: f"every attribute to be as before, but for {changed()}")
    assert berth.drop_ins() == []
