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
    # As one command, which takes long to begin and to end on a slow host: rates count.
    look = f"awk '/throttled_usec/ {{print $2}}' /sys/fs/cgroup/{SERVICE}/cpu.stat; date +%s.%N"
    told = berth.guest.run(f"{look}; berthctl blame {SERVICE} --for 10s --json | tr -d '\\n'; echo; {look}").stdout.splitlines()
    elapsed = float(told[4]) - float(told[1])
    throttled = (int(told[3]) - int(told[0])) / 1000 / elapsed
    document = json.loads(told[2])
    by_quota = share(document, "quota") * document["waited_ms"] / document["seconds"]
    # One thread: it waits for as long as the group is throttled. Both are milliseconds in a second.
    assert 0.85 * throttled < by_quota < 1.15 * throttled, (throttled, document)
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


def test_programs_are_loaded_only_while_somebody_asks(berth: Berth) -> None:
    berth.start_units({LS: HERE + SPIN, BE: HERE + SPIN})
    berth.stop()
    nothing = links(berth)
    berth.start(extra='sampling.blame_linger = "3s"')
    berth.wait_for(LS, BE)
    sampling = berth.guest.poll(lambda: links(berth) - nothing, 60, what="berthd to sample")
    assert not loaded(berth)
    blame(berth, period="1s")
    assert loaded(berth) and links(berth) > nothing + sampling
    cost = berth.json("status")["sampling"]["blame"]
    assert cost["bpf_cpu"] > 0 and cost["ends_in_s"] <= 3, cost
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
