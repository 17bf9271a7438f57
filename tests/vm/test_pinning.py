# SPDX-License-Identifier: Apache-2.0
"""What berthd does to the host in enforce mode, and what it must leave alone."""

import json

from berth import EVERY_TEST, LIGHT, Berth, cpus_of, run_command, unrestricted_as_unset

LS1, LS2, BE1, BE2 = (f"berth-test-{n}.service" for n in ("ls1", "ls2", "be1", "be2"))
ALL = set(range(8))


def directory(path: str) -> str:
    return path.rpartition("/")[0]


def within(attributes: dict[str, str], groups: set[str]) -> dict[str, str]:
    return {path: value for path, value in attributes.items() if directory(path) in groups}


def start_mixed_load(berth: Berth) -> None:
    berth.start_units(dict.fromkeys((LS1, LS2, BE1, BE2), LIGHT))


def test_pins_are_exactly_what_the_plan_said(berth: Berth) -> None:
    # The workloads are idle and have samples, so the next tick makes the same plan.
    berth.start_units(dict.fromkeys((LS1, LS2, BE1, BE2), "sleep infinity"))
    berth.start()
    berth.wait_for(LS1, LS2, BE1, BE2)
    berth.wait_ticks(10)
    snapshot = berth.guest.run("berthctl snapshot").stdout
    plan = json.loads(berth.guest.run(f"berthctl plan --snapshot - --json --config {EVERY_TEST}", input=snapshot).stdout)
    planned = {a["workload"]: a["cpus"] for a in plan["actions"] if a["kind"] == "pin"}
    assert set(planned) == {f"system.slice/{u}" for u in (LS1, LS2, BE1, BE2)}
    berth.guest.run("berthctl mode enforce")
    pins = {workload.removeprefix("system.slice/"): cpus for workload, cpus in planned.items()}
    berth.wait_pinned(*pins)
    berth.guest.poll(lambda: berth.cpusets(*pins) == pins, 30, what=f"the pins {pins}")


def test_a_service_that_restarts_keeps_its_pin(berth: Berth) -> None:
    berth.start_unit(LS1, LIGHT)
    berth.start("enforce")
    berth.wait_pinned(LS1)
    pin = berth.cpuset(LS1)
    berth.guest.run(f"systemctl restart {LS1}")
    berth.wait_ticks(10)
    assert berth.cpuset(LS1) == pin
    # A slow restart takes longer than a tick. berthd then sees a new instance, and pins it to the same vCPUs.
    assert {e["new"] for e in berth.logged("pin") if e["workload"] == f"system.slice/{LS1}"} == {pin}


def test_a_transient_unit_that_is_made_anew_under_its_name_is_pinned_anew(berth: Berth) -> None:
    berth.start_unit(LS1, LIGHT)
    # Far enough apart for both steps to fall between two ticks.
    berth.start("enforce", extra='sampling.interval = "2s"')
    berth.wait_pinned(LS1)
    berth.wait_ticks(1)
    berth.guest.run(f"systemctl stop {LS1} && {run_command(LS1, LIGHT)}")
    berth.wait_pinned(LS1)
    # Another program's change would be found after three ticks.
    berth.wait_ticks(4)
    assert berth.cpuset(LS1)
    assert not berth.journal("left alone")


