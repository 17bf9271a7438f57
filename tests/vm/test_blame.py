# SPDX-License-Identifier: Apache-2.0
"""Who is to blame for waits, with culprits that are known, on each kernel."""

import json
import shlex
from typing import Any

import pytest

from berth import Berth

LS, BE, PLAIN = "berth-test-ls1.service", "berth-test-be1.service", "berth-test-plain.service"
SPIN = "sh -c 'while :; do :; done'"
# All of them want vCPU 1, which is not the one that the guest's other work prefers.
HERE = "taskset -c 1 "
SERVICE = f"system.slice/{LS}"
# Each datagram is received in a software interrupt, in the sender's time.
DATAGRAMS = """
import socket
there = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there.bind(("127.0.0.1", 0))
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while True:
    here.sendto(b"x" * 1000, there.getsockname())
"""
# Pages that a kernel thread compares without an end, as long as it is told to.
PAGES = """
import mmap, os, time
held = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
held.madvise(mmap.MADV_MERGEABLE)
held.write(os.urandom(len(held)))
time.sleep(1e9)
"""
KSM = "/sys/kernel/mm/ksm"
# Numbers of links to programs that the kernel has.
LINKS = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
count, number = 0, 0
while True:
    attribute = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0), 128)
    if libc.syscall(321, 31, attribute, 128) != 0:
        break
    number = struct.unpack_from("=I", attribute, 4)[0]
    count += 1
