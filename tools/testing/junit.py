# SPDX-License-Identifier: Apache-2.0
"""Counts the results of JUnit files."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from .green import Count


def cases(path: Path) -> Iterator[tuple[str, ElementTree.Element, Count]]:
    """The name of each test case's suite, the case, and what became of it."""
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        for case in suite.findall("testcase"):
            yield suite.get("name", ""), case, result(case)


def result(case: ElementTree.Element) -> Count:
    if case.find("failure") is not None or case.find("error") is not None:
        return Count(failed=1)
    if case.find("skipped") is not None or case.get("result") == "skipped":
        return Count(skipped=1)
    return Count(passed=1)


def by_meson_test(path: Path) -> dict[str, Count]:
    """meson calls the suites of a test PROJECT.TEST.SUITE, and a test without suites a case of PROJECT. "berth:property / " may precede TEST."""
    found: defaultdict[str, Count] = defaultdict(Count)
    for suite, case, count in cases(path):
        name = suite.split(".")[1] if "." in suite else case.get("name", "")
        found[name.split(" / ")[-1]] += count
    return found


def by_file(path: Path) -> dict[str, Count]:
    """tests/vm/run names a suite after its file."""
    found: defaultdict[str, Count] = defaultdict(Count)
    for suite, _, count in cases(path):
        found[suite] += count
    return found


def by_guest_test(path: Path) -> dict[str, Count]:
    """As pytest names a test in a command, without the values of its parameters."""
    found: defaultdict[str, Count] = defaultdict(Count)
    for suite, case, count in cases(path):
        found[f"{suite}::{case.get('name', '').split('[')[0]}"] += count
    return found


def of_meson(logs: Path, report: Path) -> None:
    """Writes the JUnit file of meson's last run, whose logs are in `logs`, to `report`. meson takes the cases of a program as that program
    wrote them, so one that ends badly after its last case, or with the file of an earlier run, seems green. It gets a failed case here."""
    tree = ElementTree.parse(logs / "testlog.junit.xml")
    tree.write(report)
    counted = by_meson_test(report)
    for line in (logs / "testlog.json").read_text().splitlines():
        test = json.loads(line)
        name = test["name"].split(" / ")[-1]
        if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL") or counted.get(name, Count()).failed:
            continue
        suite = ElementTree.SubElement(tree.getroot(), "testsuite", name=f"berth.{name}.program")
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=f"ends well ({test['result']}, status {test.get('returncode')})")
        ElementTree.SubElement(case, "failure")
    tree.write(report)


def main(paths: list[str]) -> int:
    """Names each test that failed, then prints 'N passed, N failed, N skipped' over all files."""
    total = Count()
    for path in paths:
        for _, case, count in cases(Path(path)):
            total += count
            if count.failed:
                print("FAILED ", ".".join(filter(None, (case.get("classname"), case.get("name")))))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 0 if total.green else 1
