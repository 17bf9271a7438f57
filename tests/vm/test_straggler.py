# SPDX-License-Identifier: Apache-2.0
"""A latency-sensitive job that falls behind its deadline gets CPU at the expense of batch work, and everything is given back."""

from pathlib import Path

import pytest

from berth import Berth, at_once, cpus_of, run_command

MONTE_CARLO = Path(__file__).resolve().parents[1] / "load" / "monte-carlo"
PROGRAM = "/usr/local/lib/monte-carlo"
STALLED_PROGRAM = "/usr/local/lib/berth-test-stalled.py"
PROGRESS = "/run/berth-test-progress"
JOB = "berth-test-job.service"
GREEDY = [f"berth-test-be-{n}.service" for n in "abc"]
IDLER = "berth-test-be-idler.service"
BATCH = [*GREEDY, IDLER]
FILLER = "berth-test-ls-filler.service"

# A job that reports itself, and work that holds more than the host has. The filler sleeps and holds the largest part by its
# quota alone: a load that spins on every vCPU slows an emulated host down many times, and with it each command of a test.
RULES = """
[[workload]]
match = "system.slice/berth-test-job*.service"
class = "latency-sensitive"
vcpus = 2
progress = {{file = "{progress}"}}
deadline = "{deadline}"

[[workload]]
match = "system.slice/berth-test-ls-*.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "system.slice/berth-test-be-*.service"
class = "best-effort"
"""
STRAGGLER = 'sampling.interval = "500ms"\n[straggler]\nrestore_hold = "5s"'
# Each gain is smaller than the one before, so that no judgement hangs on how regularly the reports come.
STALLED = f"""
import os, time
gain, done = 1e-4, 0.0
while True:
    done += gain
    gain *= 0.85
    with open("{PROGRESS}.new", "w") as file:
        print(done, file=file)
    os.rename("{PROGRESS}.new", "{PROGRESS}")
    time.sleep(0.5)
"""


@pytest.fixture
def load(berth: Berth) -> Berth:
    """Greedy work that uses all that it holds and can only be preempted, and work that can lend."""
    commands = [run_command(unit, "sh -c 'while :; do :; done'", "CPUQuota=10%") for unit in GREEDY]
    commands.append(run_command(IDLER, "sh -c 'while :; do timeout 0.1 sha256sum /dev/zero; sleep 1; done'", "CPUQuota=200%"))
    commands.append(run_command(FILLER, "sleep infinity", "CPUQuota=400%"))
    berth.guest.run(f"cat > {STALLED_PROGRAM}; rm -f {PROGRESS}*; {at_once(commands)}", input=STALLED)
    return berth


def start_berth(berth: Berth, deadline: str = "20s") -> None:
    berth.start("enforce", extra=STRAGGLER, rules=RULES.format(progress=PROGRESS, deadline=deadline))
    berth.wait_for(*BATCH, FILLER)


def start_job(berth: Berth, samples: int, *properties: str) -> None:
    berth.start_unit(JOB, f"{PROGRAM} --samples {samples} --processes 1 --progress {PROGRESS} --every 0.5", *properties)


def limit(berth: Berth, unit: str, name: str = "cpu.max") -> str:
    return berth.guest.run(f"cat /sys/fs/cgroup/system.slice/{unit}/{name} 2>/dev/null || true").stdout.strip()


def limits(berth: Berth) -> dict[str, tuple[str, str]]:
    """cpu.max and memory.high of each, read by one command."""
    read = "for file in cpu.max memory.high; do cat $unit/$file 2>/dev/null || echo; done"
    lines = berth.guest.run(f"cd /sys/fs/cgroup/system.slice; for unit in {' '.join(BATCH)}; do {read}; done").stdout.splitlines()
    return dict(zip(BATCH, zip(lines[::2], lines[1::2], strict=True), strict=True))


def task(berth: Berth) -> dict:
    return berth.json("plan")["findings"]["straggler"]["tasks"].get(f"system.slice/{JOB}", {})


def grown(berth: Berth) -> bool:
    return len(cpus_of(berth.cpuset(JOB))) > 2


def wait_payer(berth: Berth, before: dict[str, tuple[str, str]]) -> str:
    """A batch unit whose limit is another one than before. It may get its limit back at the next tick, so it is named by the same reading."""

    def look() -> str | None:
        now = limits(berth)
        return next((unit for unit in BATCH if now[unit] != before[unit]), None)

    return berth.guest.poll(look, 90, what="somebody to pay")


