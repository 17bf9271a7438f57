# SPDX-License-Identifier: Apache-2.0
"""The cost of one run, printed. Only the memory has a limit here: it does not depend on the machine's speed."""

from __future__ import annotations

import resource
import shutil
import subprocess

from farm import RUN, Farm

RUNS = 20
MOST_MEMORY_KIB = 10 * 1024
INTERVAL_S = 60


def cpu_of_a_run_s(words: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(RUNS):
        subprocess.run(words, env={"SLURMD_NODENAME": "n1"}, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / RUNS


def test_a_run_is_small(farm: Farm) -> None:
    words = [str(farm.berth_slurm), "--state", str(farm.state_file("n1"))]
    whole_s = cpu_of_a_run_s(words)
    scontrol_s = cpu_of_a_run_s([shutil.which("scontrol") or "", "show", "node", "n1"])

    # Each call notes the largest memory that berth-slurm had so far; both calls come where something is to change.
    noting, peaks = RUN / "scontrol", RUN / "peaks"
    noting.write_text(f'#!/bin/sh\nsed -n "s/^VmHWM:[^0-9]*\\([0-9]*\\) kB/\\1/p" "/proc/$PPID/status" >>{peaks}\nexec scontrol "$@"\n')
    noting.chmod(0o755)
    farm.update("n1", "weight=3000")
    subprocess.run([*words, "--scontrol", str(noting)], env={"SLURMD_NODENAME": "n1"}, check=True)
    memory_kib = max(map(int, peaks.read_text().split()))
    print(
        f"one run: {1000 * whole_s:.1f} ms of CPU, {1000 * scontrol_s:.1f} ms of them scontrol's; "
        f"{100 * whole_s / INTERVAL_S:.3f} % of a core each {INTERVAL_S} s; {memory_kib / 1024:.1f} MiB"
    )
    assert memory_kib < MOST_MEMORY_KIB
