# SPDX-License-Identifier: Apache-2.0
"""berthd as a service: installed, started, watched, talked to."""

import re

from berth import LIGHT, READ_CPUSET, Berth, run_command

# Long enough for a daemon that is only slow.
WATCHDOG = "[Service]\nWatchdogSec=15\n"


def test_is_ready_and_says_what_it_does(berth: Berth) -> None:
    berth.start()
    shown = berth.guest.run("systemctl show -P ActiveState,SubState,StatusText berthd.service", check=False).stdout
    shown += berth.guest.run("systemctl show -P StatusText berthd.service").stdout
    assert berth.guest.run("systemctl is-active berthd.service").stdout.strip() == "active"
    assert "observe" in shown


def test_status_names_what_the_host_offers(berth: Berth) -> None:
    berth.start()
    capabilities = {c["name"]: c for c in berth.json("status")["capabilities"]}
    for name in ("cgroup-v2", "cpuset-controller", "cpu-controller", "memory-controller", "systemd", "polkit", "smt", "llc"):
        assert capabilities[name]["available"], capabilities[name]


def test_topology_is_the_guest_s(berth: Berth) -> None:
    cpus = berth.json("topology")["cpus"]
    assert len(cpus) == 8
    assert len({c["socket"] for c in cpus}) == 2
    assert len({c["core"] for c in cpus}) == 4
    assert len({c["llc"] for c in cpus}) == 2
    assert len({c["numa"] for c in cpus}) == 2


def test_watchdog_is_kept_fed(berth: Berth) -> None:
    berth.add_unit_drop_in(WATCHDOG)
    berth.start()
    pid = berth.pid()
    goal = berth.ticks() + 30
    berth.guest.poll(lambda: berth.ticks() >= goal, 120, interval=3, what="30 ticks, two watchdog periods")
    assert berth.pid() == pid


def test_a_hung_daemon_is_replaced_by_the_watchdog(berth: Berth) -> None:
    berth.add_unit_drop_in(WATCHDOG)
    berth.start()
    pid = berth.pid()
    berth.guest.run(f"kill -STOP {pid}")
    berth.guest.poll(lambda: berth.pid() not in (0, pid), 60, what="systemd to start another berthd")


def test_pressure_wakes_it_long_before_the_next_tick(berth: Berth) -> None:
    go = "/run/berth-test-go"
    berth.guest.run(f"rm -f {go}")
    # Two hogs on one vCPU wait for each other half of the time.
    load = f"until [ -e {go} ]; do sleep 0.5; done; while :; do :; done & while :; do :; done"
    berth.start_unit("berth-test-ls1.service", f"taskset -c 1 sh -c '{load}'")
    berth.start(extra='[sampling]\ninterval = "10min"')
    status = berth.json("status")
    assert {c["name"]: c for c in status["capabilities"]}["pressure-triggers"]["available"], status["capabilities"]
    berth.guest.run(f"touch {go}")
    berth.guest.poll(lambda: berth.json("status")["tick"]["woken_by_pressure"] > 0, 60, what="pressure to wake berthd")
    # Other load of a slow machine may have woken it before the hogs do.
    berth.guest.poll(lambda: berth.json("status")["tick"]["count"] > 1, 10, what="the tick it was woken for")
    berth.guest.run(f"rm {go}")


def test_a_workload_that_appears_is_pinned_long_before_the_next_tick(berth: Berth) -> None:
    interval_s, unit = 60, "berth-test-ls1.service"
    # Without pressure, which would bring a whole tick.
    berth.start("enforce", extra=f"[sampling]\ninterval = {interval_s}\npressure_threshold = 0")
    shown = berth.guest.run(
        f"{run_command(unit, LIGHT)}; unit={unit}; until {READ_CPUSET}; [ -n \"$cpus\" ]; do sleep 0.05; done; "
        f"cut -d' ' -f1 /proc/uptime; systemctl show -P ExecMainStartTimestampMonotonic {unit}"
    ).stdout.split()
    pinned_s, started_us = float(shown[0]), int(shown[1])
    assert pinned_s - started_us / 1e6 < interval_s / 5
    assert berth.json("status")["placement"]["count"] > 0


