#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A job of five parts that says how far it is: in the FILE that its rule names, or else to berthd itself (docs/progress.md).

usage: progress.py [FILE]
"""

import os
import subprocess
import sys
import time

MANAGER = ["org.berth.Node1", "/org/berth/Node1", "org.berth.Node1.Manager"]


def report_in_file(path: str, done: int, total: int) -> None:
    # Written aside and renamed: a reader finds the old figure or the new one, never a half.
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(f"{done}/{total}\n")
    os.replace(path + ".new", path)


def report_to_berthd(done: int, total: int) -> None:
    # No name: the workload that this process runs in. The work goes on even if no daemon answers.
    call = ["busctl", "--system", "--quiet", "call", *MANAGER, "ReportProgress", "sd", "", str(done / total)]
    subprocess.run(call, check=False)


def main() -> None:
    total = 5
    for done in range(1, total + 1):
        time.sleep(float(os.environ.get("SECONDS_A_PART", "1")))  # the work
        if len(sys.argv) > 1:
            report_in_file(sys.argv[1], done, total)
        else:
            report_to_berthd(done, total)


if __name__ == "__main__":
    main()
