# SPDX-License-Identifier: Apache-2.0
"""keep.py DROP END: an application that keeps what its first stage computed, and reads it in a second job. Then it says "ready"; it lets go of it once the
file DROP is there, runs for a while longer, and ends with the file END."""

import sys
import time
from pathlib import Path

from pyspark import SparkContext


def wait_for(file: str) -> None:
    while not Path(file).exists():
        time.sleep(0.1)


def main() -> None:
    context = SparkContext.getOrCreate()
    print(f"application {context.applicationId}", flush=True)
    print(f"web {context.uiWebUrl}", flush=True)
    kept = context.parallelize(range(100), 2).map(lambda value: value + 1).persist()
    kept.count()
    kept.map(lambda value: value * 2).sum()
    print("ready", flush=True)
    wait_for(sys.argv[1])
    kept.unpersist(blocking=True)
    context.parallelize(range(2), 2).foreach(lambda _: time.sleep(3))
    wait_for(sys.argv[2])
    context.stop()


if __name__ == "__main__":
    main()
