# SPDX-License-Identifier: Apache-2.0
"""app.py ROUNDS TASKS hold|wait FILE: an application with shuffles, for the tests.

It groups and sums ROUNDS times, each in a stage of TASKS tasks whose output four others read. Then it says "ready", and
either holds: two of six tasks end, and the others go on until the application does; or waits for FILE. In the end it
says what it has summed up.
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

ROWS = 100_000
HOURS_MS = 36_000_000


def main() -> None:
    rounds, tasks, what, file = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
    spark = SparkSession.builder.getOrCreate()
    print(f"application {spark.sparkContext.applicationId}", flush=True)
    print(f"web {spark.sparkContext.uiWebUrl}", flush=True)
    total = 0
    for _ in range(rounds):
        groups = spark.range(0, ROWS, 1, tasks).selectExpr("id % 97 AS k", "id").groupBy("k").sum("id").collect()
        total += sum(group[1] for group in groups)
    print("ready", flush=True)
    if what == "hold":
        sleep = f"java_method('java.lang.Thread', 'sleep', CASE WHEN id < 2 THEN 20L ELSE {HOURS_MS}L END)"
        spark.range(0, 6, 1, 6).selectExpr(f"{sleep} AS slept").groupBy("slept").count().collect()
    while not file.exists():
        time.sleep(0.1)
    print(f"total {total}", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