def stalled_job(berth: Berth) -> None:
    """A job that says it crawls: it will be a straggler for as long as it lives."""
    berth.start_unit(JOB, f"python3 {STALLED_PROGRAM}")


def test_a_job_that_would_be_late_grows_and_everything_is_given_back(load: Berth) -> None:
    before = limits(load)
    load.guest.push(MONTE_CARLO, PROGRAM)
    start_berth(load, deadline="300s")
    # Its pace under load is not known beforehand: it is made late by a deadline that its first reports do not meet.
    start_job(load, 100_000)
    judged = load.guest.poll(lambda: (found := task(load)).get("v2") and found, 60, what="a judgement of the job")
    now = float(load.guest.run("date +%s.%N").stdout)
    load.guest.run(f"berthctl set system.slice/{JOB} deadline={max(5, int((judged['finish'] - now) * 0.5))}s")
    load.guest.poll(lambda: grown(load), 60, what="more vCPUs for the job")
    # What was lent may have been wanted back by now.
    paid = [e for unit in BATCH for e in load.log_of(unit) if e["policy"] == "straggler" and e["attribute"] == "cpu.max"]
    assert paid, "nobody paid"

    # A job that is in time again gives vCPUs back, and batch work gets them: all are read by one command.
    def apart() -> bool:
        pins = {unit: cpus_of(cpus) for unit, cpus in load.cpusets(JOB, *BATCH).items()}
        owned = pins.pop(JOB)
        assert owned <= {0, 1, 2, 3} or owned <= {4, 5, 6, 7}
        return bool(owned) and not any(owned & cpus for cpus in pins.values())

    load.guest.poll(apart, 30, what="batch work to leave the vCPUs of the job")
    load.stop_unit(JOB)
    load.guest.poll(lambda: limits(load) == before, 120, what="every limit to be as before")
    assert load.json("status")["mode"] == "enforce"


def test_stopping_in_the_middle_gives_everything_back(load: Berth) -> None:
    before = limits(load)
    start_berth(load)
    stalled_job(load)
    load.guest.poll(lambda: grown(load) and limits(load) != before, 90, what="growth")
    load.stop()
    assert limits(load) == before
    assert load.cpuset(JOB) == ""
    assert load.drop_ins() == []


def test_a_killed_daemon_gives_everything_back_when_it_comes_again(load: Berth) -> None:
    before = limits(load)
    start_berth(load)
    stalled_job(load)
    load.guest.poll(lambda: limits(load) != before, 90, what="somebody to pay")
    load.guest.run("systemctl mask --runtime berthd.service; systemctl kill -s KILL berthd.service; true")
    load.guest.poll(lambda: load.pid() == 0, 30, what="the daemon to be gone")
    load.guest.run("systemctl unmask --runtime berthd.service")
    assert limits(load) != before
    load.guest.run("berthctl restore")
    # systemd writes the attributes of a unit a moment after it has agreed to.
    load.guest.poll(lambda: limits(load) == before, 30, what=lambda: f"every limit to be as before: {limits(load)}")


def test_a_batch_task_that_ends_while_it_pays_leaves_nothing(load: Berth) -> None:
    before = limits(load)
    start_berth(load)
    stalled_job(load)
    payer = wait_payer(load, before)
    load.stop_unit(payer)
    load.stop_unit(JOB)
    others = [unit for unit in BATCH if unit != payer]
    load.guest.poll(lambda: all(limits(load)[u] == before[u] for u in others), 120, what="the others' limits to be as before")
    load.stop()
    assert load.guest.run(f"ls -d /run/systemd/system.control/{payer}.d 2>/dev/null || true").stdout == ""





def test_memory_headroom_of_a_straggler_grows(load: Berth) -> None:
    start_berth(load)
    load.start_unit(
        JOB,
        f"sh -c 'head -c 59M /dev/zero > /dev/shm/berth-test-fill; exec python3 {STALLED_PROGRAM}'",
        "MemoryHigh=64M",
    )
    try:
        def more() -> str | None:
            high = limit(load, JOB, "memory.high")
            return high if high not in ("", str(64 << 20)) else None

        assert int(load.guest.poll(more, 90, what="more memory.high")) > 64 << 20
        load.stop()
        assert limit(load, JOB, "memory.high") == str(64 << 20)
    finally:
        load.guest.run("rm -f /dev/shm/berth-test-fill")
