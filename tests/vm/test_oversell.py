# SPDX-License-Identifier: Apache-2.0
"""What a host says that it can hold: published, kept over restarts, true to what is in use; and who is let in."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from berth import LIGHT, MIB, WAIT_FOR_BUS, Berth, cpus_of
from guestlib import Guest

STATE = "/run/berth/state.json"
BE = "berth-test-be-load.service"
LS = "berth-test-ls-wide.service"
WIDE = f"""
[[workload]]
match = "system.slice/{LS}"
class = "latency-sensitive"
vcpus = 4
"""
# Reads a file until it was replaced twice at least, and says whether each reading was whole.
READER = """
import os, sys, time
files, readings, torn = set(), 0, []
while readings < 300 or len(files) < 3:
    with open(sys.argv[1]) as file:
        text = file.read().rstrip("\\n")
        files.add(os.fstat(file.fileno()).st_ino)
    readings += 1
    if not (text.startswith("{") and text.endswith("}")):
        torn.append(text)
    time.sleep(0.01)
print(torn or "whole")
"""
# Works as long as a file is there.
LOAD = """
import os, time
while True:
    while os.path.exists("/run/berth-test-go"):
        pass
    time.sleep(0.5)
"""
# Nothing happens within it on any machine.
LONG = 3600
HOLD = 8
NODE = "org.berth.Node1 /org/berth/Node1 org.berth.Node1.Manager"


@pytest.fixture(autouse=True)
def nobody_waited_for(berth: Berth, guest: Guest) -> None:
    """What a test before this one was promised is none of this one's business."""
    guest.run("systemctl stop berthd.service; rm -f /run/berth/reservations.json", check=False)


@pytest.fixture
def load(berth: Berth, guest: Guest) -> Any:
    yield
    guest.run(f"systemctl stop {BE} {LS}; true", check=False)


def state(guest: Guest) -> dict[str, Any]:
    return json.loads(guest.run(f"cat {STATE}").stdout)


def bus_property(guest: Guest, name: str) -> str:
    return guest.run(f"busctl get-property {NODE} {name}").stdout.split(maxsplit=1)[1].strip().strip('"')


def test_state_is_there_for_everybody_and_never_half(berth: Berth, guest: Guest) -> None:
    berth.start()
    guest.poll(f"test -e {STATE}", 60, what=STATE)
    said = state(guest)
    assert said["schema"] == "berth.state/1"
    for resource, name in (("cpu", "CPU"), ("memory", "Memory")):
        assert bus_property(guest, f"{name}State") == said[resource]["state"]
        assert float(bus_property(guest, f"{name}Factor")) >= 1
    assert said["cpu"]["capacity"] == 8
    assert guest.run(f"setpriv --reuid=65534 --clear-groups cat {STATE}").stdout.startswith("{")
    # Read again and again over several ticks: always whole, and not always the same file.
    seen = guest.run(f"python3 - {STATE}", input=READER).stdout
    assert seen == "whole\n", seen
    berth.stop()
    assert guest.run(f"test -e {STATE}", check=False).returncode != 0


def test_the_factor_falls_at_once_and_climbs_slowly(berth: Berth, guest: Guest, load: None) -> None:
    interval = 0.5
    berth.start(extra=f'oversell.warmup = "0s"\n[sampling]\nhistory = 8\ninterval = {interval}')
    # A core asked for and hardly used, until told otherwise. It starts no processes: on a busy host each would seem to use much.
    guest.run("rm -f /run/berth-test-go")
    guest.write_file("/root/berth-test-load.py", LOAD)
    berth.start_unit(BE, "python3 /root/berth-test-load.py", "CPUQuota=100%")
    berth.wait_for(BE)

    def factor() -> float:
        return state(guest)["cpu"]["factor"]

    guest.poll(lambda: factor() > 1.1, 120, what="a factor above 1.1")

    def point() -> tuple[float, float]:
        now = state(guest)
        return now["time"], now["cpu"]["factor"]

    def climbs_slowly(*first: tuple[float, float]) -> None:
        points = [*first, *(point() for _ in range(6))]
        for (earlier, low), (later, high) in zip(points, points[1:]):
            assert high >= low, points
            # No tick is shorter than the interval.
            assert high - low <= 0.02 * ((later - earlier) / interval + 1) + 1e-9, points

    climbs_slowly()
    guest.poll(lambda: factor() > 1.2, 120, what="a factor above 1.2")
    high = factor()
    guest.run("touch /run/berth-test-go")
    guest.poll(lambda: factor() < high - 0.1, 60, what="the factor to fall")
    guest.poll(lambda: factor() == 1, 60, what="the factor to be 1 under load")
    guest.run("rm /run/berth-test-go")
    lowest = point()

    def above_1() -> bool:
        nonlocal lowest
        now = point()
        if now[1] == 1:
            lowest = now
        return now[1] > 1

    guest.poll(above_1, 120, what="the factor to begin to climb")
    climbs_slowly(lowest)
    guest.poll(lambda: factor() > 1.1, 120, what="a factor above 1.1 again")


