# SPDX-License-Identifier: Apache-2.0
"""Results are found under the names by which parts know their items."""

from __future__ import annotations

import json
from pathlib import Path

from testing.green import Count
from testing.junit import by_file, by_guest_test, by_meson_test, of_meson


def report(path: Path, *suites: str) -> Path:
    path.write_text(f"<testsuites>{''.join(suites)}</testsuites>")
    return path


def test_of_meson_tests_with_and_without_suites_and_groups(tmp_path: Path) -> None:
    found = by_meson_test(report(
        tmp_path / "unit.xml",
        '<testsuite name="berth.berth:property / policies-spark.Spark"><testcase name="A"/><testcase name="B"><failure/></testcase></testsuite>',
        '<testsuite name="berth.berth:property / policies-spark.Other"><testcase name="C"><skipped/></testcase></testsuite>',
        '<testsuite name="berth.bus.Recording"><testcase name="A"/></testsuite>',
        '<testsuite name="berth"><testcase name="berth / catalog"/><testcase name="docs"/></testsuite>',
    ))
    assert found == {"policies-spark": Count(1, 1, 1), "bus": Count(1), "catalog": Count(1), "docs": Count(1)}


def test_a_program_that_ends_badly_fails_though_all_its_cases_passed(tmp_path: Path) -> None:
    report(
        tmp_path / "testlog.junit.xml",
        '<testsuite name="berth.berth:property / model.A"><testcase name="A"/></testsuite>',
        '<testsuite name="berth.bus.B"><testcase name="B"/></testsuite>',
        '<testsuite name="berth.cli.C"><testcase name="C"><failure/></testcase></testsuite>',
        '<testsuite name="berth"><testcase name="docs"><failure/></testcase></testsuite>',
    )
    ended = {"berth:property / model": ("FAIL", -6), "berth / bus": ("OK", 0), "berth / cli": ("FAIL", 1), "berth / docs": ("FAIL", 1), "berth / os": ("TIMEOUT", None)}
    lines = [json.dumps({"name": name, "result": result, "returncode": status}) for name, (result, status) in ended.items()]
    (tmp_path / "testlog.json").write_text("\n".join(lines) + "\n")
    of_meson(tmp_path, tmp_path / "unit.xml")
    found = by_meson_test(tmp_path / "unit.xml")
    assert found == {"model": Count(1, 1), "bus": Count(1), "cli": Count(0, 1), "docs": Count(0, 1), "os": Count(0, 1)}


def test_of_guest_tests_by_file_and_by_name_without_parameters(tmp_path: Path) -> None:
    path = report(tmp_path / "vm.xml", '<testsuite name="tests/vm/test_a.py"><testcase name="test_x[6.1]"/><testcase name="test_x[6.12]"/></testsuite>')
    assert by_file(path) == {"tests/vm/test_a.py": Count(2)}
    assert by_guest_test(path) == {"tests/vm/test_a.py::test_x": Count(2)}
