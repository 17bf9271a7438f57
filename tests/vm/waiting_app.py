# SPDX-License-Identifier: Apache-2.0
"""waiting_app.py DONE KEPT FILE: an application that waits for FILE between two of its jobs, for the tests.

The first job is over and done with: nobody needs what its two tasks have taken DONE seconds each for. Of the second, of two tasks of KEPT
seconds, executors keep what they computed. Then FILE.awaited is there, and with FILE the last job sums up what is kept, or computes it again.
In the end the application says the sum.
"""

import sys
import time
from collections.abc import Iterable
from pathlib import Path

from pyspark import SparkContext

ROWS = 10_000


def main() -> None:
    done, kept, file = float(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])
    context = SparkContext.getOrCreate()
    print(f"application {context.applicationId}", flush=True)

    def slowly(rows: Iterable[int]) -> Iterable[int]:
        time.sleep(kept)
        return rows

    context.parallelize(range(2), 2).foreach(lambda _: time.sleep(done))
    rows = context.parallelize(range(ROWS), 2).mapPartitions(slowly).persist()
    rows.count()
    Path(f"{file}.awaited").touch()
    while not file.exists():
        time.sleep(0.2)
    print(f"total {rows.sum()}", flush=True)
    context.stop()


if __name__ == "__main__":
    main()