def test_best_effort_work_is_offered_what_its_own_vcpus_hold(berth: Berth, guest: Guest, load: None) -> None:
    berth.start("enforce", extra='oversell.warmup = "0s"\nsampling.interval = "500ms"', rules=WIDE)
    berth.start_unit(LS, LIGHT)
    berth.wait_for(LS)
    # A service that hardly uses its vCPUs lets the node advertise more. They stay its own all the same.
    said = guest.poll(lambda: (cpu := state(guest)["cpu"])["factor"] > 1.1 and cpu, 120, what="a factor above 1.1")
    pool = len(cpus_of(bus_property(guest, "BestEffortCPUs")))
    assert pool == 4
    assert said["best_effort"] == pytest.approx(said["factor"] * pool)
    assert said["best_effort"] < said["advertised"] - said["requested_latency_sensitive"]
    assert "cores for best-effort work" in guest.run("berthctl status").stdout


def test_thirty_callers_get_what_there_is_until_their_time_is_over(berth: Berth, guest: Guest) -> None:
    berth.start()
    guest.poll(f"test -e {STATE}", 60, what=STATE)
    guest.write_file(
        "/root/berth-test-ask",
        '#!/bin/sh\necho "{\\"schema\\": \\"berth.request/1\\", \\"id\\": \\"job-$1\\", \\"vcpus\\": 1}" |\n'
        f"berthctl admit --request - --hold {LONG}s --json > /run/berth-test-answer.$1 2>/dev/null\n"
        # Many processes at once keep an emulated host busy for longer than berthctl waits, or than berthd waits for the bus to say
        # who asks, which it refuses without an answer: then it asks again.
        'status=$?; [ $status != 4 ] && [ -s /run/berth-test-answer.$1 ] || exec sh "$0" "$1"; echo $status\n',
    )
    statuses = guest.run("seq 30 | xargs -P 15 -n 1 sh /root/berth-test-ask", timeout=1200).stdout.split()
    assert sorted(set(statuses)) == ["0", "3"], statuses
    # Of eight vCPUs one stays with best-effort work.
    assert statuses.count("0") == 7
    answers = [json.loads(line) for line in guest.run("cat /run/berth-test-answer.*").stdout.splitlines()]
    assert len(answers) == 30
    let_in = [a for a in answers if a["admitted"]]
    assert len({a["fitting"][0]["cpus"] for a in let_in}) == 7
    assert all(a["reason"] and a["change"] for a in answers if not a["admitted"])
    assert {p["id"] for p in berth.json("snapshot")["pending"]} == {a["request"]["id"] for a in let_in}
    # One of them gives its place to a job that may keep it for a short time.
    stay = {a["request"]["id"] for a in let_in[1:]}
    brief = '{"schema": "berth.request/1", "id": "job-brief", "vcpus": 1}'
    guest.run(f"berthctl admit --cancel {let_in[0]['request']['id']} && echo '{brief}' | berthctl admit --request - --hold {HOLD}s")
    # A restart breaks no promise, and the time of each ends all the same.
    guest.run(f"systemctl restart berthd.service; {WAIT_FOR_BUS}; rm -f /run/berth-test-answer.*")
    assert {p["id"] for p in berth.json("snapshot")["pending"]} - {"job-brief"} == stay
    guest.poll(lambda: "job-brief" not in {p["id"] for p in berth.json("snapshot")["pending"]}, 60, what="the reservation to expire")
    assert {p["id"] for p in berth.json("snapshot")["pending"]} == stay
    told = [e for e in berth.json("log", "-n", "1000")["entries"] if e["workload"] == "job-brief"][:2]
    assert [e["new"] for e in told] == ["expired", "held"]
    assert told[0]["time"] - told[1]["time"] >= HOLD - 1, "the restart does not cut it short"


