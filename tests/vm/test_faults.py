# SPDX-License-Identifier: Apache-2.0
"""System calls fail below libc, and what berthd knows is replaced under it. berthd says so, goes on, and puts everything back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from berth import LIGHT, RULES, Berth, run_command
from evictions import remove_groups, start_in_group, wait_listed
from test_frozen import GROUPS
from test_restore import BE, LS, assert_as_before

# Errno, and its text.
ERRORS = {
    "EBUSY": "Device or resource busy",
    "ENOSPC": "No space left on device",
    "EPERM": "Operation not permitted",
    "ENODEV": "No such device",
}
GROUP, WORKLOAD = "/sys/fs/cgroup/berthtest/one", "berthtest/one"
STRACE, TRACED = "/run/berth-test-strace.pid", "/run/berth-test-strace.log"
JOURNAL = "/run/berth/undo.db"
RESTORE = "berthd --restore"
POLKIT_RULE = "/etc/polkit-1/rules.d/00-berth-test.rules"
MANAGES = '''polkit.addRule(function(action, subject) {
  if (action.id == "org.berth.node1.manage" && subject.user == "tester") return polkit.Result.YES;
});
'''


@pytest.fixture
def load(berth: Berth) -> Iterator[dict[str, str]]:
    """Two units and a plain cgroup; gives the attributes of the host as they were before."""
    berth.guest.run(f"{run_command(LS, LIGHT, 'CPUQuota=350%')} && {run_command(BE, LIGHT, 'AllowedCPUs=0-6')}")
    start_in_group(berth, "one", "sleep infinity")
    berth.guest.write_file(f"{GROUP}/cpuset.cpus", "0-6")
    yield berth.attributes()
    berth.guest.run(f"rm -f {TRACED} {STRACE}")
    remove_groups(berth)


def start(berth: Berth, rules: str = RULES) -> None:
    berth.start("enforce", "", rules + GROUPS)
    berth.wait_cpusets_change({LS: "", BE: "0-6"})
    berth.guest.poll(f"test $(cat {GROUP}/cpuset.cpus) != 0-6", 30, what="the pin of the plain cgroup")


@contextmanager
def failing(berth: Berth, calls: str, paths: str, error: str) -> Iterator[None]:
    """Of the running berthd: these calls end with this error, on these paths or, where none is named, on all."""
    chosen = f"-P {paths}" if paths else ""
    berth.guest.run(
        f"setsid strace -f -qq -o {TRACED} {chosen} -e trace={calls} -e inject={calls}:error={error} -p {berth.pid()} "
        f"</dev/null >/dev/null 2>&1 & echo $! > {STRACE}"
    )
    berth.guest.poll(f"grep -q 'TracerPid:[^0-9]*[1-9]' /proc/{berth.pid()}/status", 30, what="strace to hold berthd")
    try:
        yield
    finally:
        berth.guest.run(f"kill $(cat {STRACE})", check=False)
        berth.guest.poll(f"grep -q 'TracerPid:[^0-9]*0$' /proc/{berth.pid()}/status", 30, what="strace to let berthd go")


def injected(berth: Berth) -> int:
    return int(berth.guest.run(f"grep -c INJECTED {TRACED} || true").stdout)


def test_a_control_file_that_refuses_is_said_and_tried_again(berth: Berth, load: dict[str, str]) -> None:
    start(berth, RULES.replace("vcpus = 2", "vcpus = 1"))
    pid = berth.pid()
    # A service that grows takes vCPUs of the plain cgroup at once; one that shrinks gives some back later.
    # berth has a way of its own to answer ENOSPC and ENODEV of this file.
    for vcpus, error in enumerate(("EBUSY", "ENOSPC", "ENODEV"), start=2):
        pin = berth.guest.run(f"cat {GROUP}/cpuset.cpus").stdout.strip()
        with failing(berth, "write", f"{GROUP}/cpuset.cpus", error):
            berth.guest.run(f"berthctl set system.slice/{LS} vcpus={vcpus}")
            berth.guest.poll(lambda: injected(berth) > 0, 60, what=f"a write to fail with {error}")
            berth.wait_ticks(5)
            said = [e["error"] for e in berth.logged("pin") if e["workload"] == WORKLOAD and e["result"] != "applied"]
            assert any(ERRORS[error] in (why or "") for why in said), said
            assert berth.guest.run(f"cat {GROUP}/cpuset.cpus").stdout.strip() == pin
        # Some errors make berth leave the workload alone. A reload tries again.
        berth.guest.run("berthctl reload")
        # What berth could not put back at once comes first.
        berth.guest.poll(f"case $(cat {GROUP}/cpuset.cpus) in {pin}|0-6) false ;; esac", 60, what="the pin that failed")
    assert berth.pid() == pid
    berth.stop()
    assert_as_before(berth, load)


def test_a_journal_that_cannot_be_written_means_that_nothing_new_is_changed(berth: Berth, load: dict[str, str]) -> None:
    start(berth)
    pid = berth.pid()
    for error in ("ENOSPC", "EIO"):
        name = f"late-{error}"
        with failing(berth, "pwrite64,ftruncate,fdatasync", f"{JOURNAL} -P {JOURNAL}-wal -P {JOURNAL}-journal", error):
            start_in_group(berth, name, "sleep infinity")
            wait_listed(berth, f"berthtest/{name}")
            berth.wait_ticks(5)
            assert injected(berth) > 0
            # A change without a record could not be taken back.
            assert berth.guest.run(f"cat /sys/fs/cgroup/berthtest/{name}/cpuset.cpus").stdout.strip() == ""
    assert berth.pid() == pid
    berth.stop()
    assert_as_before(berth, load)


def test_a_restore_that_fails_keeps_its_record_and_works_the_next_time(berth: Berth, load: dict[str, str]) -> None:
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    start(berth)
    berth.kill()
    berth.guest.run("systemctl mask --runtime berthd.service")
    try:
        for error in ("EBUSY", "EPERM"):
            text = ERRORS[error]
            failed = berth.guest.run(
                f"strace -f -qq -o {TRACED} -P {GROUP}/cpuset.cpus -e trace=write -e inject=write:error={error} {RESTORE}", check=False
            )
            assert injected(berth) > 0
            assert failed.returncode == 1 and WORKLOAD in failed.stdout and text in failed.stdout, failed
        berth.guest.run(RESTORE)
    finally:
        berth.guest.run("systemctl unmask --runtime berthd.service")
    assert_as_before(berth, load)


def test_files_of_state_that_cannot_be_replaced_are_said_and_hold_nothing_up(berth: Berth, load: dict[str, str]) -> None:
    start(berth)
    pins, pid = berth.cpusets(LS, BE), berth.pid()
    with failing(berth, "rename,renameat,renameat2", "", "ENOSPC"):
        berth.guest.run(f"berthctl set system.slice/{LS} vcpus=1")
        berth.wait_cpusets_change({LS: pins[LS]})
        assert injected(berth) > 0

        # The state comes last in a tick, after the pins.
        def all_said() -> bool:
            said = berth.journal(ERRORS["ENOSPC"])
            return f"cannot save the settings of system.slice/{LS}" in said and "/run/berth/state.json" in said

        berth.guest.poll(all_said, 60, what=lambda: f"berthd to say both: {berth.journal(ERRORS['ENOSPC'])}")
    assert berth.pid() == pid
    berth.stop()
    assert_as_before(berth, load)


def test_a_cgroup_that_took_over_a_name_keeps_its_own_values(berth: Berth, load: dict[str, str]) -> None:
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    start(berth)
    berth.kill()
    berth.guest.run(f"echo 1 > {GROUP}/cgroup.kill; until rmdir {GROUP}; do sleep 0.1; done")
    start_in_group(berth, "one", "sleep infinity")
    berth.guest.write_file(f"{GROUP}/cpuset.cpus", "3")
    berth.start("observe", "", RULES + GROUPS)
    wait_listed(berth, WORKLOAD)
    berth.wait_for_cpuset(BE, "0-6")
    assert berth.guest.run(f"cat {GROUP}/cpuset.cpus").stdout.strip() == "3"
    berth.wait_no_undo_records()


def test_a_systemd_that_executes_itself_anew_keeps_the_pins(berth: Berth, load: dict[str, str]) -> None:
    start(berth)
    pins, pid = berth.cpusets(LS, BE), berth.pid()
    berth.guest.run("systemctl daemon-reexec")
    berth.guest.poll("systemctl is-system-running >/dev/null; systemctl is-active --quiet berthd.service", 60, what="systemd to answer")
    berth.wait_ticks(3)
    assert berth.cpusets(LS, BE) == pins and berth.pid() == pid
    berth.guest.run(f"berthctl set system.slice/{LS} vcpus=1")
    berth.wait_cpusets_change({LS: pins[LS]})
    berth.stop()
    assert_as_before(berth, load)


def test_polkit_that_starts_anew_is_asked_again(berth: Berth, load: dict[str, str]) -> None:
    start(berth)

    def permitted() -> bool:
        return berth.guest.run(f"berthctl set system.slice/{LS} priority=1", check=False, user="tester").returncode == 0

    assert not permitted()
    berth.guest.write_file(POLKIT_RULE, MANAGES)
    try:
        berth.guest.run("systemctl restart polkit")
        berth.guest.poll(permitted, 60, what="the new polkit to permit it")
    finally:
        berth.guest.run(f"rm {POLKIT_RULE}; systemctl restart polkit")
    berth.guest.poll(lambda: not permitted(), 60, what="polkit without the rule to refuse it")


def test_a_bus_that_starts_anew_is_connected_to_again(berth: Berth, load: dict[str, str]) -> None:
    start(berth)
    pins, pid = berth.cpusets(LS, BE), berth.pid()
    berth.guest.run("systemctl restart dbus.service")
    berth.guest.poll("berthctl status >/dev/null 2>&1", 120, what="berthd to be on the new bus")
    berth.guest.run(f"berthctl set system.slice/{LS} vcpus=1")
    # systemd has to do this, so both are on the new bus.
    berth.wait_cpusets_change({LS: pins[LS]})
    assert berth.pid() == pid
    berth.stop()
    # polkitd ends with its bus, and is started when somebody asks for it.
    assert_as_before(berth, {path: value for path, value in load.items() if "/polkit.service/" not in path})


def test_pids_that_are_used_again_are_left_alone(berth: Berth, load: dict[str, str]) -> None:
    """A process that got the pid of one in a cgroup that berth changed, in a cgroup of its own."""
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    start(berth)
    berth.kill()
    reuse = (
        f"pid=$(head -n 1 {GROUP}/cgroup.procs); echo 1 > {GROUP}/cgroup.kill; until rmdir {GROUP}; do sleep 0.1; done; "
        "mkdir /sys/fs/cgroup/berthtest/other; echo 5 > /sys/fs/cgroup/berthtest/other/cpuset.cpus; "
        "for try in $(seq 200); do echo $((pid - 1)) > /proc/sys/kernel/ns_last_pid; setsid sleep 1000 </dev/null >/dev/null 2>&1 & "
        "[ $! -ne $pid ] || break; kill $!; done; echo $pid > /sys/fs/cgroup/berthtest/other/cgroup.procs; echo $pid"
    )
    pid = berth.guest.run(reuse).stdout.split()[-1]
    berth.start("observe", "", RULES + GROUPS)
    berth.wait_for_cpuset(BE, "0-6")
    assert berth.guest.run("cat /sys/fs/cgroup/berthtest/other/cpuset.cpus /sys/fs/cgroup/berthtest/other/cgroup.procs").stdout.split() == ["5", pid]
