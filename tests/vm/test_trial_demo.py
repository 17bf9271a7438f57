# SPDX-License-Identifier: Apache-2.0
"""The load of the demonstration: what tools/demo measures of it, `berthctl trial` says by itself."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth import Berth
from conftest import require_berth
from test_trial import DIRECTORY, SIDES, figures

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = f"{DIRECTORY}/tools"
WEB = "nginx-berth-demo.service"
# The demonstration's own steps, but in their middle; the client goes on meanwhile.
BEGIN = f"""
import json, os, sys
sys.path.insert(0, {PROGRAMS!r})
sys.dont_write_bytecode = True
from demonstration import pinning, table
from demonstration.load import Load
os.nice(-10)
load = Load()
pinning.start_load(load)
rate = pinning.show_plan(load)["unpinned_rate"]
compared = pinning.compare(load, rounds=3, seconds=0, unpinned_rate=rate)
load.run_as("unpinned")
load.keep_busy()
print(json.dumps({{"client": load.client_cpu, "latency": table.latency(compared), "requests": table.requests(compared)}}))
"""
END = f"""
import sys
sys.path.insert(0, {PROGRAMS!r})
sys.dont_write_bytecode = True
from demonstration.load import Load
Load().clean_up()
"""
# Milliseconds in which nine in ten requests are answered, as one more client sees it.
METRIC = """#!/bin/sh
exec 2>&1
wrk --threads 1 --connections 4 --duration "$((BERTH_TRIAL_SECONDS - 2))s" --timeout 20s --latency \
  --header 'Accept-Encoding: gzip' http://127.0.0.1:8973/ |
  awk '$1 == "90%" { unit = $2; gsub(/[0-9.]/, "", unit); print $2 * (unit == "us" ? 0.001 : unit == "ms" ? 1 : unit == "s" ? 1000 : 60000) }'
"""
# Fourteen windows, of which some ticks count.
LENGTH = "--for 210s --window 15s"


@pytest.fixture(scope="module")
def shown(guest: Any) -> Iterator[dict[str, Any]]:
    """The answer of the demonstration; its load runs on, beside a berthd that observes."""
    require_berth(guest)
    guest.push(ROOT / "tools/demonstration", f"{PROGRAMS}/demonstration")
    for mode in ("observe", "enforce"):
        guest.write_file(f"{DIRECTORY}/{mode}.toml", f'mode = "{mode}"\n')
    guest.write_file(f"{DIRECTORY}/metric", METRIC, mode=0o755)
    try:
        said = guest.run(["python3", "-c", BEGIN], timeout=1800).stdout
        yield json.loads(said.splitlines()[-1])
    finally:
        guest.run(["python3", "-c", END], timeout=600)
        guest.run(["rm", "-r", DIRECTORY])


def trial(berth: Berth, *options: str) -> dict[tuple[str | None, str], dict[str, Any]]:
    document = json.loads(berth.guest.run(f"berthctl {SIDES} {LENGTH} {' '.join(options)} --json", timeout=1200).stdout)
    assert document["complete"] and document["windows"] == 14, document
    return figures(document)


def test_a_trial_gives_the_answer_of_the_demonstration(guest: Any, shown: dict[str, Any]) -> None:
    assert shown["latency"]["helped"] and shown["requests"]["helped"], shown
    found = trial(Berth(guest))
    waits = found[f"system.slice/{WEB}", "runq-p99"]
    assert (waits["difference"], waits["better"]) == (True, "b"), found


def test_with_a_number_of_ones_own_it_gives_the_same(guest: Any, shown: dict[str, Any]) -> None:
    client = f"chrt -f 1 taskset -c {shown['client']} {DIRECTORY}/metric"
    found = trial(Berth(guest), "--metric", shlex.quote(client))
    latency = found[None, "metric"]
    assert (latency["difference"], latency["better"]) == (True, "b"), found
    # The middle of what the demonstration saw, or one of its rounds, is in the interval.
    asked = [shown["latency"][name] - 1 for name in ("least", "ratio", "most")]
    assert latency["low"] <= max(asked) and min(asked) <= latency["high"], (latency, shown)
