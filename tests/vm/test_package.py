# SPDX-License-Identifier: Apache-2.0
"""The Debian package on a booted host: installed, upgraded, removed and purged.

BERTH_PACKAGE names the package file; without it tools/package builds one, where these sources have none yet. The guest has
never seen `meson install`: files of it would hide what the package lacks.
BERTH_PACKAGE_GUEST names a guest that runs already, of topology small.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth import BUSY, Berth
from berth import RULES as WORKLOADS
from conftest import absent
from guestlib import TOPOLOGIES, Guest
from guestlib.image import SUITE

ROOT = Path(__file__).resolve().parents[2]
LS, BE = "berth-test-ls1.service", "berth-test-be1.service"
CONFIGURATION = "/etc/berth/berth.toml"
# By this name the bus starts the daemon.
ALIAS = "/etc/systemd/system/dbus-org.berth.Node1.service"
RULES = f"""
mode = "enforce"
# An emulated host reads slowly.
sampling.max_cpu = 1
{WORKLOADS}"""
# The books of dpkg, apt and the journal change with every package; systemd and udev write for each unit and device.
BOOKS = r"/(var/log|var/cache/(apt|debconf|ldconfig|man)|var/lib/(apt|dpkg)/|run/(log|systemd|udev|user|sudo)/)"
# Emulated, and beside whatever else the machine does.
PATIENCE = 600


@pytest.fixture(scope="module")
def package() -> Path:
    if given := os.environ.get("BERTH_PACKAGE"):
        return Path(given)
    if not os.environ.get("BERTH_STAGING") and not os.environ.get("BERTH_PACKAGE_GUEST"):
        pytest.skip("no package; name one by BERTH_PACKAGE, or give tests/vm/run --staging")
    if platform.freedesktop_os_release().get("VERSION_CODENAME") != SUITE:
        absent(f"a package for the guest's {SUITE} cannot be built here")
    subprocess.run([ROOT / "tools/package"], check=True)
    (built,) = (ROOT / "build/package").glob("berth_*.deb")
    return built


@pytest.fixture(scope="module")
def newer_package(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same files with a higher version."""
    directory = tmp_path_factory.mktemp("newer")
    tree = directory / "tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN/control"
    control.write_text(re.sub(r"^(Version: .*)$", r"\1+newer", control.read_text(), flags=re.M))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, directory / "berth.deb"], check=True, stdout=subprocess.DEVNULL)
    return directory / "berth.deb"


@pytest.fixture(scope="module")
def package_guest(package: Path) -> Iterator[Guest]:
    if name := os.environ.get("BERTH_PACKAGE_GUEST"):
        yield Guest.attach(name)
        return
    with Guest.boot(f"package-{os.getpid()}", topology=TOPOLOGIES["small"]) as booted:
        yield booted


@pytest.fixture
def berth(package_guest: Guest) -> Iterator[Berth]:
    """What a test finds of berth is up to it: all that is left of the test before it is the package's state."""
    if package_guest.silent:
        print("the guest hung: booting another")
        package_guest.replace()
    yield Berth(package_guest)
    package_guest.run("systemctl stop 'berth-test-*'", check=False)


def state(berth: Berth) -> str:
    """As dpkg has it: "installed 0.1.0", "config-files 0.1.0" once removed, empty once purged or never there."""
    shown = berth.guest.run("dpkg-query -W -f '${db:Status-Status} ${Version}' berth", check=False).stdout.strip()
    return "" if shown.startswith(("not-installed", "unknown")) else shown


def dpkg(berth: Berth, *arguments: str) -> None:
    berth.guest.run(["dpkg", *arguments], timeout=PATIENCE)


