# SPDX-License-Identifier: Apache-2.0
"""Nothing is left behind: on stop, on restore, after a crash, and not against somebody else's will."""

from typing import Any

import pytest

from berth import LIGHT, Berth, cpus_of, run_command

LS, BE = "berth-test-ls1.service", "berth-test-be1.service"


@pytest.fixture
def pinned(berth: Berth) -> Any:
    """A mixed load, pinned; gives the attributes of the host as they were before."""
    berth.guest.run(f"{run_command(LS, LIGHT, 'CPUQuota=350%')} && {run_command(BE, LIGHT, 'AllowedCPUs=0-6')}")
    before = berth.attributes()
    berth.start("enforce")
    berth.wait_cpusets_change({LS: "", BE: "0-6"})
    return before


def assert_as_before(berth: Berth, before: dict[str, str]) -> None:
    def changed() -> dict[str, tuple[str, str | None]]:
        after = berth.attributes()
        # An unset cpuset whose file went with its controller is as unset as before.
        return {
            path: (value, after.get(path))
            for path, value in before.items()
            if "/berthd.service/" not in path and after.get(path, "") != value
        }

    berth.guest.poll(lambda: not changed(), 20, what=lambda: f"every attribute to be as before, but for {changed()}")
    # Files of systemd go after the attributes have their values.
    berth.guest.poll(lambda: berth.drop_ins() == [], 20, what=lambda: f"no drop-in to be left: {berth.drop_ins()}")


def test_stop_puts_everything_back(berth: Berth, pinned: dict[str, str]) -> None:
    berth.stop()
    assert_as_before(berth, pinned)


def test_observe_puts_everything_back(berth: Berth, pinned: dict[str, str]) -> None:
    berth.guest.run("berthctl mode observe")
    assert_as_before(berth, pinned)
    berth.wait_no_undo_records()


def test_restore_puts_everything_back_and_stays_in_observe(berth: Berth, pinned: dict[str, str]) -> None:
    report = berth.json("restore")
    assert {r["workload"] for r in report["restored"]} == {f"system.slice/{u}" for u in (LS, BE)}
    assert_as_before(berth, pinned)
    assert berth.json("status")["mode"] == "observe"


def test_kill_leaves_nothing_behind(berth: Berth, pinned: dict[str, str]) -> None:
    """The unit's ExecStopPost= restores even where it is not started again."""
    berth.add_unit_drop_in("[Service]\nRestart=no\n")
    berth.kill()
    assert_as_before(berth, pinned)


def test_kill_and_restart_restores_what_the_journal_says(berth: Berth, pinned: dict[str, str]) -> None:
    """Even where nothing ran after the crash: the next berthd finds the journal."""
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    berth.kill()
    assert berth.cpuset(BE) != "0-6"
    berth.start("observe")
    assert_as_before(berth, pinned)


def test_restore_works_without_the_daemon(berth: Berth, pinned: dict[str, str]) -> None:
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    berth.kill()
    # The bus would start the daemon again by activation.
    berth.guest.run("systemctl mask --runtime berthd.service")
    try:
        berth.guest.run("berthctl restore")
    finally:
        berth.guest.run("systemctl unmask --runtime berthd.service")
    assert_as_before(berth, pinned)


def test_a_second_berthd_is_refused_whatever_its_directories(berth: Berth, pinned: dict[str, str]) -> None:
    pins, pid = berth.cpusets(LS, BE), berth.pid()
    elsewhere = "--state-dir /run/berth-test-second/state --runtime-dir /run/berth-test-second/run"
    berth.guest.run("mkdir -p /run/berth-test-second/state /run/berth-test-second/run")
    for command in ("--restore", "--observe"):
        second = berth.guest.run(f"timeout 60 berthd {command} {elsewhere}", check=False)
        assert second.returncode == 1, second
        assert f"this host is held by another berthd (pid {pid}" in second.stderr, second.stderr
    assert berth.cpusets(LS, BE) == pins
    berth.stop()
    assert berth.guest.run(f"berthd --restore {elsewhere}").stdout == "nothing to restore\n"
    berth.guest.run("rm -r /run/berth-test-second")
    assert_as_before(berth, pinned)


