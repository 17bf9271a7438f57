# SPDX-License-Identifier: Apache-2.0
"""The guest as a fixture. `tests/vm/run` boots it and says so by BERTH_GUEST; without, one is booted here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from berth import CLEAN_UP, FOR_EVERY_TEST, Berth
from guestlib import TOPOLOGIES, VARIANTS, Guest, GuestError


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """With a failure goes what berthd wrote last."""
    outcome = yield
    report = outcome.get_result()
    subject = next((value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Berth)), None)
    if report.when != "call" or not report.failed or subject is None or subject.guest.silent:
        return
    try:
        said = subject.guest.run("journalctl -u berthd -n 80 --no-pager -o short-precise; uptime", check=False, timeout=60)
        report.sections.append(("berthd's journal", said.stdout))
    except GuestError as error:
        report.sections.append(("berthd's journal", str(error)))


# Each thing that a test names so: files, cgroups, which tell of units and processes, and mounts. And drop-ins of berthd's unit.
TRACES = (
    "{ find /run /tmp /var/tmp /root /home /etc -maxdepth 3 "
    "-name 'berth-test*' ! -path '/run/systemd/units/*' ! -path '/run/user/*' -o -path '/*/systemd/system/berthd.service*'; "
    "find /sys/fs/cgroup -name 'berth-test*'; "
    "while read -r device target rest; do case $target in *berth-test*) echo $target ;; esac; done < /proc/mounts; } 2>/dev/null"
)
# Of each guest what its last test left, so that the next one need not look.
LEFT: dict[Guest, set[str]] = {}


def traces(guest: Guest, first: str = ":") -> set[str]:
    """`first`: for the shell, runs before."""
    return set(guest.run(f"{{ {first}; }} >/dev/null 2>&1; {TRACES}", check=False).stdout.splitlines())


def end_traces(guest: Guest, but: set[str], first: str = ":") -> None:
    """The next test finds none. A file of a test is removed; of the rest, the test is to say how it ends."""
    left = traces(guest, first)
    if files := [path for path in left - but if not path.startswith("/sys/")]:
        guest.run(["rm", "-rf", "--one-file-system", *files], check=False)
    if left - but:
        # systemd forgets a unit a moment after its last process.
        guest.poll(lambda: not traces(guest) - but, 60, what=lambda: f"an end of {sorted(traces(guest) - but)}, which this test left")
    LEFT[guest] = but


@contextmanager
def unit_settings(guest: Guest, text: str) -> Iterator[None]:
    """Settings of berthd's unit for all tests of a file. systemd reads all units anew for them, and again when they go."""
    directory = "/etc/systemd/system/berthd.service.d"
    guest.write_file(f"{directory}/tests.conf", text)
    guest.run("systemctl daemon-reload")
    # Each test is to find and to leave them.
    LEFT.pop(guest, None)
    yield
    LEFT.pop(guest, None)
    if not guest.silent:
        guest.run(f"rm -r {directory}; systemctl daemon-reload")


@pytest.fixture(scope="session")
def guest() -> Iterator[Guest]:
    """Files of tests share a guest."""
    if name := os.environ.get("BERTH_GUEST"):
        attached = Guest.attach(name)
        # Another file of tests answers for what it left.
        before = traces(attached)
        yield attached
        if not attached.silent:
            end_traces(attached, before)
        return
    with Guest.boot(f"pytest-{os.getpid()}") as booted:
        if staging := os.environ.get("BERTH_STAGING"):
            booted.install(Path(staging))
        yield booted


@pytest.fixture(autouse=True)
def another_guest_where_one_hung(request: pytest.FixtureRequest) -> None:
    """A test that met the silence of a guest runs again (tests/vm/run), and the ones after it run: in another one."""
    for name in {"guest", "sampling_guest", "spark_guest"} & set(request.fixturenames):
        hung: Guest = request.getfixturevalue(name)
        if hung.silent:
            print("the guest hung: booting another")
            hung.replace()
            if staging := os.environ.get("BERTH_STAGING"):
                hung.install(Path(staging))


@pytest.fixture
def berth(guest: Guest) -> Iterator[Berth]:
    """The berth that is installed in the guest; stopped and its test units gone after each test."""
    yield from installed(guest)


@pytest.fixture
def default_isolation(berth: Berth) -> None:
    """For tests of what berth may do to a host: services have the level that users get without a setting."""
    berth.always = FOR_EVERY_TEST


@pytest.fixture(scope="module", params=VARIANTS)
def sampling_guest(request: pytest.FixtureRequest) -> Iterator[Guest]:
    """A guest of each kernel in turn.

    BERTH_SAMPLING_GUEST names one that runs already.
    """
    if name := os.environ.get("BERTH_SAMPLING_GUEST"):
        booted = Guest.attach(name)
        if not booted.image.path.name.startswith(f"{request.param}-"):
            pytest.skip(f"guest {name} has another kernel")
        yield booted
        return
    staging = os.environ.get("BERTH_STAGING")
    if not staging:
        pytest.skip("no berth for a guest of its own; give tests/vm/run --staging")
    topology = TOPOLOGIES["small"]
    with Guest.boot(f"sampling-{request.param}-{os.getpid()}", topology=topology, variant=request.param) as booted:
        booted.install(Path(staging))
        yield booted


@pytest.fixture
def sampling_berth(sampling_guest: Guest) -> Iterator[Berth]:
    yield from installed(sampling_guest)


def absent(reason: str) -> None:
    """Where nobody looks on, a test that cannot run is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def installed(guest: Guest) -> Iterator[Berth]:
    if guest not in LEFT:
        require_berth(guest)
        LEFT[guest] = traces(guest)
    before = LEFT[guest]
    yield Berth(guest)
    end_traces(guest, before, CLEAN_UP)


def find(guest: Guest) -> Berth:
    require_berth(guest)
    return Berth(guest)


def require_berth(guest: Guest) -> None:
    if guest.run("command -v berthd", check=False).returncode != 0:
        if os.environ.get("BERTH_STAGING"):
            pytest.fail("the staging tree was installed and has no berthd")
        pytest.skip("no berth in the guest; give tests/vm/run --staging")
