# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/test, and what the result of each depends on. parts.sh has what they run."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import junit
from .green import Count
from .tree import Inputs, Tree, facts

BERTHD = "daemon/berthd"
BERTHCTL = "cli/berthctl"
SPARKD = "spark/sparkd/berth-sparkd"
KUBE = "integrations/kubernetes/berth-kube"
SLURM = "integrations/slurm/berth-slurm"
FLEET = "tests/fleet/fleet-simulation"
# What runs a part.
HARNESS = ("tools/lib.sh", "tools/count-tests", "tools/testing/parts.*", "tests/checks.sh")
# The sources of the programs, and of the tests that are compiled with them.
SOURCES = ("*.cpp", "*.h", "*.c", "*.xml", "*meson.build", "meson_options.txt")
NOT_TESTS = tuple(f"!tests/{name}/*" for name in ("bench", "host", "kubernetes", "lint", "package", "slurm", "vm", "debian13"))
PACKAGED = ("*", "!tests/*", "!tools/*", "!.ci/*", "tests/bench/README.md", "tools/package", "tools/packages-*")
# Variables that decide nothing: where the cache is, and what random tests draw.
NOT_SETTINGS = ("BERTH_CACHE", "BERTH_SEED")


def short() -> bool:
    """With CI=true some parts run in a short form."""
    return os.environ.get("CI") == "true"


def settings() -> Inputs:
    """Variables that make tests longer, shorter or others."""
    return facts(*(f"{name}={value}" for name, value in os.environ.items() if name.startswith("BERTH_") and name not in NOT_SETTINGS))


@dataclass(frozen=True)
class Part:
    name: str
    what: str
    inputs: Callable[[Tree], Inputs | dict[str, Inputs]]
    """What its result depends on; of a part of items, that of each by name. parts.sh gets the names of those that are to run."""
    packages: tuple[str, ...] = ()
    """Lists tools/packages-LIST that it needs beside `build` and `test`."""
    when: str = "always"
    """It runs where no part is named: "always", with CI=true ("ci"), or not at all ("named")."""
    minutes: int = 0
    """With CI=true: what it may take with empty caches. A run that would pass CI's limit leaves it out. 0: it runs in any case."""
    results: Callable[[Path], dict[str, Count]] | None = None
    """Of a part of items: what build/test/NAME.xml says of each. Its items are green or not each by itself."""
    waits: bool = False
    """It mostly waits for other processes, so it runs beside the guests."""


def files_and_packages(*patterns: str, packages: tuple[str, ...] = ()) -> Callable[[Tree], Inputs]:
    def inputs(tree: Tree) -> Inputs:
        return tree.files(*patterns, *HARNESS) | tree.packages("build", "test", *packages) | facts(f"short {short()}") | settings()

    return inputs


def programs_and_tests(*programs: str, directory: str, packages: tuple[str, ...] = (), reads: tuple[str, ...] = ()) -> Callable[[Tree], Inputs]:
    """Of tests that run programs of the build on this machine."""

    def inputs(tree: Tree) -> Inputs:
        return (
            tree.built(*programs)
            | tree.files(f"{directory}/*", "tests/clusterlib/*", *reads, *HARNESS)
            | tree.packages("build", "test", *packages)
            | kernel()
            | settings()
        )

    return inputs


def kernel() -> Inputs:
    return facts(f"kernel {platform.release()} {platform.version()}")


