# SPDX-License-Identifier: Apache-2.0
"""Best-effort work on idle vCPUs of a service: what it gains, how fast it loses them, and what is put back.

The tests run in this order beside one service. A young service lends nothing for a minute, which the guest's clock skips. The greedy work takes two
processors of this machine.
"""

from collections.abc import Iterator

import pytest

from berth import LIGHT, Berth, cpus_of
from conftest import find
from guestlib import Guest

LS, BE = "berth-test-ls1.service", "berth-test-be1.service"
WEIGHT = "77"
# Four loops, so that the work can use every vCPU of this guest.
GREEDY = "sh -c 'for i in 1 2 3; do while :; do :; done & done; while :; do :; done'"
# An emulated vCPU waits for a processor of the machine, too, so the usual delay is no measure here.
PATIENT = 'max_runq_latency = "30s"'
ALL = set(range(4))
# One kernel is enough: test_sampling.py compares what both measure.
pytestmark = pytest.mark.parametrize("sampling_guest", ["6.12"], indirect=True)
YOUNG_S = 60
# Its usual figures are measured after that.
UNTIL_LENT_S = 180


@pytest.fixture(scope="module")
def berth(sampling_guest: Guest) -> Iterator[Berth]:
    berth = find(sampling_guest)
    berth.start_unit(LS, LIGHT)
    # Its age is by the wall clock of a berthd that starts.
    berth.guest.run(f"date --set='+{YOUNG_S + 1} seconds'")
    berth.start("enforce", extra=settings(borrow=False))
    berth.wait_pinned(LS)
    berth.start_unit(BE, GREEDY, f"CPUWeight={WEIGHT}")
    berth.wait_pinned(LS, BE)
    yield berth
    berth.clean_up()


def settings(borrow: bool, limit: str = PATIENT) -> str:
    return f"[interference]\nborrow = {str(borrow).lower()}\n{limit}"


def read(berth: Berth, name: str) -> str:
    return berth.guest.run(f"cat /sys/fs/cgroup/system.slice/{BE}/{name} 2>/dev/null || true").stdout.strip()


def owned(berth: Berth) -> set[int]:
    return cpus_of(berth.cpuset(LS))


def wait_lent(berth: Berth) -> None:
    berth.guest.poll(lambda: cpus_of(berth.cpuset(BE)) & owned(berth), UNTIL_LENT_S, interval=1, what="a vCPU of the service to be lent")


def cores(berth: Berth, ticks: int = 20) -> float:
    """Mean cores of the best-effort work over so many ticks, by the guest's own clock."""
    ask = f"awk '/usage_usec/ {{print $2}}' /sys/fs/cgroup/system.slice/{BE}/cpu.stat; date +%s.%N"
    before = berth.guest.run(ask).stdout.split()
    berth.wait_ticks(ticks)
    after = berth.guest.run(ask).stdout.split()
    return (int(after[0]) - int(before[0])) / 1e6 / (float(after[1]) - float(before[1]))


def lend(berth: Berth) -> None:
    assert berth.configure("enforce", extra=settings(borrow=True)).returncode == 0
    wait_lent(berth)


def test_best_effort_work_gains_a_quarter(berth: Berth) -> None:
    assert not cpus_of(berth.cpuset(BE)) & owned(berth)
    assert read(berth, "cpu.idle") == "0" and read(berth, "cpu.weight") == WEIGHT
    strict = cores(berth)

    lend(berth)
    berth.guest.poll(lambda: read(berth, "cpu.idle") == "1", UNTIL_LENT_S, what="the priority to be idle")
    # The service may miss its target now and then, and pauses.
    berth.guest.poll(lambda: cores(berth) >= 1.25 * strict, UNTIL_LENT_S, what="the work to gain a quarter")
    # The service keeps a vCPU to itself.
    pins = berth.cpusets(LS, BE)
    assert cpus_of(pins[LS]) - cpus_of(pins[BE])
    listed = berth.workloads()
    assert cpus_of(listed[f"system.slice/{LS}"]["lent_cpus"]) == cpus_of(listed[f"system.slice/{BE}"]["borrowed_cpus"])
    explain = f"berthctl explain system.slice/{LS}"
    berth.guest.poll(lambda: "lends vCPUs" in berth.guest.run(explain).stdout, UNTIL_LENT_S, what="berthctl explain to tell of it")


def test_switched_off_everything_goes_back_without_a_restart(berth: Berth) -> None:
    lend(berth)
    assert berth.configure("enforce", extra=settings(borrow=False)).returncode == 0
    berth.guest.poll(lambda: cpus_of(berth.cpuset(BE)) == ALL - owned(berth), 60, what="the vCPUs to go back")
    berth.guest.poll(lambda: read(berth, "cpu.idle") == "0" and read(berth, "cpu.weight") == WEIGHT, 60, what="the priority to be as before")


def test_a_stop_puts_everything_back(berth: Berth) -> None:
    lend(berth)
    berth.stop()
    assert read(berth, "cpu.idle") == "0"
    assert read(berth, "cpu.weight") == WEIGHT
    assert berth.cpuset(BE) in ("", "0-3")


def test_a_missed_target_takes_all_back_and_the_priority_after_it(berth: Berth) -> None:
    # It comes last: the service pauses after it.
    berth.start("enforce", extra=settings(borrow=True))
    wait_lent(berth)
    # Every wait of an emulated vCPU is longer than that.
    assert berth.configure("enforce", extra=settings(borrow=True, limit='max_runq_latency = "1us"')).returncode == 0
    berth.guest.poll(lambda: not cpus_of(berth.cpuset(BE)) & owned(berth), 60, what="the service to have its vCPUs to itself")
    berth.guest.poll(lambda: read(berth, "cpu.idle") == "0", 60, what="the priority to be as before")
    assert read(berth, "cpu.weight") == WEIGHT
    reason = berth.json("plan")["findings"]["interference"]["borrowing"]["lenders"][f"system.slice/{LS}"]["reason"]
    assert "pauses" in reason or "wait" in reason, reason