def test_security_exposure_is_low(berth: Berth) -> None:
    report = berth.guest.run("systemd-analyze security --no-pager berthd.service", check=False).stdout
    level = re.search(r"Overall exposure level for berthd.service: ([\d.]+)", report)
    assert level and float(level.group(1)) <= 3.0, report


def test_it_can_write_drop_ins_but_no_units_and_no_generators(berth: Berth) -> None:
    berth.start()

    def can_write(directory: str) -> bool:
        """As berthd's own mount namespace has it."""
        probe = f"mkdir -p {directory} && touch {directory}/berth-test-probe && rm {directory}/berth-test-probe"
        return berth.guest.run(f"nsenter -m -t {berth.pid()} sh -c '{probe}'", check=False).returncode == 0

    assert can_write("/run/systemd/system.control") and can_write("/run/systemd/transient")
    assert not can_write("/run/systemd/system") and not can_write("/run/systemd/system-generators")
    assert not can_write("/etc/systemd/system")


def test_metrics_are_served_on_this_host_alone(berth: Berth) -> None:
    berth.start_unit("berth-test-ls1.service")
    berth.start(extra='[metrics]\nlisten = "127.0.0.1:9753"')
    berth.wait_for("berth-test-ls1.service")
    answer = berth.guest.run("curl -sf -i http://127.0.0.1:9753/metrics", user="tester").stdout
    assert "text/plain; version=0.0.4" in answer
    assert re.search(r'^berth_workload_vcpus\{workload="system.slice/berth-test-ls1.service",.*\} 2$', answer, re.M), answer
    assert berth.guest.run("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:9753/").stdout == "404"
    listening = berth.guest.run("ss -Hltnp | grep berthd").stdout
    assert re.findall(r"\S+:9753", listening) == ["127.0.0.1:9753"], listening
    # A reload moves it, to where the unit lets it write.
    socket = "/run/berth/metrics.sock"
    berth.configure(extra=f'[metrics]\nlisten = "{socket}"')
    shown = berth.guest.run(f"curl -sf --unix-socket {socket} http://localhost/metrics", user="tester").stdout
    assert "berth_enforcing 0\n" in shown
    assert berth.guest.run("curl -s http://127.0.0.1:9753/metrics", check=False).returncode == 7
    assert "berth_enforcing 0\n" in berth.guest.run("berthctl metrics", user="tester").stdout
    refused = berth.configure(extra='[metrics]\nlisten = "0.0.0.0:9753"')
    assert "loopback" in refused.stderr
    berth.guest.run(f"test -S {socket}")
    berth.configure()
    assert berth.guest.run(f"test -e {socket}", check=False).returncode == 1


def test_top_shows_the_processors_and_the_workloads(berth: Berth) -> None:
    berth.start_unit("berth-test-ls1.service", LIGHT)
    berth.start(mode="enforce")
    berth.wait_for("berth-test-ls1.service")
    berth.wait_pinned("berth-test-ls1.service")
    shown = berth.guest.run("berthctl top --once", user="tester").stdout
    for text in ("socket 1", "thread 1", "use %", "berth-test-ls1", "latency-sensitive"):
        assert text in shown, shown
    use = berth.json("top", "--once")["vcpu_use"]
    assert set(use) == {str(cpu) for cpu in range(8)}


def test_bus_shows_names_that_explain_themselves(berth: Berth) -> None:
    berth.start()
    shown = berth.guest.run("busctl introspect org.berth.Node1 /org/berth/Node1").stdout
    for name in ("SetMode", "GetPlan", "Mode", "BestEffortCPUs", "Pinned", "GetManagedObjects"):
        assert re.search(rf"\.{name}\s", shown), shown