def test_instances_own_their_vcpus_within_one_llc(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    first, second = map(cpus_of, berth.cpusets(LS1, LS2).values())
    assert len(first) == len(second) == 2
    assert not first & second
    for cpus in (first, second):
        assert cpus <= {0, 1, 2, 3} or cpus <= {4, 5, 6, 7}


def test_best_effort_is_kept_off_latency_sensitive_vcpus(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    pins = berth.cpusets(LS1, LS2, BE1, BE2)
    owned = cpus_of(pins[LS1]) | cpus_of(pins[LS2])
    # The tasks really are there, not only the setting.
    effective = berth.guest.run(f"cd /sys/fs/cgroup/system.slice; cat {BE1}/cpuset.cpus.effective {BE2}/cpuset.cpus.effective").stdout
    for cpus in (pins[BE1], pins[BE2], *effective.splitlines()):
        assert cpus_of(cpus) == ALL - owned
    assert len(effective.splitlines()) == 2


def test_observe_writes_nothing(berth: Berth) -> None:
    start_mixed_load(berth)
    before = berth.attributes()
    berth.start()
    berth.wait_for(LS1, LS2, BE1, BE2)
    berth.wait_ticks(5)
    after = berth.attributes()
    # Units that came or went meanwhile are nobody's change. In all others no attribute comes, goes, or has another value.
    lasting = {directory(path) for path in before} & {directory(path) for path in after}
    lasting = {group for group in lasting if not group.endswith("/berthd.service")}
    assert all(any(group.endswith(f"/{unit}") for group in lasting) for unit in (LS1, LS2, BE1, BE2))
    assert within(after, lasting) == within(before, lasting)
    assert berth.json("status")["undo_records"] == 0


def test_units_without_a_rule_stay_untouched(berth: Berth) -> None:
    berth.start_unit("berth-test-free.service", LIGHT, "AllowedCPUs=1-5", "CPUWeight=77")
    start_mixed_load(berth)
    before = berth.attributes()
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    after = berth.attributes()
    managed = (LS1, LS2, BE1, BE2, "berthd.service")
    lasting = {directory(path) for path in after}
    assert any(group.endswith("/berth-test-free.service") for group in lasting)
    for path, value in within(before, lasting).items():
        if not any(f"/{unit}/" in path for unit in managed):
            assert after.get(path) == value, path
    # A controller that systemd enables for a pinned sibling may add files; they must be unset.
    for path in after.keys() - before.keys():
        if path.endswith("/cpuset.cpus") and not any(f"/{unit}/" in path for unit in managed):
            assert after[path] == "", path


def test_a_departed_service_frees_its_vcpus(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    freed = cpus_of(berth.cpuset(LS2))
    berth.stop_unit(LS2)
    berth.guest.poll(lambda: freed <= cpus_of(berth.cpuset(BE1)), 30, what="the batch to get the vCPUs of the departed service")
    berth.start_unit("berth-test-ls3.service", LIGHT)
    berth.wait_pinned("berth-test-ls3.service")


def test_a_new_instance_is_placed_at_once_and_others_stay(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    stay = berth.cpusets(LS1, LS2)
    berth.start_unit("berth-test-ls3.service", LIGHT)
    berth.wait_pinned("berth-test-ls3.service")
    assert berth.cpusets(LS1, LS2) == stay
    third = cpus_of(berth.cpuset("berth-test-ls3.service"))
    berth.guest.poll(lambda: not third & cpus_of(berth.cpuset(BE1)), 30, what="the batch to leave the newcomer's vCPUs")


def test_daemon_reload_of_systemd_does_not_undo_pins(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    pins = berth.cpusets(LS1, LS2, BE1, BE2)
    berth.guest.run("systemctl daemon-reload; systemctl daemon-reload")
    berth.wait_ticks(4)
    assert berth.cpusets(LS1, LS2, BE1, BE2) == pins
    assert all(w["managed"] for w in berth.workloads().values())


def test_more_vcpus_than_exist_is_said_and_nothing_is_pinned(berth: Berth) -> None:
    berth.start_unit("berth-test-big.service", LIGHT)
    berth.start("enforce", rules='[[workload]]\nmatch = "system.slice/berth-test-big.service"\nclass = "latency-sensitive"\nvcpus = 9')
    berth.wait_for("berth-test-big.service")
    unplaceable = berth.json("plan")["findings"]["interference"]["unplaceable"]
    assert [u["workload"] for u in unplaceable] == ["system.slice/berth-test-big.service"]
    assert "9" in unplaceable[0]["reason"]
    assert berth.cpuset("berth-test-big.service") == ""


def test_an_administrator_s_own_affinity_is_respected(berth: Berth) -> None:
    berth.guest.run(f"{run_command(LS1, LIGHT, 'AllowedCPUs=5-7')} && {run_command(BE1, LIGHT)}")
    berth.start("enforce")
    berth.guest.poll(lambda: len(cpus_of(berth.cpuset(LS1))) == 2, 30, what="the pin")
    assert cpus_of(berth.cpuset(LS1)) <= {5, 6, 7}
    berth.stop()
    assert berth.cpuset(LS1) == "5-7"


def test_a_cpuset_that_the_slice_does_not_allow_is_not_given(berth: Berth) -> None:
    rule = '[[workload]]\nmatch = "bertht.slice/berth-test-ls1.service"\nclass = "latency-sensitive"\nvcpus = 2'
    berth.guest.run("systemctl set-property --runtime bertht.slice AllowedCPUs=6-7")
    try:
        berth.start_unit(LS1, LIGHT, "Slice=bertht.slice")
        berth.start("enforce", rules=rule)
        path = f"/sys/fs/cgroup/bertht.slice/{LS1}/cpuset.cpus"
        berth.guest.poll(lambda: berth.guest.run(f"cat {path}", check=False).stdout.strip() == "6-7", 30, what="a pin inside the slice")
    finally:
        berth.guest.run(f"systemctl stop {LS1} bertht.slice; systemctl revert bertht.slice", check=False)


def test_reserved_vcpus_are_never_given_out(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce", extra='[interference]\nreserved_cpus = "0,4"')
    berth.wait_pinned(LS1, LS2)
    assert not (cpus_of(berth.cpuset(LS1)) | cpus_of(berth.cpuset(LS2))) & {0, 4}


def test_best_effort_work_never_runs_on_reserved_vcpus(berth: Berth) -> None:
    spin = "python3 -c 'while True: pass'"
    berth.start_units({BE1: spin, BE2: spin})
    berth.start("enforce", extra='[interference]\nreserved_cpus = "0,4"')
    berth.wait_pinned(BE1, BE2)  # though no service runs
    assert set(berth.cpusets(BE1, BE2).values()) == {"1-3,5-7"}
    watch = f"cd /sys/fs/cgroup/system.slice; cat {BE1}/cpuset.cpus.effective {BE2}/cpuset.cpus.effective; "
    # The 39th field is the vCPU that a task ran on last.
    watch += f"for i in $(seq 20); do for task in $(cat {BE1}/cgroup.procs {BE2}/cgroup.procs); do cut -d ' ' -f 39 /proc/$task/stat; done; sleep 0.1; done"
    *effective, ran_on = berth.guest.run(f"{watch} | sort -u | paste -sd ,").stdout.splitlines()
    assert effective == ["1-3,5-7", "1-3,5-7"]
    assert cpus_of(ran_on) <= {1, 2, 3, 5, 6, 7}
    assert "not vCPUs 0,4, which are reserved" in berth.guest.run("berthctl plan").stdout
    assert berth.json("status")["reserved_cpus"] == "0,4"
    berth.configure("enforce", extra='[interference]\nreserved_cpus = "0,4"\nreserved = "shared"')
    berth.wait_for_cpuset(BE1, "")
    berth.configure("enforce", extra='[interference]\nreserved_cpus = "0-3"')
    berth.wait_for_cpuset(BE1, "4-7")
    berth.stop()
    assert set(berth.cpusets(BE1, BE2).values()) == {""}


def test_a_vcpu_taken_offline_is_left_and_its_owner_moved(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    gone = max(cpus_of(berth.cpuset(LS2)))
    berth.guest.run(f"echo 0 > /sys/devices/system/cpu/cpu{gone}/online")
    try:
        def moved() -> bool:
            cpus = cpus_of(berth.cpuset(LS2))
            return gone not in cpus and len(cpus) == 2

        berth.guest.poll(moved, 30, what="the instance to leave the offline vCPU")
        first, second = map(cpus_of, berth.cpusets(LS1, LS2).values())
        assert not first & second
    finally:
        berth.guest.run(f"echo 1 > /sys/devices/system/cpu/cpu{gone}/online")


def test_set_changes_a_workload_until_it_ends(berth: Berth) -> None:
    berth.start_unit(BE1, LIGHT)
    berth.start("enforce")
    berth.wait_for(BE1)
    berth.guest.run(f"berthctl set system.slice/{BE1} class=latency-sensitive vcpus=3")
    berth.guest.poll(lambda: len(cpus_of(berth.cpuset(BE1))) == 3, 30, what="the pin")
    berth.stop_unit(BE1)
    berth.start_unit(BE1, LIGHT)
    # Until berthd has seen the end of the former one.
    berth.guest.poll(
        lambda: berth.workloads().get(f"system.slice/{BE1}", {}).get("class") == "best-effort", 60, what=f"{BE1} to be of its rule's class"
    )


def test_two_rules_that_match_are_told(berth: Berth) -> None:
    rules = """
[[workload]]
match = "system.slice/berth-test-ls1.service"
class = "latency-sensitive"
vcpus = 2

[[workload]]
match = "system.slice/berth-test-*.service"
class = "best-effort"
"""
    berth.start_unit(LS1, LIGHT)
    berth.start(rules=rules)
    berth.wait_for(LS1)
    assert berth.workloads()[f"system.slice/{LS1}"]["class"] == "latency-sensitive"
    told = [line for line in berth.journal("50-test.toml:9").splitlines() if LS1 in line]
    assert len(told) == 1, told


def test_a_podman_container_is_pinned_by_its_scope(berth: Berth) -> None:
    rule = '[[workload]]\nmatch = "machine.slice/libpod-*.scope"\nclass = "latency-sensitive"\nservice = "box"\nvcpus = 2'
    berth.guest.run(
        "podman --cgroup-manager=systemd run --detach --name berth-test --network=none "
        "--rootfs /var/lib/berth-test/rootfs sleep 1000"
    )
    try:
        berth.start("enforce", rules=rule)
        # Without the scope of conmon, which watches the container and is no workload.
        find = "cat $(ls -d /sys/fs/cgroup/machine.slice/libpod-*.scope | grep -v conmon)/cpuset.cpus"
        berth.guest.poll(lambda: len(cpus_of(berth.guest.run(find, check=False).stdout)) == 2, 60, what="the container's pin")
        (workload,) = berth.workloads().values()
        assert workload["kind"] == "podman" and workload["service"] == "box"
        inside = berth.guest.run("podman exec berth-test cat /proc/1/status").stdout
        assert len(cpus_of(inside.split("Cpus_allowed_list:")[1].split()[0])) == 2
        berth.stop()
        assert unrestricted_as_unset(berth.guest.run(find).stdout.strip()) == ""
    finally:
        berth.guest.run("podman rm --force --time 0 berth-test", check=False)


def test_a_mark_of_root_makes_a_workload(berth: Berth) -> None:
    berth.start_unit("berth-test-marked.service", LIGHT)
    berth.guest.run(
        "setfattr -n user.berth.class -v best-effort /sys/fs/cgroup/system.slice/berth-test-marked.service"
    )
    berth.start(rules="")
    berth.wait_for("berth-test-marked.service")
    assert berth.workloads()["system.slice/berth-test-marked.service"]["class"] == "best-effort"


def test_every_action_is_a_structured_journal_entry(berth: Berth) -> None:
    start_mixed_load(berth)
    berth.start("enforce")
    berth.wait_pinned(LS1, LS2, BE1, BE2)
    decision = berth.pin_decision(LS1)
    entry = berth.journal_of(decision)[-1]
    assert entry["BERTH_WORKLOAD"] == f"system.slice/{LS1}"
    assert entry["BERTH_ATTRIBUTE"] == "cpuset.cpus"
    assert entry["BERTH_NEW"] == berth.cpuset(LS1)
    assert entry["BERTH_MODE"] == "enforce"
    assert len(entry["MESSAGE_ID"]) == 32
    explained = berth.guest.run(f"journalctl -b -x BERTH_DECISION={decision}").stdout
    assert "berthctl" in explained
