# SPDX-License-Identifier: Apache-2.0
"""A file server never answers. berthd does not ask it, and one that hangs keeps no other from its work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import Berth

PROGRAM, ON_GUEST = Path(__file__).with_name("silent.py"), "/usr/local/share/berth-test-silent.py"
POINT = "/run/berth-test-served"
LS, BE = "berth-test-ls1.service", "berth-test-be1.service"
WORKLOAD = f"system.slice/{LS}"
RULES = f"""
[[workload]]
match = "{WORKLOAD}"
class = "latency-sensitive"
vcpus = 2
progress = {{file = "{POINT}/progress"}}

[[workload]]
match = "system.slice/{BE}"
class = "best-effort"
"""
HELD = "/run/berth/berthd.lock /run/berth/undo.lock /run/berth/undo.db /sys/fs/cgroup/memory.reclaim"


def serve(berth: Berth) -> None:
    berth.guest.run(f"setsid python3 {ON_GUEST} serve {POINT} </dev/null >/dev/null 2>&1 & echo $! > {POINT}.pid")
    berth.guest.poll(lambda: "fuse" in berth.guest.run(f"findmnt -no FSTYPE {POINT}", check=False).stdout, 60, what="the mount")


def end_server(berth: Berth) -> None:
    """What waits for it gets an error."""
    berth.guest.run(f"test -e {POINT}.pid && kill -9 $(cat {POINT}.pid); umount -l {POINT}; rm -f {POINT}.pid", check=False)


@pytest.fixture
def directory(berth: Berth) -> Iterator[None]:
    """Of an unprivileged user, in one of root's."""
    berth.guest.push(PROGRAM, ON_GUEST)
    berth.guest.run(f"modprobe fuse; install -d -o 65534 {POINT}")
    yield
    end_server(berth)
    berth.guest.run(f"rm -rf {POINT}")


def write(berth: Berth, progress: float) -> None:
    berth.guest.run(f"echo {progress} > {POINT}/progress")
    berth.guest.poll(lambda: berth.workloads().get(WORKLOAD, {}).get("progress") == progress, 60, what=f"progress {progress}")


@pytest.mark.usefixtures("directory")
def test_a_file_server_on_the_directory_of_a_progress_file_is_not_asked(berth: Berth) -> None:
    berth.start_unit(LS)
    berth.start("enforce", "", RULES)
    berth.wait_pinned(LS)
    write(berth, 0.25)
    pid = berth.pid()
    serve(berth)
    berth.wait_ticks(20)
    assert berth.pid() == pid
    berth.guest.poll(lambda: "is not entered: it is a file system that may hang (fuse)" in berth.journal(POINT), 60, what="a message")
    berth.stop()
    berth.start("enforce", "", RULES)  # it goes there in its first tick
    berth.wait_pinned(LS)
    end_server(berth)
    write(berth, 0.5)


@pytest.mark.usefixtures("directory")
def test_a_berthd_that_was_killed_and_hangs_keeps_no_other_from_its_work(berth: Berth) -> None:
    berth.start_units({LS: "sleep infinity", BE: "sleep infinity"})
    before = berth.cpusets(LS, BE)
    berth.start("enforce", "", RULES)
    berth.wait_pinned(LS)
    berth.wait_cpusets_change(before)
    berth.add_unit_drop_in("[Service]\nRestart=no\nExecStopPost=\n")
    berth.kill()
    berth.guest.run("systemctl mask --runtime berthd.service")  # the bus would start it
    serve(berth)
    # In its place: what it holds, and where it hangs.
    holder = berth.guest.run(
        f"setsid python3 {ON_GUEST} hold {POINT} {HELD} </dev/null >/dev/null 2>&1 & pid=$!; "
        f"echo \"$pid \" > /run/berth/berthd.lock; echo $pid"
    ).stdout.strip()
    status = f"cat /proc/{holder}/wchan"
    berth.guest.poll(lambda: "request_wait_answer" in berth.guest.run(status, check=False).stdout, 60, what="it to hang")
    alive = berth.guest.run("berthd --restore", check=False)
    assert alive.returncode == 1 and "held by another berthd" in alive.stderr, alive
    berth.guest.run(f"kill -9 {holder}")
    try:
        restored = berth.guest.run("berthd --restore")
        assert f"pid {holder}" in restored.stderr and "taken over" in restored.stderr, restored
        berth.guest.poll(lambda: berth.cpusets(LS, BE) == before, 60, what="the cpusets to be as before")
        berth.guest.run("systemctl unmask --runtime berthd.service")
        berth.start("enforce", "", RULES)
        berth.wait_pinned(LS)
        berth.wait_ticks(4)
        assert "State:\tD" in berth.guest.run(f"cat /proc/{holder}/status").stdout
        berth.stop()
        berth.guest.poll(lambda: berth.cpusets(LS, BE) == before, 60, what="the cpusets to be as before")
    finally:
        berth.guest.run("systemctl unmask --runtime berthd.service", check=False)
