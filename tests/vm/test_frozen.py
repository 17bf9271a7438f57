# SPDX-License-Identifier: Apache-2.0
"""Programs that berthd talks to hang. berthd goes on, and does later what it could not do meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from berth import RULES, WRITE_CONFIG, Berth
from conftest import unit_settings
from evictions import start_in_group, steps, wait_ended, wait_listed
from guestlib import Guest

EXTRA = "eviction.grace = 3"
GROUPS = '[[workload]]\nmatch = "berthtest/*"\nclass = "best-effort"\n'
# A period of the watchdog and more.
WATCHDOG = "[Service]\nWatchdogSec=5\n"
LONG_s = 6
UNIT, WORKLOAD = "berth-test-ls1.service", "system.slice/berth-test-ls1.service"
LATE = "berth-test-ls2.service"
ALSO = "berth-test-also.service"
ALSO_RULE = f'[[workload]]\nmatch = "system.slice/{ALSO}"\nclass = "best-effort"\n'
IMAGE = "/run/berth-test-disk.img"
GENERATOR, FROZEN = "/run/systemd/system-generators/berth-test-slow", "/run/berth-test-frozen"
# As many messages as the socket of journald holds (net.unix.max_dgram_qlen). A sender of its own may hold fewer.
FILL_JOURNAL = """
import socket
senders, sent = [], 1
while sent:
    sender, sent = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), 0
    senders.append(sender)
    sender.setblocking(False)
    try:
        sender.connect("/run/systemd/journal/socket")
        while True:
            sent += sender.send(b"MESSAGE=x\\n")
    except BlockingIOError:
        pass
"""
ASK_SYSTEMD = "busctl --timeout=1 get-property org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager Version"


@pytest.fixture(scope="module", autouse=True)
def watchdog(guest: Guest) -> Iterator[None]:
    with unit_settings(guest, WATCHDOG):
        yield


@contextmanager
def stopped(berth: Berth, program: str) -> Iterator[None]:
    berth.guest.run(f"pkill -STOP -x {program}")
    try:
        yield
    finally:
        berth.guest.run(f"pkill -CONT -x {program}")


@contextmanager
def systemd_that_reloads(berth: Berth) -> Iterator[None]:
    """systemd answers nothing while a generator runs."""
    guest = berth.guest
    guest.write_file(GENERATOR, f"#!/bin/sh\nwhile [ -e {FROZEN} ]; do sleep 0.2; done\n")
    guest.run(f"chmod 755 {GENERATOR}; touch {FROZEN}; setsid systemctl daemon-reload </dev/null >/dev/null 2>&1 &")
    try:
        # To ask systemd would take the 25 s after which the bus gives up, too.
        guest.poll("pgrep -f '[b]erth-test-slow'", 60, what="systemd to wait for the generator")
        yield
    finally:
        guest.run(f"rm -f {GENERATOR} {FROZEN}")
        guest.poll(ASK_SYSTEMD, 120, what="systemd to answer again")


def wait_long(berth: Berth) -> None:
    """For LONG_s of ticks at the least; a berthd that waits for something makes none."""
    berth.wait_ticks(4 * LONG_s)


def start(berth: Berth) -> int:
    berth.start_unit(UNIT)
    berth.start("enforce", EXTRA, RULES + GROUPS)
    berth.wait_pinned(UNIT)
    return berth.pid()


def test_a_systemd_that_does_not_answer_stops_neither_ticks_nor_evictions(berth: Berth) -> None:
    pid = start(berth)
    start_in_group(berth, "calm", "sleep infinity")
    wait_listed(berth, "berthtest/calm")
    two = berth.cpuset(UNIT)
    with systemd_that_reloads(berth):
        berth.guest.run(f"berthctl set {WORKLOAD} vcpus=1")  # systemd has to do this
        wait_long(berth)
        berth.guest.run("berthctl evict --yes berthtest/calm")
        assert wait_ended(berth, "berthtest/calm") == ["terminate SIGTERM", "end"]
        assert berth.cpuset(UNIT) == two
    berth.wait_cpusets_change({UNIT: two})
    assert berth.pid() == pid
    assert steps(berth, WORKLOAD) == []


def test_a_journal_that_does_not_read_stops_neither_ticks_nor_evictions(berth: Berth) -> None:
    pid = start(berth)
    start_in_group(berth, "calm", "sleep infinity")
    wait_listed(berth, "berthtest/calm")
    with stopped(berth, "systemd-journal"):
        berth.guest.run("python3 -", input=FILL_JOURNAL)
        berth.guest.run("timeout 5 berthctl evict --yes berthtest/calm")
        assert wait_ended(berth, "berthtest/calm") == ["terminate SIGTERM", "end"]
        wait_long(berth)
        assert berth.pid() == pid
        berth.guest.run("systemctl stop --no-block berthd.service")
        berth.wait_for_cpuset(UNIT, "")


def test_a_bus_that_does_not_answer_stops_no_tick(berth: Berth) -> None:
    pid = start(berth)
    with stopped(berth, "dbus-daemon"):
        berth.start_unit("berth-test-ls2.service")
        wait_long(berth)
        assert berth.pid() == pid
    berth.wait_pinned("berth-test-ls2.service")
    assert berth.pid() == pid


def test_a_reload_while_the_bus_does_not_answer_is_done_when_it_does(berth: Berth) -> None:
    pid = start(berth)
    with stopped(berth, "dbus-daemon"):
        berth.start_unit(ALSO)
        berth.guest.run(f"{WRITE_CONFIG} && kill -HUP {pid}", input=f'mode = "enforce"\n{EXTRA}\n{RULES}{GROUPS}{ALSO_RULE}')
        wait_long(berth)
        assert berth.pid() == pid
    wait_listed(berth, f"system.slice/{ALSO}")
    assert berth.pid() == pid


def test_polkit_that_does_not_answer_stops_no_tick(berth: Berth) -> None:
    pid = start(berth)
    berth.guest.run("systemctl start polkit")
    with stopped(berth, "polkitd"):
        berth.guest.run(f"setsid berthctl set {WORKLOAD} vcpus=1 </dev/null >/dev/null 2>&1 &", user="tester")
        wait_long(berth)
        assert berth.pid() == pid


@contextmanager
def disk_for_state(berth: Berth) -> Iterator[None]:
    """A file system of its own below berthd's state directory."""
    berth.guest.run(
        f"truncate -s 64M {IMAGE} && mkfs.ext4 -q {IMAGE} && mkdir -p /var/lib/berth && mount -o loop {IMAGE} /var/lib/berth"
    )
    try:
        yield
    finally:
        berth.stop()
        berth.guest.run(f"umount /var/lib/berth && rm {IMAGE}")


