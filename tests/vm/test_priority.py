# SPDX-License-Identifier: Apache-2.0
"""Best-effort work at idle priority while a service runs: where the mark lies, what it leaves alone, and that it goes back."""

from collections.abc import Iterator

import pytest

from berth import LIGHT, RULES, Berth

pytestmark = pytest.mark.usefixtures("default_isolation")
SLICE = "berthtest.slice"
LS, BE1, BE2 = "berth-test-ls1.service", "berth-test-be1.service", "berth-test-be2.service"
OTHER = "berth-test-other.service"
WEIGHT = "77"
OF_SLICE = f"""
[[workload]]
match = "{SLICE}/berth-test-be*.service"
class = "best-effort"
"""
ALL_RULES = RULES + OF_SLICE


def read(berth: Berth, path: str, name: str = "cpu.idle") -> str:
    """A file of a cgroup; without the cpu controller, what it would say."""
    usual = "100" if name == "cpu.weight" else "0"
    return berth.guest.run(f"cat /sys/fs/cgroup/{path}/{name} 2>/dev/null || echo {usual}").stdout.strip()


def wait_idle(berth: Berth, wanted: dict[str, str]) -> None:
    berth.guest.poll(lambda: {path: read(berth, path) for path in wanted} == wanted, 60, what=f"cpu.idle to be {wanted}")


@pytest.fixture
def batch(berth: Berth) -> Iterator[Berth]:
    """Two units of best-effort work in a slice of their own, whose owner gave it a weight."""
    for unit in (BE1, BE2):
        berth.start_unit(unit, LIGHT, f"Slice={SLICE}")
    berth.guest.run(f"systemctl set-property --runtime {SLICE} CPUWeight={WEIGHT}")
    yield berth
    berth.stop()
    berth.guest.run(f"systemctl revert {SLICE}")


def test_the_slice_is_idle_while_a_service_runs_and_nothing_else_is(batch: Berth) -> None:
    batch.start("enforce", rules=ALL_RULES)
    batch.wait_ticks(3)
    assert read(batch, SLICE) == "0"
    before = batch.attributes()

    batch.start_unit(LS, LIGHT)
    wait_idle(batch, {SLICE: "1"})
    batch.wait_pinned(LS)
    after = batch.attributes()
    idle = {path for path, value in after.items() if path.endswith("/cpu.idle") and value == "1"}
    assert idle == {f"./{SLICE}/cpu.idle"}
    changed = {path for path, value in before.items() if path in after and after[path] != value}
    assert {path for path in changed if not path.endswith("/cpuset.cpus")} == {f"./{SLICE}/cpu.idle", f"./{SLICE}/cpu.weight"}
    assert all(LS in path or SLICE in path for path in changed)

    batch.stop_unit(LS)
    wait_idle(batch, {SLICE: "0"})
    assert read(batch, SLICE, "cpu.weight") == WEIGHT


def test_other_work_in_the_slice_narrows_the_mark_to_the_units(batch: Berth) -> None:
    batch.start_unit(LS, LIGHT)
    batch.start("enforce", rules=ALL_RULES)
    units = [f"{SLICE}/{unit}" for unit in (BE1, BE2)]
    wait_idle(batch, {SLICE: "1", units[0]: "0", units[1]: "0"})
    batch.start_unit(OTHER, LIGHT, f"Slice={SLICE}")
    wait_idle(batch, {SLICE: "0", units[0]: "1", units[1]: "1"})
    assert read(batch, f"{SLICE}/{OTHER}") == "0"
    assert read(batch, SLICE, "cpu.weight") == WEIGHT
    # The service lies outside the slice, so the kernel compares it with all of that.
    batch.guest.poll(lambda: "as an equal" in batch.guest.run(f"berthctl explain system.slice/{LS}").stdout, 60, what="a warning")
    batch.stop_unit(OTHER)
    wait_idle(batch, {SLICE: "1", units[0]: "0", units[1]: "0"})


def test_a_kill_and_a_stop_put_it_back(batch: Berth) -> None:
    batch.start_unit(LS, LIGHT)
    batch.start("enforce", rules=ALL_RULES)
    wait_idle(batch, {SLICE: "1"})
    # systemd starts it again, and the next one begins with what the owner had.
    killed = batch.pid()
    batch.guest.run(f"kill -KILL {killed}")
    batch.guest.poll(lambda: batch.pid() not in (0, killed), 60, what="another berthd")
    wait_idle(batch, {SLICE: "1"})
    batch.stop()
    assert (read(batch, SLICE), read(batch, SLICE, "cpu.weight")) == ("0", WEIGHT)

    batch.start("enforce", rules=ALL_RULES)
    wait_idle(batch, {SLICE: "1"})
    batch.add_unit_drop_in("[Service]\nRestart=no\n")
    batch.kill()
    wait_idle(batch, {SLICE: "0"})
    assert read(batch, SLICE, "cpu.weight") == WEIGHT


def test_a_unit_that_its_owner_made_idle_is_left_alone(berth: Berth) -> None:
    own, marked = f"system.slice/{BE1}", f"system.slice/{BE2}"
    berth.start_unit(BE1, LIGHT, "CPUWeight=idle")
    berth.start_unit(BE2, LIGHT)
    berth.start_unit(LS, LIGHT)
    berth.start("enforce")
    wait_idle(berth, {own: "1", marked: "1"})
    shown = {own: "idle", marked: "idle", f"system.slice/{LS}": None}

    def as_shown() -> bool:
        return {path: entry["cpu_priority"] for path, entry in berth.workloads().items()} == shown

    berth.guest.poll(as_shown, 60, what=f"the priorities to be {shown}")
    assert not [entry for entry in berth.logged("set-cpu-priority") if entry["workload"] != marked]
    berth.stop()
    assert (read(berth, own), read(berth, marked)) == ("1", "0")


def test_the_least_weight_and_no_priority_can_be_had(batch: Berth) -> None:
    batch.start_unit(LS, LIGHT)
    batch.start("enforce", extra='[interference]\nbest_effort_priority = "weight"', rules=ALL_RULES)
    batch.guest.poll(lambda: read(batch, SLICE, "cpu.weight") == "1", 60, what="the least weight")
    assert read(batch, SLICE) == "0"
    assert batch.configure("enforce", extra='[interference]\nbest_effort_priority = "leave"', rules=ALL_RULES).returncode == 0
    batch.guest.poll(lambda: read(batch, SLICE, "cpu.weight") == WEIGHT, 60, what="the owner's weight")


def test_what_is_observed_is_only_planned(batch: Berth) -> None:
    batch.start_unit(LS, LIGHT)
    batch.start("observe", rules=ALL_RULES)
    batch.guest.poll(lambda: batch.logged("set-cpu-priority"), 60, what="the change to be logged")
    assert [entry["result"] for entry in batch.logged("set-cpu-priority")] == ["observed"]
    assert (read(batch, SLICE), read(batch, SLICE, "cpu.weight")) == ("0", WEIGHT)
