#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs in the guest. Kills berthd at random moments, so many times, and compares the host with what it was. Prints JSON at the end.

berthd is a unit that systemd does not start again (Restart=no).
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNIT = "berthd.service"
GROUP = ROOT / "berth.slice" / UNIT
ATTRIBUTES = ("cpuset.cpus", "cpuset.mems", "cpu.max", "cpu.weight", "cpu.idle", "memory.high", "memory.max", "memory.low")
# Whose processes and cgroups are looked at.
OURS = ("berth-test", "berthtest")
LONGEST_LIFE_s, LONGEST_START_s, LONGEST_RESTORE_s = 5.0, 1.0, 0.2
PATIENCE_s = 60.0


def wait(condition: Callable[[], object], patience_s: float = PATIENCE_s) -> bool:
    deadline = time.monotonic() + patience_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.002)
    return True


def systemctl(*words: str) -> str:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False).stdout.strip()


def processes(group: Path) -> list[int]:
    try:
        return [int(pid) for pid in (group / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def groups() -> Iterator[Path]:
    for where, below, _ in os.walk(ROOT):
        if where == str(ROOT):
            # Logins come and go, where the host has them.
            below[:] = [name for name in below if name != "user.slice"]
        if Path(where) != GROUP:
            yield Path(where)


def host() -> dict[str, str]:
    """Each attribute of each cgroup, where each process of the load is, and what systemd keeps of runtime properties."""
    found = {}
    everything = (ROOT / "cpuset.cpus.effective").read_text().strip()
    for group in groups():
        name = str(group.relative_to(ROOT))
        for attribute in ATTRIBUTES:
            try:
                value = (group / attribute).read_text().strip()
            except OSError:
                continue
            # The kernel does not let it be cleared under tasks.
            found[f"{name}/{attribute}"] = "" if attribute == "cpuset.cpus" and value == everything else value
        if any(ours in name for ours in OURS):
            for pid in processes(group):
                found[f"process {pid}"] = name
    for kept in ("/run/systemd/system.control", "/run/systemd/transient"):
        # systemd replaces files there at any moment.
        for where, _, files in os.walk(kept):
            for path in (f"{where}/{file}" for file in files if not file.startswith(".#")):
                if any(ours in path for ours in OURS) and ".d/" in path:
                    with contextlib.suppress(OSError):
                        found[f"file {path}"] = Path(path).read_text()
    return found


def difference(before: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """A process that lives shortly is in one of the two alone; an unset cpuset whose file went with its controller is as unset."""
    now = host()
    both = before.keys() | now.keys()
    return {
        key: (before.get(key), now.get(key))
        for key in both
        if before.get(key) != now.get(key)
        and not (key.startswith("process ") and (key not in before or key not in now))
        and not (key.endswith("/cpuset.cpus") and not before.get(key) and not now.get(key))
        and not (not key.startswith("file ") and not any(ours in key for ours in OURS) and (key not in before or key not in now))
    }


def kind_of(key: str) -> str:
    return key.split(" ")[0] if key.startswith(("file ", "process ")) else key.rsplit("/", 1)[-1]


class Chaos:
    def __init__(self) -> None:
        self.before = host()
        self.rounds = collections.Counter()
        # Of so many kills berthd had changed that attribute.
        self.changed = collections.Counter()
        self.wrong: list[dict[str, object]] = []

    def start_and_kill(self, in_start: bool) -> None:
        systemctl("reset-failed", UNIT)
        if in_start:
            systemctl("start", "--no-block", UNIT)
            if not wait(lambda: processes(GROUP)):
                raise SystemExit("berthd did not start")
            time.sleep(random.uniform(0, LONGEST_START_s))
        else:
            systemctl("start", UNIT)
            time.sleep(random.uniform(0, LONGEST_LIFE_s))
        pid = int(systemctl("show", "-P", "MainPID", UNIT)) or next(iter(processes(GROUP)), 0)
        found = difference(self.before)
        self.changed.update({kind_of(key) for key, (was, now) in found.items() if was is not None and now is not None or key.startswith("file ")})
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self.rounds["gone before the kill"] += 1
        # systemd starts ExecStopPost= within a moment.
        wait(lambda: [other for other in processes(GROUP) if other != pid], 5)

    def kill_restore(self) -> None:
        time.sleep(random.uniform(0, LONGEST_RESTORE_s))
        killed = processes(GROUP)
        for pid in killed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.rounds["restore killed" if killed else "restore was faster"] += 1

    def settle(self) -> None:
        wait(lambda: systemctl("show", "-P", "ActiveState", UNIT) in ("failed", "inactive"))

    def compare(self, kind: str) -> None:
        # systemd writes the attributes of a unit some time after it has agreed to.
        wait(lambda: not difference(self.before))
        self.rounds[kind] += 1
        if left := difference(self.before):
            self.wrong.append({"kind": kind, "round": sum(self.rounds.values()), "left": left})
            # The next rounds are judged by what they do themselves.
            self.before = host()

    def round(self) -> None:
        in_start = random.random() < 0.1
        self.start_and_kill(in_start)
        kind = random.choice(("after the unit's restore", "after a killed restore, by hand", "after a killed restore, by the next berthd"))
        if kind != "after the unit's restore":
            self.kill_restore()
        self.settle()
        if kind == "after a killed restore, by hand":
            done = subprocess.run(["berthd", "--restore"], capture_output=True, text=True, check=False)
            if done.returncode:
                self.wrong.append({"kind": kind, "said": done.stderr})
        elif kind == "after a killed restore, by the next berthd":
            systemctl("start", UNIT)
            systemctl("stop", UNIT)
        self.compare(kind)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random.seed(options.seed)
    chaos = Chaos()
    for number in range(options.kills):
        chaos.round()
        print(f"{number + 1} kills, {len(chaos.wrong)} wrong", file=sys.stderr, flush=True)
    json.dump({"rounds": chaos.rounds, "changed": chaos.changed, "wrong": chaos.wrong}, sys.stdout)


if __name__ == "__main__":
    main()
