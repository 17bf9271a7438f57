# SPDX-License-Identifier: Apache-2.0
"""Work that no rule names, beside a service with vCPUs of its own, on each kernel."""

from collections.abc import Iterator

import pytest

from berth import LIGHT, RULES, Berth, cpus_of, unrestricted_as_unset
from test_owned_cpus import group
from test_restore import assert_as_before

LS, PLAIN, INNER = "berth-test-ls1.service", "berth-test-plain.service", "berth-test-inner.service"
SLICE = "berthtest.slice"
# Wants all vCPUs. Threads of the least weight, as a guest whose processors are busy answers slowly.
SPIN = "nice -n 19 sh -c 'for each in 1 2 3 4; do while :; do :; done & done; wait'"
CONFINE = '[interference]\nothers = "confine"\n'
SPARED = ("init.scope", "berth.slice", "system.slice/dbus.service", "system.slice/systemd-journald.service")
PARTITION = "berth-test-partition"


@pytest.fixture
def berth(sampling_berth: Berth) -> Iterator[Berth]:
    """With work that no rule names in system.slice, and in a slice of its own."""
    sampling_berth.start_units({PLAIN: SPIN, LS: LIGHT})
    sampling_berth.start_unit(INNER, LIGHT, f"Slice={SLICE}")
    yield sampling_berth
    sampling_berth.stop()


def cpuset(berth: Berth, path: str, name: str = "cpuset.cpus") -> str:
    """Empty where the group is unrestricted, or lacks the controller."""
    value = berth.guest.run(f"cat /sys/fs/cgroup/{path}/{name} 2>/dev/null || true").stdout.strip()
    return unrestricted_as_unset(value, berth.every_cpu())


def rest(berth: Berth) -> set[int]:
    """The vCPUs that the service does not own."""
    return cpus_of(berth.every_cpu()) - cpus_of(cpuset(berth, f"system.slice/{LS}"))


def wait_confined(berth: Berth, *paths: str) -> None:
    def confined() -> bool:
        return all(cpus_of(cpuset(berth, path)) == rest(berth) for path in paths)

    def seen() -> str:
        return ", ".join(f"{path} {cpuset(berth, path)}" for path in (f"system.slice/{LS}", *paths))

    berth.guest.poll(lambda: cpuset(berth, f"system.slice/{LS}") != "" and confined(), 90, what=lambda: f"others to be confined: {seen()}")


def wait_as_before(berth: Berth, before: dict[str, str]) -> None:
    """With no drop-in left of any unit."""
    assert_as_before(berth, before)
    find = "find /run/systemd/system.control /run/systemd/transient -name '*AllowedCPUs*' 2>/dev/null || true"
    berth.guest.poll(lambda: not berth.guest.run(find).stdout, 60, what=lambda: f"no drop-in: {berth.guest.run(find).stdout}")


def ran_on(berth: Berth, unit: str) -> set[int]:
    """Where its threads run. The 39th field is the vCPU, of a thread that waits the one of before."""
    look = f"for task in $(cat /sys/fs/cgroup/system.slice/{unit}/cgroup.procs); do cat /proc/$task/stat; done | awk '$3 == \"R\" {{ print $39 }}'"
    return cpus_of(berth.guest.run(f"for each in $(seq 20); do {look}; sleep 0.1; done | sort -u | paste -sd ,").stdout)


def test_it_runs_nowhere_on_owned_vcpus_and_what_must_not_be_confined_is_not(berth: Berth) -> None:
    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    assert cpus_of(cpuset(berth, f"system.slice/{PLAIN}", "cpuset.cpus.effective")) == rest(berth)
    assert ran_on(berth, PLAIN) <= rest(berth)
    # The highest group has it, and nothing in it.
    assert cpuset(berth, f"{SLICE}/{INNER}") == ""
    assert {path: cpuset(berth, path) for path in (*SPARED, "system.slice")} == dict.fromkeys((*SPARED, "system.slice"), "")

    others = berth.json("status")["others"]
    assert cpus_of(others["cpus"]) == rest(berth)
    assert {SLICE, f"system.slice/{PLAIN}"} <= set(others["confined"])
    assert set(SPARED) <= {left["workload"] for left in others["unconfined"]}
    assert SLICE in berth.guest.run("berthctl plan").stdout
    assert others["cpus"] in berth.guest.run(f"berthctl explain {PLAIN}").stdout
    assert "PID 1" in berth.guest.run("berthctl explain init.scope").stdout


