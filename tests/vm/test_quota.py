# SPDX-License-Identifier: Apache-2.0
"""A service's own CPU quota: lifted while it owns its vCPUs, with a burst while it owns none, and as before after a kill."""

import pytest

from berth import RULES, Berth

LS = "berth-test-ls1.service"
# Of two cores, and of more than any host has.
QUOTA, NO_QUOTA = "200000 100000", "819200000 100000"
# Four processes that all work for 60 of 230 ms: one core in the mean, and more than two cores' quota in most periods with a burst.
IN_BURSTS = (
    'python3 -c "import os, time; os.fork(); os.fork(); '
    'any((any(time.time() % .23 >= .06 for _ in iter(int, 1)), time.sleep(.23 - time.time() % .23))[1] for _ in iter(int, 1))"'
)
NO_PLACE = RULES.replace("vcpus = 2", "vcpus = 8")


def read(berth: Berth, name: str) -> str:
    return berth.guest.run(f"cat /sys/fs/cgroup/system.slice/{LS}/{name}").stdout.strip()


def throttled(berth: Berth) -> int:
    """Periods in which the quota stopped it."""
    return int(dict(line.split() for line in read(berth, "cpu.stat").splitlines())["nr_throttled"])


def wait_for(berth: Berth, name: str, value: str) -> None:
    berth.guest.poll(lambda: read(berth, name) == value, 60, what=f"{name} to be {value}")


@pytest.fixture
def service(berth: Berth) -> Berth:
    berth.start_unit(LS, IN_BURSTS, "CPUQuota=200%")
    return berth


def kill(berth: Berth) -> None:
    """For good. The unit's ExecStopPost= restores."""
    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.kill()


def test_a_quota_of_all_own_vcpus_throttles_until_it_is_lifted(service: Berth) -> None:
    service.start("observe")
    before = throttled(service)
    service.guest.poll(lambda: throttled(service) > before + 5, 60, what="the quota to throttle the service")
    explain = f"berthctl explain system.slice/{LS}"
    service.guest.poll(lambda: "cores would do" in service.guest.run(explain).stdout, 60, interval=0.2, what="a number that would do")

    service.guest.run("berthctl mode enforce")
    wait_for(service, "cpu.max", NO_QUOTA)
    assert service.cpuset(LS) not in ("", "0-7")
    lifted = throttled(service)
    service.wait_ticks(12)
    assert throttled(service) == lifted
    assert "CPU quota lifted" in service.guest.run(explain).stdout

    kill(service)
    wait_for(service, "cpu.max", QUOTA)


def test_a_quota_goes_back_with_the_vcpus(service: Berth) -> None:
    service.start("enforce")
    wait_for(service, "cpu.max", NO_QUOTA)
    assert service.configure("enforce", rules=NO_PLACE).returncode == 0
    wait_for(service, "cpu.max", QUOTA)


def test_a_service_that_restarts_has_the_vcpus_of_its_owners_quota(service: Berth) -> None:
    service.start("enforce", rules=RULES.replace("vcpus = 2\n", ""))
    wait_for(service, "cpu.max", NO_QUOTA)
    service.guest.run(f"systemctl restart {LS}")
    service.wait_ticks(3)
    wait_for(service, "cpu.max", NO_QUOTA)
    assert service.workloads()[f"system.slice/{LS}"]["vcpus"] == 2


def test_the_owner_may_change_a_lifted_quota_and_the_pin_stays(service: Berth) -> None:
    service.start("enforce")
    wait_for(service, "cpu.max", NO_QUOTA)
    service.guest.run(f"systemctl set-property --runtime {LS} CPUQuota=300%")
    service.guest.poll(lambda: service.logged("foreign"), 60, what="berth to see it")
    service.wait_ticks(3)
    assert read(service, "cpu.max") == "300000 100000"
    assert service.cpuset(LS) not in ("", "0-7")
    service.guest.run("systemctl daemon-reload")
    assert read(service, "cpu.max") == "300000 100000"


def test_a_service_without_vcpus_gets_a_burst_until_berthd_is_killed(service: Berth) -> None:
    service.start("enforce", extra="[quota]\nburst = true", rules=NO_PLACE)
    wait_for(service, "cpu.max.burst", "200000")
    assert read(service, "cpu.max") == QUOTA
    # systemd leaves the file alone.
    service.guest.run("systemctl daemon-reload")
    assert read(service, "cpu.max.burst") == "200000"
    kill(service)
    wait_for(service, "cpu.max.burst", "0")
    assert read(service, "cpu.max") == QUOTA
