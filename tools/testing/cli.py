# SPDX-License-Identifier: Apache-2.0
"""tools/test [--all] [quick | properties | PART...]: installs what the tests need, builds, and runs them.

quick       what changed since the last green run: lint, unit tests, guest tests of the changed modules, and each file of
            guest tests that differs from upstream
properties  the property tests, with new seeds, for as long as --for says
PART        these parts alone; without one: unit, lint, host, package, reproducible, vm and spark

A part whose inputs did not change since a green run is not run again; --all runs it all the same. GTEST_FILTER, PYTEST_ADDOPTS and the like
choose among the tests of the parts; what they choose is run, and not kept as a green run. With CI=true all parts run but
threads, release and valgrind, some of them in a short form, and warnings of compilers are errors. Logs and reports go to build/test. The last
line counts.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time

from .green import Count, Green, default_directory
from .guests import GUESTS, edited
from .parts import KNOWN, PARTS, Part, short
from .run import ROOT, Run, counted, say
from .tree import Tree

# Minutes after which CI begins with no part that it may leave out: a run that passes CI's own limit says nothing at all. The caches
# are full in the next run.
LIMIT = 80
# Variables that make test programs run another selection than their results are kept for.
SELECT = {
    "GTEST_ALSO_RUN_DISABLED_TESTS",
    "GTEST_FILTER",
    "GTEST_RANDOM_SEED",
    "GTEST_REPEAT",
    "GTEST_SHARD_INDEX",
    "GTEST_SHUFFLE",
    "GTEST_TOTAL_SHARDS",
    "PYTEST_ADDOPTS",
    "PYTEST_PLUGINS",
    "RC_PARAMS",
}


def main(words: list[str]) -> int:
    contents = "parts:\n" + "".join(f"  {part.name:<13} {part.what}\n" for part in PARTS)
    parser = argparse.ArgumentParser(
        prog="tools/test", description=__doc__, epilog=contents, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="run what is unchanged since a green run, too")
    parser.add_argument("--for", dest="seconds", type=int, default=600, metavar="SECONDS", help="the time for properties (default: 600)")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(KNOWN))
    options = parser.parse_args(words)
    alone = {"quick", "properties"} & set(options.parts)
    if alone and len(options.parts) > 1:
        parser.error(f"{alone.pop()} runs alone")
    if unknown := [name for name in options.parts if name not in KNOWN and not alone]:
        parser.error(f"no such part: {' '.join(unknown)} (quick, properties, {', '.join(KNOWN)})")
    # The parts test what this run builds.
    os.environ.pop("BERTH_BUILD", None)
    chosen = [f"{name}={value}" for name, value in os.environ.items() if name in SELECT]
    if chosen:
        print(f"{' '.join(chosen)} chooses the tests, so no result is kept", flush=True)
    # A termination unwinds, so that no child stays.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.chdir(ROOT)
    with Run(Green(None if chosen else default_directory()), keeps=not options.all) as run:
        if options.parts == ["properties"]:
            return properties(run, options.seconds)
        follow_commit()
        if options.parts == ["quick"]:
            return quick(run)
        return everything(run, [part for part in PARTS if is_wanted(part, options.parts)])


def is_wanted(part: Part, named: list[str]) -> bool:
    if named:
        return part.name in named
    return part.when == "always" or (part.when == "ci" and short())


def follow_commit() -> None:
    """Random tests draw the same cases each time that a commit is tested."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False).stdout.strip()
    os.environ.setdefault("BERTH_SEED", str(int(commit[:12] or "1", 16)))
    print(f"random tests draw from BERTH_SEED={os.environ['BERTH_SEED']}", flush=True)


def everything(run: Run, parts: list[Part]) -> int:
    run.install(sorted({"build", "test"}.union(*(part.packages for part in parts))))
    names = [part.name for part in parts]
    run.build(beside=["prepare_guests"] if "vm" in names else [])
    for part in parts:
        if short() and part.minutes and run.minutes() + part.minutes > LIMIT:
            run.skip(part, f"as {run.minutes():.0f} of {LIMIT} minutes are over and it may take {part.minutes}")
            continue
        if part.name == "vm":
            # They leave nine tenths of two processors idle.
            run.beside([other for other in parts if other.waits])
        run.part(part)
    return run.finish()


def quick(run: Run) -> int:
    # An edited file may be one of those for which `vm` has packages.
    run.install(["build", "test", *(KNOWN["vm"].packages if edited(Tree(ROOT)) else ())])
    run.build(beside=["prepare_guest"])
    run.beside([GUESTS])
    run.part(KNOWN["lint"])
    run.part(KNOWN["unit"])
    if run.failed():
        # The verdict stands. The end of the run ends the guests.
        run.skip(GUESTS, "as another part failed")
    else:
        run.part(GUESTS)
    return run.finish()


def properties(run: Run, seconds: int) -> int:
    """Ends when the time is over, or a property fails."""
    run.install(["build", "test"])
    run.build()
    until, total, rounds = time.monotonic() + seconds, Count(), 0
    while not total.failed and (rounds == 0 or time.monotonic() < until):
        os.environ["BERTH_SEED"] = str(random.SystemRandom().getrandbits(63))
        say(f"property tests with BERTH_SEED={os.environ['BERTH_SEED']}")
        status, text = run.shell(["part_properties"], "properties")
        total += counted(text) or Count(failed=1)
        rounds += 1
    print(f"{rounds} rounds, each with a seed of its own")
    print(total)
    return 0 if total.green else 1