def test_bus_has_an_object_for_every_workload(berth: Berth) -> None:
    berth.start_unit("berth-test-be1.service")
    berth.start()
    berth.wait_for("berth-test-be1.service")
    path = "/org/berth/Node1/workload/system_2eslice_2fberth_2dtest_2dbe1_2eservice"
    assert path in berth.guest.run("busctl tree --list org.berth.Node1").stdout.split()
    shown = berth.guest.run(f"busctl introspect org.berth.Node1 {path}").stdout
    assert re.search(r'\.Id\s+property\s+s\s+"system.slice/berth-test-be1.service"', shown), shown
    assert berth.guest.run(f"busctl get-property org.berth.Node1 {path} org.berth.Node1.Workload Kind").stdout == 's "systemd-service"\n'
    berth.stop_unit("berth-test-be1.service")
    berth.guest.poll(lambda: path not in berth.guest.run("busctl tree --list org.berth.Node1").stdout.split(), 20,
                     what="the object to go")


def test_anybody_may_read(berth: Berth) -> None:
    berth.start()
    assert berth.guest.run("berthctl status", user="tester").returncode == 0
    assert berth.guest.run("berthctl list", user="tester").returncode == 0


def test_changes_by_an_unprivileged_user_are_refused(berth: Berth) -> None:
    berth.start_unit("berth-test-be1.service")
    berth.start()
    berth.wait_for("berth-test-be1.service")
    for command in (
        "berthctl mode enforce",
        "berthctl set system.slice/berth-test-be1.service class=latency-sensitive vcpus=2",
        "berthctl restore",
        "berthctl reload",
    ):
        refused = berth.guest.run(command, user="tester", check=False)
        assert refused.returncode == 3, (command, refused)
        assert len(refused.stderr.strip().splitlines()) == 1
    assert berth.json("status")["mode"] == "observe"
    assert berth.workloads()["system.slice/berth-test-be1.service"]["class"] == "best-effort"


def test_without_polkit_only_root_may_change(berth: Berth) -> None:
    berth.start()
    berth.guest.run("systemctl mask --runtime --now polkit.service")
    try:
        refused = berth.guest.run("berthctl mode enforce", user="tester", check=False)
        assert refused.returncode == 3, refused
        assert berth.guest.run("berthctl mode enforce").returncode == 0
    finally:
        berth.guest.run("systemctl unmask --runtime polkit.service")


def test_a_bus_that_never_answers_does_not_hold_up_the_start(berth: Berth) -> None:
    # systemd listens and starts, for who connects, a service that takes nothing from the socket.
    berth.guest.write_file("/run/systemd/system/berth-test-silent.socket", "[Socket]\nListenStream=/run/berth-test-silent\n")
    berth.guest.write_file("/run/systemd/system/berth-test-silent.service", "[Service]\nExecStart=sleep infinity\n")
    # Less than the 90 s after which a bus gives up a start, and enough for a slow machine.
    berth.add_unit_drop_in("[Service]\nEnvironment=DBUS_SYSTEM_BUS_ADDRESS=unix:path=/run/berth-test-silent\nTimeoutStartSec=60\n")
    berth.guest.run("systemctl start berth-test-silent.socket")
    try:
        berth.start(bus=False)
        assert berth.guest.run("systemctl is-active berthd.service").stdout.strip() == "active"
        berth.guest.poll(lambda: "did not answer" in berth.guest.run("journalctl -u berthd.service -b --no-pager").stdout, 20,
                         what="berthd to say that the bus does not answer")
    finally:
        berth.guest.run(
            "systemctl stop berth-test-silent.socket berth-test-silent.service; rm /run/systemd/system/berth-test-silent.*"
        )


def test_settings_of_a_workload_outlive_the_daemon(berth: Berth) -> None:
    berth.start_unit("berth-test-be1.service")
    berth.start()
    berth.wait_for("berth-test-be1.service")
    workload = "system.slice/berth-test-be1.service"
    berth.guest.run(f"berthctl set {workload} class=latency-sensitive vcpus=2")
    for action in ("systemctl restart berthd.service", "systemctl stop berthd.service && systemctl start berthd.service"):
        berth.guest.run(action)
        berth.guest.poll(lambda: berth.workloads().get(workload, {}).get("vcpus") == 2, 20, what=f"vcpus after {action}")