def answer_of(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return "absent"
    return done.stdout + done.stderr


# Unit tests


def unit_tests(tree: Tree) -> dict[str, Inputs]:
    """By meson's name of the test."""
    made = {target["id"]: [name for path in target["filename"] if (name := tree.target_of(path))] for target in tree.described("targets")}
    # Without what these fetch, and without root, tests are skipped.
    fetched = [subprocess.run(f"tools/{name}", cwd=tree.root, capture_output=True, check=False).returncode for name in ("fetch-promtool", "fetch-hwloc-dumps")]
    common = (
        tree.packages("build", "test") | tree.files("tests/meson.build", *HARNESS) | kernel() | settings()
        | facts(f"fetched {fetched}", f"user {os.geteuid()}")
    )
    all_made = {name for names in made.values() for name in names}
    places = places_of_tests(tree)
    found = {}
    for test in tree.described("tests"):
        if "GTEST_FILTER" in os.environ and test["protocol"] != "gtest":
            # A script has no case that the filter names.
            continue
        own = tree.built(*sorted({name for target in test["depends"] for name in made.get(target, [])}))
        said = f"test {test['cmd']} {sorted(test['env'].items())}".replace(str(tree.root), "ROOT")
        configured = {tree.target_of(word) for word in test["cmd"] if word.startswith(f"{tree.build}/") and Path(word).is_file()} - all_made - {None}
        scripts = read_by_script(tree, test["cmd"])
        read = tree.files(*read_by_sources(tree, own, places), *scripts)
        if "*" in scripts:
            # A page may link to any file.
            read |= facts(f"names {tree.names}")
        found[test["name"]] = common | own | facts(said) | read | tree.made(*configured)
    return found


def places_of_tests(tree: Tree) -> dict[str, str]:
    """The macros of tests/paths.h that name something of the checkout, and its name."""
    return dict(re.findall(r'#define (\w+) "@source_root@/(\S+?)"', (tree.root / "tests/paths.h.in").read_text()))


def read_by_sources(tree: Tree, own: Inputs, places: dict[str, str]) -> list[str]:
    """What a test reads while it runs, as its sources name it."""
    found = []
    for name in tree.names_of(own):
        if name.startswith("tests/") and name.endswith((".cpp", ".h")):
            text = (tree.root / name).read_text()
            found += [f"{place}*" for macro, place in places.items() if re.search(rf"\b{macro}\b", text)]
    return found


def read_by_script(tree: Tree, command: list[str]) -> list[str]:
    """A test that is a script may read all but the sources and other tests. Its arguments may be files."""
    named = [os.path.relpath(word, tree.root) for word in command if word.startswith(f"{tree.root}/")]
    whole = any(name.startswith("tests/") and name in tree.names for name in named)
    return [*named, *(("*", "!tests/unit/*", "!tests/fuzz/*", *NOT_TESTS, "!*.cpp", "!*.h", "tests/*/README.md") if whole else ())]


# Guests

# What a file of guest tests reads beyond what is installed in a guest.
READ_BY_GUEST_TESTS = {
    "test_docs.py": ("README.md", "docs/*", "man/*", "tests/docs/*"),
    "test_gpus.py": ("tests/unit/topology/fake_nvml*",),
    "test_judge.py": ("tests/judge/*.cpp", "tests/judge/*.h"),
    "test_package.py": PACKAGED,
    "test_progress.py": ("docs/examples/progress/*",),
    "test_spark.py": ("tests/spark/fake_driver.py",),
    "test_spark_cluster.py": ("tests/spark/*",),
}

# These read manual pages or completions as they are installed.
READ_PAGES = ("test_docs.py", "test_package.py", "test_service.py")


def guest_tests(tree: Tree) -> dict[str, Inputs]:
    """By file, from the root."""
    pages = tree.installed()
    common = (
        tree.installed(pages=False)
        | tree.built("tests/host/test-host-limits")
        | tree.files("tests/vm/*", "!tests/vm/test_*", "!tests/vm/demo", "tests/load/*", "tests/clusterlib/*", *HARNESS)
        | tree.packages("build", "test", "spark", "package")
        | settings()
    )

    def own(path: Path) -> Inputs:
        return tree.files(str(path), *READ_BY_GUEST_TESTS.get(path.name, ())) | (pages if path.name in READ_PAGES else Inputs())

    return {name: common | own(Path(name)) for name in tree.matching("tests/vm/test_*.py")}


# Systems on this machine


def spark(tree: Tree) -> Inputs:
    return programs_and_tests(BERTHD, BERTHCTL, SPARKD, directory="tests/spark", packages=("spark",))(tree) | facts(answer_of("java", "-version"))


def kubernetes(tree: Tree) -> Inputs:
    programs = programs_and_tests(
        BERTHD, BERTHCTL, KUBE, FLEET, directory="tests/kubernetes", packages=("kubernetes",), reads=("integrations/*", "docs/clusters.md", "tests/fleet/*")
    )
    return programs(tree) | facts(answer_of("tests/kubernetes/programs"))


def tidy(tree: Tree) -> Inputs:
    return tree.built(BERTHD, BERTHCTL, SPARKD, KUBE, SLURM) | tree.files(".clang-tidy", "tests/lint/tidy", *HARNESS) | tree.packages("build", "test")


def debian13(tree: Tree) -> Inputs:
    tests = () if short() else ("tests/*", *NOT_TESTS)
    return files_and_packages(*PACKAGED, *tests, "tests/bench/README.md", "tests/debian13/*", packages=("package",))(tree)


# In the order in which they run.
PARTS = (
    Part("unit", "unit tests", unit_tests, results=junit.by_meson_test),
    Part("lint", "format, manual pages, scripts, words", files_and_packages("*")),
    Part(
        "host", "what this machine's own kernel can show",
        programs_and_tests(BERTHD, BERTHCTL, "tests/host/test-host-cgroup", "tests/host/test-host-ebpf", directory="tests/host"),
    ),
    Part("package", "Debian packages", files_and_packages(*PACKAGED, "tests/package/*", packages=("package",)), packages=("package",)),
    Part(
        "reproducible", "Debian packages: built twice with the same bytes",
        files_and_packages("debian/*", "*meson.build", "!tests/*", "meson_options.txt", "tools/package", "tests/package/*", packages=("package",)),
        packages=("package",),
    ),
    # One of the guests runs a Spark cluster; another one gets the package.
    Part("vm", "a booted guest: two sockets, SMT, systemd, every cgroup v2 controller", guest_tests, packages=("spark", "package"), results=junit.by_file),
    Part("spark", "a real Spark cluster on the loopback", spark, packages=("spark",), waits=True),
    Part(
        "slurm", "a real Slurm of three nodes, in namespaces of its own",
        programs_and_tests(BERTHD, BERTHCTL, SLURM, directory="tests/slurm", packages=("slurm",), reads=("integrations/slurm/*",)),
        packages=("slurm",), when="ci", waits=True,
    ),
    Part(
        "kubernetes", "a false API server, and a real Kubernetes where the cache has it", kubernetes, packages=("kubernetes",), when="ci", waits=True
    ),
    Part("bench", "each benchmark for a second", files_and_packages(*SOURCES, "!tests/fuzz/*", "tests/bench/*"), when="ci", minutes=5),
    Part("sanitized", "unit tests under AddressSanitizer and UBSan", files_and_packages(*SOURCES, *NOT_TESTS, "tests/data/*"), when="ci", minutes=12),
    Part("threads", "what has threads, under ThreadSanitizer", files_and_packages(*SOURCES, *NOT_TESTS, "tests/data/*"), when="named"),
    Part("fuzz", "parsers under libFuzzer", files_and_packages(*SOURCES, *NOT_TESTS, "tests/data/*", "tests/fuzz/*"), when="ci", minutes=15),
    Part("tidy", "static analysis by clang-tidy", tidy, when="ci", minutes=6),
    Part("release", "the programs as meson setup --buildtype=release builds them", files_and_packages(*SOURCES, "!tests/*"), when="named"),
    Part(
        "debian13", "package and unit tests in a Debian 13 tree",
        debian13, packages=("package",), when="ci", minutes=25,
    ),
    Part("valgrind", "the daemon's tests under valgrind", files_and_packages(*SOURCES, *NOT_TESTS, packages=("valgrind",)), packages=("valgrind",), when="named"),
)
KNOWN = {part.name: part for part in PARTS}