def log_of_decisions(berth: Berth) -> dict[str, Any]:
    """What berthd says of the decision log as a capability."""
    (log,) = [c for c in berth.json("status")["capabilities"] if c["name"] == "decision-log"]
    return log


def test_a_disk_that_does_not_answer_stops_neither_ticks_nor_changes(berth: Berth) -> None:
    with disk_for_state(berth):
        pid = start(berth)
        berth.guest.run("fsfreeze -f /var/lib/berth")
        try:
            berth.start_unit(LATE)
            berth.wait_pinned(LATE)
            start_in_group(berth, "victim", "sleep infinity")
            wait_listed(berth, "berthtest/victim")
            berth.guest.run("berthctl evict --yes berthtest/victim")
            wait_ended(berth, "berthtest/victim")
            wait_long(berth)
            log = log_of_decisions(berth)
            assert not log["available"] and "the disk does not answer" in log["detail"]
            assert berth.pid() == pid
        finally:
            berth.guest.run("fsfreeze -u /var/lib/berth")
        count = "python3 -c 'import sqlite3; print(sqlite3.connect(\"/var/lib/berth/decisions.db\").execute(\"select count(*) from decisions where workload like ?\", [\"%victim\"]).fetchone()[0])'"
        berth.guest.poll(lambda: int(berth.guest.run(count).stdout) >= 2, 120, what="the entries that waited to be on the disk")
        # berthd learns at its next tick that the entries are written.
        berth.guest.poll(lambda: log_of_decisions(berth)["available"], 60, what="the decision log to be available again")


def test_a_stop_puts_everything_back_before_it_waits_for_a_disk(berth: Berth) -> None:
    with disk_for_state(berth):
        start(berth)
        berth.guest.run("fsfreeze -f /var/lib/berth")
        try:
            berth.guest.run("systemctl stop --no-block berthd.service")
            berth.wait_for_cpuset(UNIT, "")
        finally:
            berth.guest.run("fsfreeze -u /var/lib/berth")


def test_units_are_changed_through_a_systemd_that_comes_late(berth: Berth) -> None:
    """Not past it: systemd would undo that."""
    pid = start(berth)
    berth.stop()
    with stopped(berth, "dbus-daemon"):
        berth.guest.run("systemctl start berthd.service")
        wait_long(berth)
        assert berth.cpuset(UNIT) == ""
    # systemd 252 has left the bus by then, and returns when it is told to.
    berth.guest.poll(f"kill -USR1 1; {ASK_SYSTEMD}", 60, what="systemd to return to the bus")
    berth.wait_pinned(UNIT)
    assert berth.pid() != pid
    assert any(UNIT in path for path in berth.drop_ins())

    def has_systemd() -> bool:
        return {c["name"]: c for c in berth.json("status")["capabilities"]}["systemd"]["available"]

    berth.guest.poll(has_systemd, 60, what="berthd to say that it has systemd again")


def test_what_systemd_did_not_put_back_is_put_back_later(berth: Berth) -> None:
    start(berth)
    two = berth.cpuset(UNIT)
    with systemd_that_reloads(berth):
        berth.guest.run("berthctl mode observe", check=False)
        assert berth.json("status")["mode"] == "observe"
        assert berth.cpuset(UNIT) == two
    berth.wait_for_cpuset(UNIT, "")
    berth.guest.poll(lambda: not berth.drop_ins(), 60, what="the drop-ins to go")