def test_a_workload_may_be_named_by_its_unit(berth: Berth) -> None:
    berth.start_unit("berth-test-be1.service")
    berth.start()
    berth.wait_for("berth-test-be1.service")
    said = berth.guest.run("berthctl set berth-test-be1 priority=3").stdout
    assert said.startswith("system.slice/berth-test-be1.service: priority=3"), said
    assert "system.slice/berth-test-be1.service" in berth.guest.run("berthctl explain berth-test-be1.service").stdout
    missing = berth.guest.run("berthctl set berth-test priority=3", check=False)
    assert missing.returncode == 1 and "no such workload" in missing.stderr, missing


ASK = "busctl --timeout=100 call org.berth.Node1 /org/berth/Node1 org.berth.Node1.Manager GetStatus"


def test_the_bus_starts_an_enabled_daemon_for_a_caller_that_wants_it(berth: Berth) -> None:
    berth.guest.run("systemctl enable berthd.service")
    try:
        berth.start()
        berth.stop()
        berth.guest.run(ASK, user="tester")
        assert berth.guest.run("systemctl is-active berthd.service").stdout.strip() == "active"
    finally:
        berth.guest.run("systemctl disable berthd.service")


def test_the_bus_starts_no_daemon_that_is_disabled_or_masked(berth: Berth) -> None:
    berth.start()
    berth.stop()
    berth.guest.run("systemctl disable berthd.service")
    assert berth.guest.run(ASK, check=False).returncode != 0
    assert berth.guest.run(ASK, user="tester", check=False).returncode != 0
    assert berth.guest.run("systemctl is-active berthd.service", check=False).stdout.strip() == "inactive"
    berth.guest.run("systemctl enable berthd.service && systemctl mask --runtime berthd.service")
    try:
        assert berth.guest.run(ASK, user="tester", check=False).returncode != 0
        assert berth.guest.run("systemctl is-active berthd.service", check=False).stdout.strip() == "inactive"
    finally:
        berth.guest.run("systemctl unmask --runtime berthd.service && systemctl disable berthd.service")


def test_looking_does_not_start_a_daemon_that_was_stopped(berth: Berth) -> None:
    berth.start()
    berth.stop()
    looked = berth.guest.run("berthctl status", check=False)
    assert looked.returncode == 4 and "systemctl start berthd" in looked.stderr
    assert berth.guest.run("systemctl is-active berthd.service", check=False).stdout.strip() == "inactive"


def test_log_level_is_set_over_the_bus(berth: Berth) -> None:
    berth.start()
    berth.guest.run("systemctl service-log-level berthd.service debug")
    assert berth.guest.run("systemctl service-log-level berthd.service").stdout.strip() == "debug"


def test_manual_pages_are_installed(berth: Berth) -> None:
    for page in ("8 berthd", "1 berthctl", "5 berth.toml", "5 org.berth.Node1", "7 berth"):
        assert berth.guest.run(f"man -w {page}").returncode == 0


def test_a_bad_configuration_is_refused_by_name_and_line(berth: Berth) -> None:
    berth.start()
    failed = berth.configure(extra="[interference]\nwindow_stepp = 2")
    assert failed.returncode != 0
    assert "50-test.toml:3:1" in failed.stderr and "window_step" in failed.stderr, failed
    assert berth.guest.run("systemctl is-active berthd.service").stdout.strip() == "active"
    assert "window_stepp" in berth.json("status")["config"]["error"]
    assert berth.guest.run("berthctl check-config", check=False).returncode == 2


def test_reload_takes_new_rules_without_restart(berth: Berth) -> None:
    berth.start_unit("berth-test-other.service")
    berth.start(rules="")
    pid = berth.pid()
    berth.configure(rules='[[workload]]\nmatch = "system.slice/berth-test-other.service"\nclass = "best-effort"')
    berth.wait_for("berth-test-other.service")
    assert berth.pid() == pid
