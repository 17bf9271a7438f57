# SPDX-License-Identifier: Apache-2.0
"""The guest is what berth's tests rely on. Where one of these fails, no other result counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guestlib import CommandFailed, Guest, GuestError

CPU = "/sys/devices/system/cpu"
CGROUPS = "/sys/fs/cgroup"
DEFAULT_TOPOLOGY_ONLY = "this test is about the default topology"


@pytest.fixture
def two_sockets(guest: Guest) -> Guest:
    topology = guest.topology
    if (topology.sockets, topology.cores, topology.threads, topology.numa_nodes) != (2, 2, 2, 2):
        pytest.skip(DEFAULT_TOPOLOGY_ONLY)
    return guest


def per_cpu(guest: Guest, file: str) -> list[str]:
    """The content of a file that each processor has, in the processors' order."""
    return guest.run(f"for i in $(seq 0 7); do cat {CPU}/cpu$i/{file}; done").stdout.split()


# Topology


def test_all_processors_are_online(guest: Guest) -> None:
    online = guest.run("nproc").stdout
    assert int(online) == guest.topology.cpus


def test_two_sockets(two_sockets: Guest) -> None:
    packages = per_cpu(two_sockets, "topology/physical_package_id")
    assert packages == ["0"] * 4 + ["1"] * 4


def test_siblings_share_a_core(two_sockets: Guest) -> None:
    siblings = per_cpu(two_sockets, "topology/thread_siblings_list")
    assert siblings == ["0-1", "0-1", "2-3", "2-3", "4-5", "4-5", "6-7", "6-7"]


def test_each_socket_has_a_level_3_cache(two_sockets: Guest) -> None:
    assert set(per_cpu(two_sockets, "cache/index3/level")) == {"3"}
    assert per_cpu(two_sockets, "cache/index3/shared_cpu_list") == ["0-3"] * 4 + ["4-7"] * 4


def test_each_socket_is_a_numa_node(two_sockets: Guest) -> None:
    node = "/sys/devices/system/node"
    assert two_sockets.read_file(f"{node}/online") == "0-1\n"
    assert two_sockets.read_file(f"{node}/node0/cpulist") == "0-3\n"
    assert two_sockets.read_file(f"{node}/node1/cpulist") == "4-7\n"


def test_a_processor_can_go_offline_and_return(two_sockets: Guest) -> None:
    online = f"{CPU}/cpu7/online"
    two_sockets.write_file(online, "0")
    try:
        assert two_sockets.read_file(f"{CPU}/online") == "0-6\n"
    finally:
        two_sockets.write_file(online, "1")
    assert two_sockets.read_file(f"{CPU}/online") == "0-7\n"


# Kernel


def test_cgroup_v2_alone_with_all_controllers(guest: Guest) -> None:
    assert guest.run(["stat", "-fc", "%T", CGROUPS]).stdout == "cgroup2fs\n"
    assert "cgroup " not in guest.run(["findmnt", "-rno", "FSTYPE"]).stdout.replace("\n", " \n")
    controllers = guest.read_file(f"{CGROUPS}/cgroup.controllers").split()
    assert {"cpu", "cpuset", "memory", "pids", "io"} <= set(controllers)


@pytest.mark.parametrize("resource", ["cpu", "memory", "io"])
def test_pressure_is_measured(guest: Guest, resource: str) -> None:
    assert guest.read_file(f"/proc/pressure/{resource}").startswith("some avg10=")
    assert guest.read_file(f"{CGROUPS}/system.slice/{resource}.pressure").startswith("some avg10=")


def test_kernel_describes_its_types(guest: Guest) -> None:
    assert int(guest.run(["stat", "-c", "%s", "/sys/kernel/btf/vmlinux"]).stdout) > 1_000_000


# System


def test_every_unit_is_well(guest: Guest) -> None:
    failed = guest.run(["systemctl", "--failed", "--no-legend", "--plain"]).stdout
    state = guest.run(["systemctl", "is-system-running"], check=False).stdout
    assert (state, failed) == ("running\n", "")


def test_no_workload_runs_yet(guest: Guest) -> None:
    services = guest.run("systemctl list-units --type=service --state=running --no-legend --plain").stdout
    names = {line.split()[0] for line in services.splitlines()}
    assert not names & {"nginx.service", "podman.service", "stress-ng.service"}


def test_bus_answers(guest: Guest) -> None:
    assert "org.freedesktop.systemd1" in guest.run(["busctl", "list", "--no-legend"]).stdout


def test_polkit_tells_root_from_others(guest: Guest) -> None:
    """Without an agent, root may and `tester` may not."""
    check = "pkcheck --action-id org.freedesktop.systemd1.manage-units --process $$"
    guest.run(check)
    assert guest.run(check, user="tester", check=False).returncode != 0


