# SPDX-License-Identifier: Apache-2.0
"""The tables of tools/testing name what is there, and leave out nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from testing import guests, parts
from testing.guests import TABLE
from testing.parts import KNOWN, PARTS
from testing.run import ROOT
from testing.tree import Inputs, Tree

PROGRAMS = (parts.BERTHD, parts.BERTHCTL, parts.SPARKD, parts.KUBE, parts.SLURM, parts.FLEET)
# Directories of sources that are no modules of the programs.
OTHERS = {"tests", "tools", "docs", ".ci", "debian", "man", "completions", "contrib"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs on which the inputs that are asked for depend."""
    names: list[str] = []

    def built(_: Tree, *targets: str) -> Inputs:
        names.extend(targets)
        return Inputs()

    monkeypatch.setattr(Tree, "built", built)
    return names


@pytest.mark.parametrize("name", ["host", "spark", "slurm", "kubernetes"])
def test_a_part_depends_on_each_program_that_its_tests_name(name: str, asked: list[str]) -> None:
    text = "".join(path.read_text() for path in (ROOT / "tests" / name).rglob("*.py"))
    # A path of the build, in one piece or in several.
    text = re.sub(r'"\s*/\s*"', "/", text)
    KNOWN[name].inputs(Tree(ROOT))
    assert {program for program in PROGRAMS if program in text} <= set(asked)


def test_each_part_has_a_function_that_runs_it() -> None:
    script = (ROOT / "tools/testing/parts.sh").read_text()
    assert {part.name for part in PARTS} | {"guests", "properties"} == set(re.findall(r"^part_(\w+)\(\)", script, re.M))


def test_each_module_has_guest_tests_and_each_of_them_is_there() -> None:
    modules = {
        str(path.parent.relative_to(ROOT)).split("/")[0]
        for path in ROOT.glob("*/**/*.cpp")
        if not path.relative_to(ROOT).parts[0].startswith("build")
    }
    assert modules - OTHERS <= {module.split("/")[0] for module in TABLE}
    for module, tests in TABLE.items():
        assert (ROOT / module).is_dir(), module
        for test in tests:
            file, function = test.split("::")
            assert f"def {function}(" in (ROOT / "tests/vm" / file).read_text(), test


def test_an_edited_guest_test_runs_as_a_whole_file_in_place_of_what_the_table_names_of_it(monkeypatch: pytest.MonkeyPatch, asked: list[str]) -> None:
    # One that no module names, and one that some do.
    whole = ["tests/vm/test_boot.py", "tests/vm/test_pinning.py"]
    monkeypatch.setattr(Tree, "installed", lambda _, **_options: Inputs())
    monkeypatch.setattr(Tree, "edited", lambda *_: whole)
    found = guests.tests(Tree(ROOT))
    assert [name for name in found if name.split("::")[0] in whole] == whole
    assert f"tests/vm/{guests.STARTS}" in found
    for name in whole:
        assert name in Tree(ROOT).names_of(found[name])
    monkeypatch.setattr(Tree, "edited", lambda *_: [])
    assert set(guests.tests(Tree(ROOT))) == {f"tests/vm/{test}" for named in TABLE.values() for test in named}


def test_what_a_guest_test_reads_outside_its_directory_is_an_input_of_it() -> None:
    # A program of the build, and tests/load, on which all guest tests depend.
    known = {*parts.READ_BY_GUEST_TESTS, "test_limits.py", "test_straggler.py"}
    readers = {path.name for path in (ROOT / "tests/vm").glob("test_*.py") if "parents[" in path.read_text()}
    assert readers <= known