def test_promises_to_a_hundred_callers_add_up_to_what_there_is(berth: Berth, guest: Guest) -> None:
    """Memory, in several sizes; straight over the bus, and some give their place up again meanwhile."""
    berth.start()
    guest.poll(f"test -e {STATE}", 60, what=STATE)
    whole = {"schema": "berth.request/1", "id": "all", "class": "best-effort", "vcpus": 1, "memory_request_bytes": 1 << 50}
    refused = guest.run(f"echo '{json.dumps(whole)}' | berthctl admit --request - --json", check=False)
    assert refused.returncode == 3
    free = max(float(n) * MIB * 1024 for n in re.findall(r"ask for ([\d.]+) GiB of memory at most", refused.stdout))
    unit = round(free / 6.5)
    guest.write_file(
        "/root/berth-test-ask",
        "#!/bin/sh\nbytes=$(($1 % 3 + 1))\n"
        f'request="{{\\"schema\\": \\"berth.request/1\\", \\"id\\": \\"job-$1\\", \\"class\\": \\"best-effort\\", '
        f'\\"vcpus\\": 1, \\"memory_request_bytes\\": $((bytes * {unit}))}}"\n'
        f'until busctl --timeout=100 --json=short call {NODE} Admit sd "$request" {LONG} > /run/berth-test-answer.$1; do :; done\n'
        # Every other one changes its mind, whatever it was told.
        f"[ $(($1 % 2)) = 0 ] && busctl --timeout=100 call {NODE} CancelReservation s job-$1 2>/dev/null\nexit 0\n",
    )
    guest.run("rm -f /run/berth-test-answer.*; seq 100 | xargs -P 25 -n 1 sh /root/berth-test-ask", timeout=1200)
    answers = [json.loads(json.loads(line)["data"][0]) for line in guest.run("cat /run/berth-test-answer.*").stdout.splitlines()]
    assert len(answers) == 100
    let_in = {a["request"]["id"]: a["request"]["memory_request_bytes"] for a in answers if a["admitted"]}
    kept = {id_: size for id_, size in let_in.items() if int(id_.removeprefix("job-")) % 2}
    held = {r["request"]["id"]: r["request"]["memory_request_bytes"] for r in berth.json("admit", "--list")["reservations"]}
    assert held == kept
    print(f"{sum(kept.values())} of {free:.0f} bytes are promised, to {len(kept)} of {len(let_in)} who were let in")
    assert kept
    assert sum(kept.values()) <= free + unit / 4, "what is free moves a little; a request more would be a unit at least"
    assert all("has to become free" in " ".join(a["change"]) for a in answers if not a["admitted"])
    # Not one more of the smallest size, and one where somebody gives up his place.
    small = {**whole, "id": "late", "memory_request_bytes": unit}
    ask = f"echo '{json.dumps(small)}' | berthctl admit --request - --hold {LONG}s"
    while guest.run(ask, check=False).returncode == 0:
        small["id"] += "r"
        ask = f"echo '{json.dumps(small)}' | berthctl admit --request - --hold {LONG}s"
        assert len(small["id"]) < 20
    gone = next(iter(kept))
    assert guest.run(f"berthctl admit --cancel {gone}").returncode == 0
    assert guest.run(ask, check=False).returncode == 0
    # All of it can be read up later.
    entries = [e for e in berth.json("log", "-n", "1000")["entries"] if e["kind"] == "admit"]
    refusal = next(a for a in answers if not a["admitted"])
    assert [e for e in entries if e["decision"] == refusal["decision"] and e["result"] == "refused"]
    cancelled = berth.json("explain", next(a["decision"] for a in answers if a["request"]["id"] == gone))
    assert [e["new"] for e in cancelled["decision"]["entries"]][:2] == ["cancelled", "held"]
    nobody = guest.run(f"setpriv --reuid=65534 --clear-groups berthctl admit --cancel {small['id']}", check=False)
    assert nobody.returncode == 3 and "org.berth.node1.admit" in nobody.stderr


def test_what_comes_takes_its_place(berth: Berth, guest: Guest, load: None) -> None:
    berth.start()
    guest.poll(f"test -e {STATE}", 60, what=STATE)
    request = f'{{"schema": "berth.request/1", "id": "{BE}", "class": "best-effort", "vcpus": 1}}'
    guest.run(f"echo '{request}' | berthctl admit --request - --hold {LONG}s")
    assert berth.json("status")["reservations"] == 1
    berth.start_unit(BE)
    berth.wait_for(BE)
    assert berth.json("status")["reservations"] == 0
    again = guest.run(f"echo '{request}' | berthctl admit --request -", check=False)
    assert again.returncode == 3
    assert "is already running" in again.stderr


def test_samples_outlive_a_restart(berth: Berth, guest: Guest, load: None) -> None:
    berth.start()
    berth.start_unit(BE)
    berth.wait_for(BE)

    def samples() -> int:
        listed = {w["id"]: w for w in berth.json("snapshot")["workloads"]}
        return len(listed[f"system.slice/{BE}"]["usage"])

    guest.poll(lambda: samples() >= 10, 120, what="ten samples")
    guest.run("systemctl restart berthd.service")
    assert samples() >= 10
    assert json.loads(guest.run("cat /var/lib/berth/used_shares.json").stdout)["schema"] == "berth.used-shares/1"