def test_systemd_takes_runtime_limits(guest: Guest) -> None:
    unit = "limited.service"
    guest.run(f"systemd-run --unit={unit} sleep 600")
    try:
        guest.run(f"systemctl set-property --runtime {unit} CPUQuota=50% AllowedCPUs=2,3")
        group = f"{CGROUPS}/system.slice/{unit}"
        assert guest.read_file(f"{group}/cpu.max") == "50000 100000\n"
        assert guest.read_file(f"{group}/cpuset.cpus.effective") == "2-3\n"
    finally:
        guest.run(["systemctl", "stop", unit])


def test_attributes_on_a_cgroup(guest: Guest) -> None:
    group = f"{CGROUPS}/berth-attribute-test"
    guest.run(
        f"mkdir {group} && setfattr -n user.berth.class -v best-effort {group}"
        f" && getfattr -n user.berth.class {group}; status=$?; rmdir {group}; exit $status"
    )


# Workloads


@pytest.fixture
def nginx(guest: Guest) -> Iterator[Guest]:
    guest.run(["systemctl", "start", "nginx"])
    yield guest
    guest.run(["systemctl", "stop", "nginx"])


def test_nginx_serves_wrk(nginx: Guest) -> None:
    report = nginx.run("wrk -t1 -c2 -d1s http://127.0.0.1/").stdout
    assert "Requests/sec" in report
    assert "Non-2xx" not in report


def test_stress_ng_works(guest: Guest) -> None:
    guest.run("stress-ng --cpu 2 --cpu-ops 2 --timeout 60s")


@pytest.fixture
def container(guest: Guest) -> Iterator[str]:
    """The id of a running container."""
    started = guest.run(
        "podman --cgroup-manager=systemd run --detach --network=none --rootfs /var/lib/berth-test/rootfs sleep 600"
    )
    name = started.stdout.strip()
    yield name
    guest.run(["podman", "rm", "--force", "--time=0", name])


def test_container_is_a_scope_of_systemd(guest: Guest, container: str) -> None:
    """crun puts the processes one cgroup below the scope, which is the one with the limits."""
    pid = guest.run(["podman", "inspect", "--format", "{{.State.Pid}}", container]).stdout.strip()
    scope = f"libpod-{container}.scope"
    assert guest.read_file(f"/proc/{pid}/cgroup") == f"0::/machine.slice/{scope}/container\n"
    assert guest.run(["systemctl", "is-active", scope]).stdout == "active\n"
    assert guest.run(["systemctl", "show", "-P", "Delegate", scope]).stdout == "yes\n"


# The harness itself


def test_status_and_streams_come_back(guest: Guest) -> None:
    result = guest.run("echo out; echo err >&2; exit 7", check=False)
    assert (result.returncode, result.stdout, result.stderr) == (7, "out\n", "err\n")
    with pytest.raises(CommandFailed, match="status 7"):
        guest.run(["sh", "-c", "exit 7"])


def test_a_late_command_is_ended_in_the_guest(guest: Guest) -> None:
    with pytest.raises(GuestError, match="killed after 1 s"):
        guest.run("sleep 987", timeout=1)
    guest.poll("! pgrep -f 'sleep 98[7]'", 10, what="the command to end")


def test_poll_gives_up(guest: Guest) -> None:
    with pytest.raises(GuestError, match="in vain"):
        guest.poll(["false"], deadline=0.5)
    assert guest.poll(lambda: guest.read_file("/etc/hostname"), deadline=10) == "berth-guest\n"


def test_files_go_there_and_back(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> None:
    source = tmp_path_factory.mktemp("source")
    (source / "a").mkdir()
    (source / "a" / "script").write_text("#!/bin/sh\necho yes\n")
    (source / "a" / "script").chmod(0o755)
    guest.push(source, "/tmp/pushed")
    assert guest.run(["/tmp/pushed/a/script"]).stdout == "yes\n"
    back = tmp_path_factory.mktemp("back")
    guest.pull("/tmp/pushed", back)
    assert (back / "a" / "script").read_text() == (source / "a" / "script").read_text()

    guest.push(source / "a" / "script", "/tmp/single")
    assert guest.run(["stat", "-c", "%a %U", "/tmp/single"]).stdout == "755 root\n"
    guest.pull("/tmp/single", back / "single")
    assert (back / "single").read_bytes() == (source / "a" / "script").read_bytes()


def test_a_tree_is_installed_without_breaking_links(guest: Guest, tmp_path_factory: pytest.TempPathFactory) -> None:
    staging = tmp_path_factory.mktemp("staging")
    unit = staging / "lib/systemd/system/installed-test.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nType=oneshot\nExecStart=/bin/true\n")
    guest.install(staging)
    assert guest.run(["readlink", "/lib"]).stdout == "usr/lib\n"
    guest.run(["systemctl", "start", "installed-test.service"])
    guest.run("rm /lib/systemd/system/installed-test.service && systemctl daemon-reload")
