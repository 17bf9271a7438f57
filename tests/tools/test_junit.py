# SPDX-License-Identifier: Apache-2.0
"""Results are found under the names by which parts know their items."""

from __future__ import annotations

from pathlib import Path

from testing.green import Count
from testing.junit import by_file, by_guest_test, by_meson_test


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


def test_of_guest_tests_by_file_and_by_name_without_parameters(tmp_path: Path) -> None:
    path = report(tmp_path / "vm.xml", '<testsuite name="tests/vm/test_a.py"><testcase name="test_x[6.1]"/><testcase name="test_x[6.12]"/></testsuite>')
    assert by_file(path) == {"tests/vm/test_a.py": Count(2)}
    assert by_guest_test(path) == {"tests/vm/test_a.py::test_x": Count(2)}
