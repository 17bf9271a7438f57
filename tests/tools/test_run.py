# SPDX-License-Identifier: Apache-2.0
"""A part runs when something that it depends on changed, and its result is kept only where it was green."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import pytest

from testing import cli
from testing import run as runs
from testing.green import UNUSED_DAYS, Count, Green
from testing.parts import Part
from testing.run import Run, counted
from testing.tree import Inputs, facts

GREEN = "2 passed, 0 failed\n"


class Script(Run):
    """A run whose parts print what a test says. `inputs` is what they depend on."""

    def __init__(self, green: Green, said: Callable[[Sequence[str]], tuple[int, str]], keeps: bool = True) -> None:
        super().__init__(green, keeps)
        self.said, self.calls = said, []

    def shell(self, command: Sequence[str], log: str, *, loud: bool = True, head: str = "") -> tuple[int, str]:
        self.calls.append(list(command))
        return self.said(command)


@pytest.fixture
def green(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Green:
    monkeypatch.setattr(runs, "REPORTS", tmp_path / "reports")
    return Green(tmp_path / "green")


def part(inputs: Callable[[], Inputs | dict[str, Inputs]], **more: object) -> Part:
    return Part("some", "a part", lambda _: inputs(), **more)


def green_run(_: Sequence[str]) -> tuple[int, str]:
    return 0, GREEN


def test_a_part_that_was_green_is_not_run_again_and_counts_as_it_did(green: Green, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        run = Script(green, green_run)
        run.part(part(lambda: facts("one")))
    assert run.calls == [] and run.finish() == 0
    said = capsys.readouterr().out
    assert "unchanged since a green run" in said and said.endswith("2 passed, 0 failed, 0 skipped\n")


def test_a_change_of_its_inputs_or_a_wish_for_all_runs_it_again(green: Green) -> None:
    Script(green, green_run).part(part(lambda: facts("one")))
    for inputs, keeps in ((facts("two"), True), (facts("one"), False)):
        run = Script(green, green_run, keeps)
        run.part(part(lambda inputs=inputs: inputs))
        assert run.calls == [["part_some"]]


@pytest.mark.parametrize("said", [(1, "1 passed, 1 failed\n"), (1, GREEN), (0, ""), (0, "0 passed, 0 failed\n"), (-15, "started\n")])
def test_a_red_run_or_one_that_was_cut_is_not_kept(green: Green, said: tuple[int, str]) -> None:
    for _ in range(2):
        run = Script(green, lambda _: said)
        run.part(part(lambda: facts("one")))
        assert run.calls and run.finish() == 1


def test_what_changed_while_it_was_tested_is_not_kept(green: Green) -> None:
    state = ["before"]

    def change(_: Sequence[str]) -> tuple[int, str]:
        state[0] = "after"
        return 0, GREEN

    Script(green, change).part(part(lambda: facts(state[0])))
    for one in ("before", "after"):
        state[0] = one
        run = Script(green, green_run)
        run.part(part(lambda: facts(state[0])))
        assert run.calls


def test_what_changed_between_the_build_and_the_test_is_not_kept(green: Green, monkeypatch: pytest.MonkeyPatch) -> None:
    built, later = (Inputs(frozenset({f"file a.cpp {state}"})) for state in ("old", "new"))

    class Built:
        def __init__(self, _: Path) -> None:
            pass

        def files(self, *_: str) -> Inputs:
            return built

    monkeypatch.setattr(runs, "Tree", Built)
    run = Script(green, green_run)
    run.build()
    for inputs, kept in ((later, None), (built, Count(2))):
        run.part(part(lambda inputs=inputs: inputs))
        assert green.find("some-all", inputs.hash()) == kept


def test_a_part_beside_others_that_breaks_off_is_a_failure(green: Green, capsys: pytest.CaptureFixture[str]) -> None:
    def breaks() -> Inputs:
        raise OSError("no such file")

    run = Script(green, green_run)
    other = part(breaks)
    run.beside([other])
    run.part(other)
    assert run.finish() == 1
    assert "no such file" in capsys.readouterr().out


def test_a_second_run_of_a_checkout_is_refused_while_the_first_goes_on(green: Green) -> None:
    with Run(green):
        with pytest.raises(SystemExit, match="another run"), Run(green):
            pass
    with Run(green):
        pass


def test_a_process_that_a_part_leaves_ends_with_it_and_none_starts_after_the_end(green: Green, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "LEFT_S", 0.1)
    monkeypatch.setattr(runs, "SHELL", '"$@"')
    with Run(green) as run:
        status, text = run.shell(["bash", "-c", "sleep 1000 & echo $!"], "left", loud=False)
        assert status == 0
        stat = Path(f"/proc/{int(text)}/stat")
        until = time.monotonic() + 60
        while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < until
    with pytest.raises(RuntimeError):
        run.shell(["true"], "late")


def test_of_a_part_of_items_each_is_kept_by_itself(green: Green, tmp_path: Path) -> None:
    results = {"a": Count(3), "b": Count(1, 1), "c": Count(2)}

    def report(_: Path) -> dict[str, Count]:
        return results

    def red(_: Sequence[str]) -> tuple[int, str]:
        (tmp_path / "reports/some.xml").write_text("")
        return 1, "6 passed, 1 failed\n"

    items = part(lambda: {name: facts(name) for name in "abc"}, results=report)
    run = Script(green, red)
    run.part(items)
    assert run.calls == [["part_some", "a", "b", "c"]] and run.finish() == 1
    run = Script(green, lambda _: (0, "1 passed, 0 failed\n"))
    run.part(items)
    assert run.calls == [["part_some", "b"]]
    assert run.outcomes["some"].count == Count(6)


def test_a_kept_result_that_cannot_be_read_is_none(green: Green) -> None:
    Script(green, green_run).part(part(lambda: facts("one")))
    (kept,) = green.directory.iterdir()
    for broken in ("", "{", json.dumps({"count": {"passed": 1, "failed": 1}}), json.dumps({"count": {"passed": 0}}), json.dumps([])):
        kept.write_text(broken)
        assert green.find("some-all", facts("one").hash()) is None


def test_results_that_nothing_asked_for_in_a_month_are_forgotten(green: Green) -> None:
    green.keep("old", "1", Count(1), 1)
    green.keep("new", "1", Count(1), 1)
    month_ago = time.time() - (UNUSED_DAYS + 1) * 86400
    os.utime(green.directory / "old-1", (month_ago, month_ago))
    green.forget_old()
    assert [path.name for path in green.directory.iterdir()] == ["new-1"]


def test_a_cache_that_cannot_be_written_to_keeps_nothing_and_fails_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    green = Green(tmp_path / "file/green")
    green.keep("some", "1", Count(1), 1)
    assert green.find("some", "1") is None
    green.forget_old()


@pytest.mark.parametrize("variable", ["GTEST_FILTER", "PYTEST_ADDOPTS", "RC_PARAMS"])
def test_a_choice_among_the_tests_reaches_them_and_is_not_kept(green: Green, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    seen: list[str] = []

    class Chosen(Script):
        def __init__(self, green: Green, keeps: bool) -> None:
            super().__init__(green, lambda _: (seen.append(os.environ.get(variable, "")), green_run(_))[1], keeps)

        def build(self, *_: object, **__: object) -> None:
            pass

    monkeypatch.setattr(cli, "Run", Chosen)
    monkeypatch.setattr(cli, "default_directory", lambda: green.directory)
    monkeypatch.setattr(cli, "PARTS", [part(lambda: facts("one"))])
    monkeypatch.setattr(cli, "KNOWN", {"some": None})
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.setenv("BERTH_SEED", "1")
    for name in [name for name in os.environ if name in cli.SELECT]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "chosen")
    assert cli.main(["some"]) == 0 and cli.main(["some"]) == 0
    assert seen == ["chosen"] * 4
    # Neither does such a run find what a whole one kept.
    monkeypatch.delenv(variable)
    assert cli.main(["some"]) == 0 and seen[4:] == ["", ""]
    monkeypatch.setenv(variable, "chosen")
    assert cli.main(["some"]) == 0 and seen[6:] == ["chosen"] * 2
    # Another variable of the same programs chooses nothing: packages are installed, and no part runs.
    monkeypatch.delenv(variable)
    monkeypatch.setenv("GTEST_COLOR", "yes")
    assert cli.main(["some"]) == 0 and seen[8:] == [""]


def test_the_last_line_that_counts_is_what_counts() -> None:
    assert counted("1 passed, 0 failed\nmore\n5 passed, 1 failed, 2 skipped\n") == Count(5, 1, 2)
    assert counted("ok\n7 of 7 passed, 0 failed\n") is None


@pytest.mark.parametrize(("said", "last"), [(GREEN, "part guests"), ("1 passed, 1 failed\n", "skip guests")])
def test_quick_waits_for_its_guests_only_while_all_else_is_green(said: str, last: str) -> None:
    calls: list[str] = []

    class Fake:
        def __getattr__(self, name: str) -> Callable[..., object]:
            def call(first: object = None, *_: object, **__: object) -> object:
                calls.append(f"{name} {getattr(first, 'name', '')}".strip())
                count = counted(said)
                return {"failed": bool(count and count.failed), "finish": 0}.get(name)

            return call

    cli.quick(cast(Run, Fake()))
    assert [call for call in calls if "guests" in call] == [last] and calls[-1] == "finish"