print(count)
"""


@pytest.fixture
def berth(sampling_berth: Berth) -> Berth:
    return sampling_berth


def blame(berth: Berth, service: str = SERVICE, period: str = "4s") -> dict[str, Any]:
    document = berth.json("blame", service, "--for", period)
    assert document["waited_ms"] > 0, document
    return document


def share(document: dict[str, Any], kind: str, name: str | None = None) -> float:
    return sum(c["ms"] for c in document["culprits"] if (c["kind"], c["name"]) == (kind, name)) / document["waited_ms"]


def rate(document: dict[str, Any], kind: str) -> float:
    """Milliseconds in a second."""
    return share(document, kind) * document["waited_ms"] / document["seconds"]


def blame_beside(berth: Berth, count: str) -> tuple[float, dict[str, Any]]:
    """By how much the number that a command prints grew in a second, and the answer of that time.

    It is one command, which takes long to begin and to end on a slow host: rates count.
    """
    look = f"{count}; date +%s.%N"
    told = berth.guest.run(f"{look}; berthctl blame {SERVICE} --for 10s --json | tr -d '\\n'; echo; {look}").stdout.splitlines()
    return (float(told[3]) - float(told[0])) / (float(told[4]) - float(told[1])), json.loads(told[2])


def links(berth: Berth) -> int:
    return int(berth.guest.run(["python3", "-c", LINKS]).stdout)


def loaded(berth: Berth) -> bool:
    return berth.json("status")["sampling"]["blame"] is not None


def test_a_workload_and_a_cgroup_without_a_rule_are_named(berth: Berth) -> None:
    berth.start_units({LS: HERE + SPIN, BE: HERE + SPIN, PLAIN: HERE + SPIN})
    berth.start()
    berth.wait_for(LS, BE)
    document = blame(berth)
    by_batch = share(document, "best-effort", f"system.slice/{BE}")
    by_plain = share(document, "cgroup", f"system.slice/{PLAIN}")
    assert by_batch > 0.3 and by_plain > 0.3 and by_batch + by_plain > 0.85, document
    # The service by the name that its rule gives it, and as a table.
    told = berth.guest.run(["berthctl", "blame", LS, "--for", "1s"]).stdout
    assert BE in told and PLAIN in told, told


def test_threads_of_its_own_are_its_own(berth: Berth) -> None:
    berth.start_unit(LS, HERE + "sh -c 'while :; do :; done & while :; do :; done'")
    berth.start()
    berth.wait_for(LS)
    document = blame(berth)
    assert share(document, "own") > 0.85, document


def test_the_quota_is_blamed_for_the_time_that_it_takes(berth: Berth) -> None:
    berth.guest.run(f"systemd-run --quiet --collect --unit={LS} --property=CPUQuota=20% {HERE}{SPIN}")
    berth.start_unit(BE, HERE + SPIN)
    berth.start()
    berth.wait_for(LS, BE)
    blame(berth, period="1s")
    throttled, document = blame_beside(berth, f"awk '/throttled_usec/ {{print $2 / 1000}}' /sys/fs/cgroup/{SERVICE}/cpu.stat")
    # One thread: it waits for as long as the group is throttled.
    assert 0.85 * throttled < rate(document, "quota") < 1.15 * throttled, (throttled, document)
    assert share(document, "quota") + share(document, "best-effort", f"system.slice/{BE}") > 0.85, document


def test_a_flood_of_interrupts_is_seen(berth: Berth) -> None:
    berth.guest.write_file("/root/berth-test-datagrams", DATAGRAMS)
    berth.start_units({LS: HERE + SPIN, BE: HERE + "python3 /root/berth-test-datagrams"})
    berth.start()
    berth.wait_for(LS, BE)
    document = blame(berth)
    by_interrupts = share(document, "interrupts")
    by_batch = share(document, "best-effort", f"system.slice/{BE}")
    assert by_interrupts > 0.05 and by_interrupts + by_batch > 0.85, document


def test_kernel_threads_are_blamed_for_what_they_take(berth: Berth) -> None:
    berth.guest.write_file("/root/berth-test-pages", PAGES)
    berth.start_units({LS: HERE + SPIN, BE: "python3 /root/berth-test-pages"})
    thread = "$(pgrep -x ksmd)"
    try:
        berth.guest.run(
            f"echo 100000 > {KSM}/pages_to_scan && echo 0 > {KSM}/sleep_millisecs && echo 1 > {KSM}/run && "
            f"taskset -p -c 1 {thread} && renice -n 0 -p {thread}"
        )
        berth.start()
        berth.wait_for(LS, BE)
        blame(berth, period="1s")
        ran, document = blame_beside(berth, f"awk '{{print $1 / 1e6}}' /proc/{thread}/schedstat")
    finally:
        berth.guest.run(f"echo 2 > {KSM}/run; echo 0 > {KSM}/run; taskset -p -c 0-7 {thread}; renice -n 5 -p {thread}", check=False)
    # The service waits for as long as that thread has its vCPU; others of the kernel are there for moments.
    assert ran > 100 and 0.85 * ran < rate(document, "kernel") < 1.2 * ran, (ran, document)
    assert share(document, "kernel") > 0.85, document


def test_programs_are_loaded_only_while_somebody_asks(berth: Berth) -> None:
    berth.start_units({LS: HERE + SPIN, BE: HERE + SPIN})
    berth.stop()
    nothing = links(berth)
    berth.start(extra='sampling.blame_linger = "15s"')
    berth.wait_for(LS, BE)
    sampling = berth.guest.poll(lambda: links(berth) - nothing, 60, what="berthd to sample")
    assert not loaded(berth)
    blame(berth, period="1s")
    cost = berth.json("status")["sampling"]["blame"]
    assert cost and cost["bpf_cpu"] > 0 and cost["ends_in_s"] <= 15, cost
    assert links(berth) > nothing + sampling
    berth.guest.poll(lambda: not loaded(berth), 60, what="the programs to go")
    assert links(berth) == nothing + sampling
    # And at a stop, while they are loaded.
    blame(berth, period="1s")
    berth.stop()
    assert links(berth) == nothing


def test_always_it_counts_without_a_question(berth: Berth) -> None:
    berth.start_units({LS: HERE + SPIN, BE: HERE + SPIN})
    berth.start(extra="sampling.blame = true")
    berth.wait_for(LS, BE)

    def blamed() -> float:
        lines = berth.guest.run("berthctl metrics").stdout.splitlines()
        value = next(line for line in lines if line.startswith('berth_blamed_wait_seconds_total{culprit="best-effort"}'))
        return float(value.split()[1])

    berth.guest.poll(lambda: blamed() > 1, 60, what="a second of waits")


def test_only_those_who_manage_berth_may_ask(berth: Berth) -> None:
    berth.start_unit(LS, HERE + SPIN)
    berth.start()
    berth.wait_for(LS)
    asked = berth.guest.run(f"runuser -u nobody -- berthctl blame {shlex.quote(SERVICE)} --for 1s", check=False)
    assert asked.returncode == 3 and "refused" in asked.stderr, asked
    assert not loaded(berth)