def test_all_is_as_before_after_a_stop_a_kill_and_the_end_of_the_service(berth: Berth) -> None:
    before = berth.attributes()
    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.stop()
    wait_as_before(berth, before)

    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.kill()
    wait_as_before(berth, before)

    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.stop_unit(LS)
    wait_as_before(berth, {path: value for path, value in before.items() if LS not in path})


def test_the_setting_leaves_other_work_where_it_is(berth: Berth) -> None:
    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.configure("enforce", '[interference]\nothers = "leave"\n')
    berth.guest.poll(lambda: (cpuset(berth, SLICE), cpuset(berth, f"system.slice/{PLAIN}")) == ("", ""), 60, what="all vCPUs")


def test_vcpus_of_others_stay_as_they_are(berth: Berth) -> None:
    berth.guest.run(f"systemctl set-property --runtime {SLICE} AllowedCPUs=0-1")
    try:
        with group(berth, PARTITION, cpuset_cpus="3", cpuset_cpus_partition="root"):
            assert cpuset(berth, PARTITION, "cpuset.cpus.partition") == "root"
            berth.start("enforce", CONFINE, RULES.replace("vcpus = 2", "vcpus = 1"))
            berth.guest.poll(lambda: "3" not in cpuset(berth, f"system.slice/{PLAIN}") != "", 90, what="the rest to be confined")
            berth.wait_ticks(3)
            assert cpuset(berth, SLICE) == "0-1"
            assert (cpuset(berth, PARTITION), cpuset(berth, PARTITION, "cpuset.cpus.partition")) == ("3", "root")
            assert SLICE not in berth.json("status")["others"]["confined"]
            berth.stop()
            # Kernels that do not clear a cpulist under tasks get one that leaves the partition its own.
            assert (cpuset(berth, PARTITION), cpuset(berth, PARTITION, "cpuset.cpus.partition")) == ("3", "root")
            assert cpus_of(cpuset(berth, f"system.slice/{PLAIN}", "cpuset.cpus.effective")) in (set(), {0, 1, 2})
    finally:
        berth.stop()
        berth.guest.run(f"systemctl revert {SLICE}")


def test_it_stays_confined_after_a_reload_of_systemd_and_a_restart_of_the_unit(berth: Berth) -> None:
    berth.start("enforce", CONFINE)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.guest.run("systemctl daemon-reload")
    berth.wait_ticks(4)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    berth.stop_unit(PLAIN)
    berth.start_unit(PLAIN, SPIN)
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    assert not [entry for entry in berth.logged("foreign") if entry["result"] != "applied"]


def test_a_vcpu_that_goes_offline_is_taken_from_nobody_else(berth: Berth) -> None:
    # Of one vCPU, as two of four with one offline would leave a single core to choose from. The first vCPU cannot go offline.
    berth.start("enforce", f'{CONFINE}reserved_cpus = "0"\n', RULES.replace("vcpus = 2", "vcpus = 1"))
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
    (gone,) = cpus_of(cpuset(berth, f"system.slice/{LS}"))
    berth.guest.run(f"echo 0 > /sys/devices/system/cpu/cpu{gone}/online")
    try:
        def apart() -> bool:
            own = cpus_of(cpuset(berth, f"system.slice/{LS}"))
            others = cpus_of(cpuset(berth, f"system.slice/{PLAIN}", "cpuset.cpus.effective"))
            return len(own) == 1 and gone not in own and not own & others

        berth.guest.poll(apart, 60, what="the service to have another vCPU for itself")
    finally:
        berth.guest.run(f"echo 1 > /sys/devices/system/cpu/cpu{gone}/online")
    wait_confined(berth, f"system.slice/{PLAIN}", SLICE)