def apt_get(berth: Berth, *arguments: str) -> None:
    # As in the README; the guest has no network, and all that the package depends on.
    berth.guest.run(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", *arguments], timeout=PATIENCE)


def install(berth: Berth, package: Path, name: str = "/root/berth.deb") -> None:
    berth.guest.push(package, name)
    apt_get(berth, "install", "--allow-downgrades", "--reinstall", name)


def set_up(berth: Berth, package: Path) -> None:
    """A package of any version, installed, and its service running."""
    if not state(berth).startswith("installed"):
        install(berth, package)
    berth.guest.run("systemctl start berthd.service")


def attributes(berth: Berth) -> dict[str, str]:
    """All of the host, except those of berthd itself. All vCPUs is what clearing a cpuset under running tasks amounts to."""
    everywhere = f"0-{berth.guest.topology.cpus - 1}"
    return {
        path: "" if path.endswith("/cpuset.cpus") and value == everywhere else value
        for path, value in berth.attributes().items()
        if "/berth.slice/" not in path
    }


def assert_as_before(berth: Berth, before: dict[str, str]) -> None:
    after = attributes(berth)
    assert {path: (value, after.get(path, "")) for path, value in before.items() if after.get(path, "") != value} == {}
    assert berth.drop_ins() == []


def start_workloads(berth: Berth) -> None:
    # It uses a part of one of two domains, which are a core each: best-effort work keeps the other one.
    berth.start_unit(LS, BUSY)
    berth.start_unit(BE, "sleep infinity", "AllowedCPUs=0-2")


def cpusets(berth: Berth) -> list[str]:
    """Of both workloads, as the kernel has them."""
    return berth.guest.run(f"cd /sys/fs/cgroup/system.slice; cat {LS}/cpuset.cpus {BE}/cpuset.cpus").stdout.splitlines()


def pin(berth: Berth) -> None:
    """Has berth pin both workloads."""
    berth.guest.write_file(CONFIGURATION, RULES)
    berth.guest.run("berthctl reload")
    wait_pinned(berth)


def wait_pinned(berth: Berth) -> None:
    def pinned() -> bool:
        latency_sensitive, best_effort = cpusets(berth)
        return latency_sensitive not in ("", f"0-{berth.guest.topology.cpus - 1}") and best_effort != "0-2"

    berth.guest.poll(pinned, PATIENCE, what="both workloads to be pinned")


def files(berth: Berth) -> set[str]:
    found = berth.guest.run("find /etc /var /run /usr -xdev").stdout.splitlines()
    return {path for path in found if not re.match(BOOKS, path)}


def shows(berth: Berth, command: str) -> str:
    return berth.guest.run(command, check=False).stdout.strip()


def test_install_starts_it_in_observe_mode(berth: Berth, package: Path) -> None:
    if state(berth):
        dpkg(berth, "--purge", "berth")
    start_workloads(berth)
    before = attributes(berth)
    install(berth, package)
    assert state(berth).startswith("installed")
    assert shows(berth, "systemctl is-enabled berthd.service") == "enabled"
    assert shows(berth, "systemctl is-active berthd.service") == "active"
    assert shows(berth, "systemctl show -P MemoryMin berth.slice") == str(16 << 20)
    # All that others find it by: the bus, the catalog, polkit, the manual; and any user may ask.
    assert berth.json("status")["mode"] == "observe"
    assert "observe" in berth.guest.run("berthctl status", user="tester").stdout
    assert "org.berth.Node1" in shows(berth, "busctl list --activatable --no-legend")
    assert shows(berth, f"readlink -f {ALIAS}").endswith("/berthd.service")
    assert "berth" in shows(berth, "journalctl --list-catalog")
    assert "org.berth.node1.evict" in shows(berth, "pkaction")
    assert shows(berth, "man -w berthd berthctl berth.toml berth org.berth.Node1").count("\n") == 4
    assert shows(berth, "dpkg --verify berth") == ""
    ticks = berth.json("status")["tick"]["count"]
    berth.guest.poll(lambda: berth.json("status")["tick"]["count"] >= ticks + 3, PATIENCE, what="three ticks")
    assert_as_before(berth, before)


def test_upgrade_keeps_state_and_configuration(berth: Berth, package: Path, newer_package: Path) -> None:
    set_up(berth, package)
    start_workloads(berth)
    before = attributes(berth)
    pin(berth)
    berth.guest.run(f"berthctl set {BE} priority=7")
    decisions = {entry["decision"] for entry in berth.json("log", "-n", "500")["entries"]}
    assert decisions
    pid = berth.pid()

    install(berth, newer_package)

    assert state(berth).endswith("+newer")
    assert berth.pid() not in (0, pid)
    assert shows(berth, "systemctl is-enabled berthd.service") == "enabled"
    assert berth.guest.read_file(CONFIGURATION) == RULES
    assert decisions <= {entry["decision"] for entry in berth.json("log", "-n", "500")["entries"]}
    assert berth.json("status")["mode"] == "enforce"
    wait_pinned(berth)
    berth.guest.poll(
        lambda: berth.workloads().get(f"system.slice/{BE}", {}).get("priority") == 7, PATIENCE, what="the priority that was set"
    )
    # The former values survived both versions.
    berth.stop()
    assert_as_before(berth, before)


def test_upgrade_leaves_a_service_alone_that_was_disabled(berth: Berth, package: Path, newer_package: Path) -> None:
    set_up(berth, package)
    other = package if state(berth).endswith("+newer") else newer_package
    berth.guest.run("systemctl disable --now berthd.service")
    install(berth, other)
    assert shows(berth, "systemctl is-enabled berthd.service") == "disabled"
    assert shows(berth, "systemctl is-active berthd.service") == "inactive"
    assert shows(berth, f"ls {ALIAS}") == "", "the bus would start it for any user"
    berth.guest.run("systemctl enable berthd.service")


def pinned_by(berth: Berth, package: Path) -> dict[str, str]:
    """Installs the package and has it pin both workloads; returns the attributes of before."""
    start_workloads(berth)
    set_up(berth, package)
    berth.guest.run("berthctl mode observe")
    before = attributes(berth)
    berth.guest.run("berthctl mode enforce")
    pin(berth)
    return before


def test_remove_puts_everything_back(berth: Berth, package: Path) -> None:
    before = pinned_by(berth, package)

    apt_get(berth, "remove", "berth")

    assert_as_before(berth, before)
    assert shows(berth, "pgrep berthd") == ""
    assert shows(berth, "systemctl list-units --no-legend 'berth*.slice' berthd.service") == ""
    assert "org.berth.Node1" not in shows(berth, "busctl list --activatable --no-legend")
    assert "berth" not in shows(berth, "journalctl --list-catalog")
    # No scheduler reads the last state of a host without berth; configuration and decision log are kept.
    assert berth.guest.run("test -e /run/berth", check=False).returncode == 1
    assert berth.guest.read_file(CONFIGURATION) == RULES
    assert shows(berth, "ls /var/lib/berth") != ""


def test_a_removal_keeps_an_undo_journal_that_is_not_empty(berth: Berth, package: Path) -> None:
    before = pinned_by(berth, package)
    # From now on nothing puts anything back: neither the unit after the kill nor the package's script.
    berth.guest.run("install -m 755 /bin/false /usr/sbin/berthd.new && mv /usr/sbin/berthd.new /usr/sbin/berthd")
    berth.guest.run("systemctl kill -s KILL berthd.service")
    berth.guest.poll(lambda: berth.pid() == 0, PATIENCE, what="the end of berthd")

    said = berth.guest.run("DEBIAN_FRONTEND=noninteractive apt-get remove -qy berth 2>&1").stdout

    assert "some changes could not be put back" in said
    assert shows(berth, "ls /run/berth | grep -v ^undo.db") == ""
    assert shows(berth, "ls /run/berth") != ""
    # The next installation has all that it needs.
    install(berth, package)
    berth.stop()
    assert_as_before(berth, before)


def test_purge_leaves_nothing(berth: Berth, package: Path) -> None:
    if state(berth):
        dpkg(berth, "--purge", "berth")
    assert state(berth) == ""
    start_workloads(berth)
    before, attributes_before = files(berth), attributes(berth)
    set_up(berth, package)
    pin(berth)
    grown = files(berth) - before
    assert {CONFIGURATION, "/run/berth", "/var/lib/berth", "/usr/sbin/berthd"} <= grown

    apt_get(berth, "purge", "berth")

    left = files(berth)
    assert (left - before, before - left) == (set(), set())
    assert_as_before(berth, attributes_before)
    assert state(berth) == ""
    assert shows(berth, "systemctl list-unit-files --no-legend 'berthd*' berth.slice") == ""
