# SPDX-License-Identifier: Apache-2.0
"""The guest tests that `quick` runs after a change of a module, or of the tests themselves."""

from __future__ import annotations

from pathlib import Path

from . import junit
from .green import Count
from .parts import HARNESS, Part, guest_tests, settings
from .tree import Inputs, Tree, facts

# By the directories of modules: which tests of tests/vm show fastest that a change broke something on a booted host.
PINS = "test_pinning.py::test_pins_are_exactly_what_the_plan_said"
STARTS = "test_service.py::test_is_ready_and_says_what_it_does"
STOPS = "test_restore.py::test_stop_puts_everything_back"
KILLED = "test_restore.py::test_kill_leaves_nothing_behind"
OBSERVES = "test_pinning.py::test_observe_writes_nothing"
TOPOLOGY = "test_service.py::test_topology_is_the_guest_s"
BUS = "test_service.py::test_bus_has_an_object_for_every_workload"
STATE = "test_oversell.py::test_state_is_there_for_everybody_and_never_half"
EVICTS = "test_evict.py::test_a_container_without_a_unit_gets_signals"
GROWS = "test_straggler.py::test_stopping_in_the_middle_gives_everything_back"
RELOADS = "test_service.py::test_reload_takes_new_rules_without_restart"
SPARK = "test_spark.py::test_the_sandboxed_daemon_asks_a_driver_and_spares_what_is_shared"
TABLE: dict[str, tuple[str, ...]] = {
    "model": (PINS, STATE),
    "os": (STARTS, PINS, KILLED),
    "topology": (TOPOLOGY, PINS),
    "cgroup": (PINS, STOPS, KILLED),
    "ebpf": (STARTS, PINS),
    "spark": (SPARK, "test_leaf.py::test_each_is_a_scope_of_its_own_and_goes_by_itself"),
    "policies": (PINS, OBSERVES),
    "policies/straggler": (GROWS,),
    "policies/oversell": (STATE,),
    "policies/quota": ("test_quota.py::test_a_quota_goes_back_with_the_vcpus",),
    "config": (RELOADS, "test_service.py::test_a_bad_configuration_is_refused_by_name_and_line"),
    "bus": (BUS,),
    "daemon": (STARTS, STOPS, RELOADS),
    "daemon/ledger": (PINS, KILLED),
    "daemon/observe": (PINS, OBSERVES),
    "daemon/learn": (PINS,),
    "daemon/admit": ("test_oversell.py::test_what_comes_takes_its_place",),
    "daemon/enforce": (PINS, STOPS, KILLED, EVICTS),
    "daemon/serve": (BUS, "test_service.py::test_changes_by_an_unprivileged_user_are_refused"),
    "daemon/report": (STATE, "test_service.py::test_metrics_are_served_on_this_host_alone"),
    "trace": ("test_progress.py::test_what_a_service_s_work_costs_is_recorded_and_fit",),
    "replay": ("test_progress.py::test_what_a_service_s_work_costs_is_recorded_and_fit",),
    "trial": ("test_trial.py::test_observe_is_compared_with_enforce",),
    "cli": (PINS, BUS, "test_service.py::test_a_workload_may_be_named_by_its_unit"),
    "integrations": (STATE,),
    "systemd": (STARTS, STOPS, "test_service.py::test_security_exposure_is_low"),
    "man": ("test_service.py::test_manual_pages_are_installed",),
}


def edited(tree: Tree) -> list[str]:
    """The files that run as a whole, as nothing says which of their tests the edit is about."""
    return tree.edited("tests/vm/test_*.py")


def tests(tree: Tree) -> dict[str, Inputs]:
    """By pytest's name of a test, or of an edited file. A test depends on the modules that name it, on its own file, and on what all guest
    tests use; an edited file, which is about the work at hand, on all that it depends on as part of `vm`."""
    whole = edited(tree)
    modules: dict[str, list[str]] = {}
    for module, named in TABLE.items():
        for test in named:
            if f"tests/vm/{test.split('::')[0]}" not in whole:
                modules.setdefault(f"tests/vm/{test}", []).append(module)
    common = tree.files("tests/vm/*", "!tests/vm/test_*", "!tests/vm/demo", "tests/spark/fake_driver.py", "*meson.build", "meson_options.txt", "!tests/*.build", *HARNESS)
    found = {
        test: common | tree.files(test.split("::")[0], *(f"{module}/*" for module in named)) | facts(f"quick {test}") | settings()
        for test, named in modules.items()
    }
    return found | {name: inputs for name, inputs in (guest_tests(tree) if whole else {}).items() if name in whole}


def results(report: Path) -> dict[str, Count]:
    return junit.by_guest_test(report) | junit.by_file(report)


GUESTS = Part("guests", "guest tests of the changed modules, and edited guest tests", tests, results=results)