def test_a_second_berthd_in_a_privileged_container_is_refused(berth: Berth, pinned: dict[str, str]) -> None:
    """It has a /run and process ids of its own, but the host's cgroups."""
    pins = berth.cpusets(LS, BE)
    container = "unshare --mount --pid --fork --mount-proc sh -c 'mount -t tmpfs tmpfs /run/berth && timeout 60 berthd {}'"
    for command in ("--restore", "--observe"):
        second = berth.guest.run(container.format(command), check=False)
        assert second.returncode == 1, second
        assert "this host is held by another berthd (pid not seen from here, /sys/fs/cgroup/memory.reclaim)" in second.stderr, second.stderr
    assert berth.cpusets(LS, BE) == pins
    berth.stop()
    assert berth.guest.run(container.format("--restore")).stdout == "nothing to restore\n"
    assert_as_before(berth, pinned)


def test_a_value_changed_by_somebody_else_is_left_and_said(berth: Berth, pinned: dict[str, str]) -> None:
    berth.guest.run(f"systemctl set-property --runtime {BE} AllowedCPUs=3")
    berth.guest.poll(lambda: not berth.workloads()[f"system.slice/{BE}"]["managed"], 30, what="berth to yield")
    reason = berth.workloads()[f"system.slice/{BE}"]["left_alone_reason"]
    assert "3" in reason
    berth.stop()
    assert berth.cpuset(BE) == "3"
    assert berth.cpuset(LS) == ""


def test_reassert_writes_again(berth: Berth, pinned: dict[str, str]) -> None:
    berth.configure("enforce", extra='[safety]\nforeign_writer = "reassert"')
    berth.wait_cpusets_change({BE: "0-6"})
    mine = berth.cpuset(BE)
    berth.guest.run(f"systemctl set-property --runtime {BE} AllowedCPUs=3")
    berth.wait_for_cpuset(BE, mine)


def test_a_unit_with_a_configured_affinity_returns_to_it(berth: Berth) -> None:
    unit = "/run/systemd/system/berth-test-be-own.service"
    berth.guest.write_file(unit, f"[Service]\nExecStart={LIGHT}\nAllowedCPUs=0-5\n")
    berth.guest.run("systemctl daemon-reload && systemctl start berth-test-be-own.service")
    try:
        berth.start_unit(LS, LIGHT)
        berth.start("enforce")
        berth.wait_cpusets_change({"berth-test-be-own.service": "0-5"})
        assert cpus_of(berth.cpuset("berth-test-be-own.service")) <= {0, 1, 2, 3, 4, 5}
        berth.stop()
        berth.wait_for_cpuset("berth-test-be-own.service", "0-5")
        berth.guest.poll(lambda: berth.drop_ins() == [], 20, what="no drop-in to be left")
        assert "changed on disk" not in berth.guest.run("systemctl status berth-test-be-own.service", check=False).stderr
    finally:
        berth.guest.run(f"systemctl stop berth-test-be-own.service; rm -f {unit}; systemctl daemon-reload", check=False)


def test_records_of_another_boot_are_void(berth: Berth, pinned: dict[str, str]) -> None:
    """Cgroups and runtime properties do not survive a boot; a journal that speaks of them must do no harm."""
    pin = berth.cpuset(BE)
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    berth.kill()
    berth.guest.run("sqlite3 /run/berth/undo.db \"update boot set id = 'another'\"")
    berth.start("observe")
    berth.wait_for(LS, BE)
    assert berth.json("status")["undo_records"] == 0
    assert berth.cpuset(BE) == pin


def test_a_full_runtime_directory_means_observe(berth: Berth) -> None:
    berth.start_units({LS: LIGHT, BE: LIGHT})
    berth.guest.run("mkdir -p /run/berth && mount -t tmpfs -o size=4k tmpfs /run/berth")
    berth.guest.run("head -c 1M /dev/zero > /run/berth/filler 2>/dev/null; chmod 0600 /run/berth/filler", check=False)
    try:
        berth.start("enforce")
        berth.wait_for(LS, BE)
        status = berth.json("status")
        assert status["mode"] == "observe"
        (journal,) = [c for c in status["capabilities"] if c["name"] == "undo-journal"]
        assert not journal["available"] and "/run/berth" in journal["detail"]
        assert berth.cpuset(LS) == berth.cpuset(BE) == ""
    finally:
        berth.stop()
        berth.guest.run("umount /run/berth")
