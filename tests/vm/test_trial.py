# SPDX-License-Identifier: Apache-2.0
"""A trial of two settings on a booted host: what it tells, and that each of its ends leaves everything as it was before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from berth import BUSY, Berth, run_command
from test_restore import BE, LS, assert_as_before

DIRECTORY = "/run/berth-test-sides"
TRIAL = "berth-test-trial.service"
OUTPUT = f"{DIRECTORY}/output"
# An emulated host ticks slowly. Fourteen windows are the fewest that can show a difference.
SIDES = f"trial --a {DIRECTORY}/observe.toml --b {DIRECTORY}/enforce.toml"
SHORT = "--for 112s --window 8s"
LONG = "--for 1h --window 15s"


@pytest.fixture
def before(berth: Berth) -> Iterator[dict[str, str]]:
    """Two workloads beside a berthd that observes, and files of both sides; gives the attributes of the host."""
    for mode in ("observe", "enforce"):
        berth.guest.write_file(f"{DIRECTORY}/{mode}.toml", f'mode = "{mode}"\n')
    berth.guest.run(f"{run_command(LS, BUSY)} && {run_command(BE, BUSY)}")
    attributes = berth.attributes()
    berth.start("observe")
    berth.wait_for(LS, BE)
    yield attributes
    berth.guest.run(f"systemctl stop {TRIAL}; rm -r {DIRECTORY}", check=False)


def begin(berth: Berth, *options: str) -> None:
    """A trial in a unit of its own, until its side b is in force."""
    streams = (f"StandardOutput=file:{OUTPUT}", "StandardError=journal")
    berth.guest.run(run_command(TRIAL, f"berthctl {SIDES} {' '.join(options)} --json", *streams))
    berth.wait_pinned(LS)
    trial = berth.json("status")["trial"]
    assert (trial["kept"], trial["user"], trial["side"]) == (False, 0, "b")


def assert_ended(berth: Berth, before: dict[str, str]) -> None:
    berth.guest.poll(lambda: berth.json("status")["trial"] is None, 60, what="the trial to end")
    status = berth.json("status")
    assert (status["mode"], status["config"]["mode"]) == ("observe", "observe")
    assert_as_before(berth, before)
    berth.wait_no_undo_records()


def figures(document: dict[str, Any]) -> dict[tuple[str | None, str], dict[str, Any]]:
    return {(row["service"], row["figure"]): row for row in document["figures"]}


def test_observe_is_compared_with_enforce(berth: Berth, before: dict[str, str]) -> None:
    ran = berth.guest.run(f"berthctl {SIDES} {SHORT} --metric 'echo 5' --seed 7 --json", timeout=600)
    document = json.loads(ran.stdout)
    assert (document["schema"], document["complete"], document["ended"]) == ("berth.trial/1", True, None)
    assert document["differs"] == [{"key": "mode", "a": '"observe"', "b": '"enforce"'}]
    assert document["windows"] == 14 and document["order"].count("a") == document["order"].count("b") == 7
    assert document["seed"] == 7 and "seed 7" in ran.stderr
    found = figures(document)
    batch, metric = found[None, "batch-cpu"], found[None, "metric"]
    assert batch["pairs"] == 7 and batch["a"] > 0 and batch["low"] <= batch["change"] <= batch["high"]
    assert (metric["a"], metric["b"], metric["difference"], metric["pairs"]) == (5, 5, False, 7)
    assert_ended(berth, before)
    assert "a trial begins" in berth.journal("trial")


def test_ctrl_c_ends_it_with_the_result_so_far(berth: Berth, before: dict[str, str]) -> None:
    begin(berth, LONG)
    berth.guest.run(f"systemctl kill --kill-whom=main -s INT {TRIAL}")
    berth.guest.poll(f"test -s {OUTPUT}", 60, what="the result")
    document = json.loads(berth.guest.run(f"cat {OUTPUT}").stdout)
    assert (document["complete"], document["ended"]) == (False, "a signal ended it")
    assert_ended(berth, before)


def test_a_killed_berthctl_leaves_nothing_behind(berth: Berth, before: dict[str, str]) -> None:
    begin(berth, LONG)
    berth.guest.run(f"systemctl kill --kill-whom=main -s KILL {TRIAL}")
    assert_ended(berth, before)


def test_a_killed_berthd_goes_back_to_its_files(berth: Berth, before: dict[str, str]) -> None:
    begin(berth, LONG)
    berth.kill()
    berth.start("observe")
    assert_ended(berth, before)


def test_others_may_not_try_anything(berth: Berth, before: dict[str, str]) -> None:
    refused = berth.guest.run(f"setpriv --reuid=65534 --clear-groups berthctl {SIDES} {SHORT}", check=False)
    assert refused.returncode == 3, refused
    assert berth.json("status")["trial"] is None
    same = berth.guest.run(f"berthctl {SIDES} {SHORT}".replace("enforce.toml", "observe.toml"), check=False)
    assert same.returncode == 3 and "do not differ" in same.stderr, same
    assert_ended(berth, before)
