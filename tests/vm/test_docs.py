# SPDX-License-Identifier: Apache-2.0
"""The commands that README.md, docs/ and the manual pages show, beside real units, with berthd in enforce mode. And the tutorial, from its
first command to its last.

tests/docs has the commands, and says which of them are left out.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from berth import DROP_IN, NOT_ON_THE_BUS, Berth, run_command

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

from examples import TUTORIAL, Left, Run, example_of  # noqa: E402
from shown import ROOT, Shown, of_page, shown  # noqa: E402
from tutorial import is_left_out, is_reading, run_text  # noqa: E402
from world import (  # noqa: E402
    BACKUP, CONTAINER, FILES, METRICS, NGINX, OTHER_PROGRAMS, missing_line, other_programs, pattern_of, rules, script, within,
)

pytestmark = pytest.mark.usefixtures("default_isolation")
FILES_DIR = "/root/berth-docs"
CONFIGURATION = "/etc/berth/berth.toml"
SCOPE = Path(CONTAINER).name
# By the smallest program that can ask: it is asked after each command.
ASK_MODE = (
    "dbus-send --system --print-reply=literal --dest=org.berth.Node1 /org/berth/Node1 org.freedesktop.DBus.Properties.Get "
    "string:org.berth.Node1.Manager string:Mode"
)
# Tests beside this one may load the host.
EXTRA = f'oversell.stop_threshold = 0.9\nspark.watch = true\n[metrics]\nlisten = "{METRICS}"\n'


@pytest.fixture
def host(berth: Berth) -> Iterator[Berth]:
    """With the services that the pages speak of."""
    guest = berth.guest
    guest.run("systemctl start nginx.service")
    yield berth
    guest.run(
        f"berthctl restore; systemctl stop nginx.service {BACKUP} {SCOPE} backup-demo.service job.service; "
        f"systemctl disable berthd.service; rm -rf {CONFIGURATION} {FILES_DIR}",
        check=False,
    )


def prepare(berth: Berth) -> None:
    guest = berth.guest
    guest.run(run_command(BACKUP, "sleep infinity"))
    # It becomes the command, and would hold the connection.
    guest.run(
        f"setsid systemd-run --quiet --collect --scope --slice=machine.slice --unit={SCOPE} sleep infinity > /dev/null 2>&1 < /dev/null & "
        f"until [ -d /sys/fs/cgroup/{CONTAINER} ]; do sleep 0.2; done"
    )
    berth.start(mode="enforce", extra=EXTRA, rules=rules())
    berth.wait_pinned(NGINX)
    guest.run(["bash", "-c", f"rm -rf {FILES_DIR} && mkdir {FILES_DIR} && cd {FILES_DIR} && {FILES}"])


def test_every_command(host: Berth) -> None:
    prepare(host)
    guest = host.guest
    absent = {program for program in OTHER_PROGRAMS if guest.run(f"command -v {program}", check=False).returncode}
    failures = []
    for command in {command.text: command for command in shown() if command.page != TUTORIAL}.values():
        example = example_of(command.text)
        if not isinstance(example, Run) or example.sources or absent & set(other_programs(command.text)):
            print(f"left out: {command.text}: {example.reason if isinstance(example, Left) else 'tests/docs runs it'}")
            continue
        if problem := problem_of(host, command, example):
            failures.append(f"{command.place}: {command.text}\n{problem}")
    assert not failures, "\n\n".join(failures)


def problem_of(berth: Berth, command: Shown, example: Run) -> str:
    """The difference from what the table says, with what was printed; empty without one. berthd enforces again afterwards."""
    body = script(command.text, example, FILES_DIR)
    words = within(example.inside, body) if example.inside else f"bash -c {shlex.quote(body)}"
    ran = berth.guest.run(words, check=False)
    said = f"{ran.stdout}\n{ran.stderr}"
    if ran.returncode != example.status:
        return f"status {ran.returncode} in place of {example.status}\n{said}"
    for pattern in example.shows:
        if not re.search(pattern, ran.stdout, re.M):
            return f"no {pattern}\n{said}"
    # A berthd that has just started comes to the bus a moment later.
    if (mode := berth.guest.poll(ASK_MODE, 30, what="berthd to tell its mode").stdout.split()[-1]) != "enforce":
        berth.guest.run("berthctl mode enforce")
        return f"the mode is {mode} afterwards\n{said}"
    return ""


def test_tutorial(host: Berth) -> None:
    """From a berth that has just been installed."""
    guest = host.guest
    guest.run("systemctl stop nginx.service")
    host.start(rules="")
    # As after the installation; the budget for an emulated host stays.
    guest.run(f"rm -f {DROP_IN} {CONFIGURATION} && rm -rf {FILES_DIR} && mkdir {FILES_DIR} && berthctl reload")
    for command in of_page(ROOT / TUTORIAL):
        if not is_left_out(command.text):
            follow(host, command)
    # The last step gives everything back.
    host.wait_for_cpuset(NGINX, "")
    host.wait_no_undo_records()


def follow(berth: Berth, command: Shown) -> None:
    """berth follows the host by ticks: what a page shows comes soon, not at once."""
    said: list[CompletedProcess[str]] = []
    words = f"cd {FILES_DIR} && bash -c {shlex.quote(run_text(command.text))}"

    def as_shown() -> bool:
        said[:] = [berth.guest.run(words, check=False)]
        return said[0].returncode == 0 and missing_line(command.output, said[0].stdout) is None

    def problem() -> str:
        line = missing_line(command.output, said[0].stdout) or ""
        return (
            f"{command.place}: {command.text}\nstatus {said[0].returncode}; lacks: {line}\nas {pattern_of(line)}\n"
            f"{said[0].stdout}\n{said[0].stderr}"
        )

    if is_reading(command.text):
        berth.guest.poll(as_shown, 60, interval=1, what=problem)
    else:
        assert as_shown() and said[0].returncode != NOT_ON_THE_BUS, problem()
