# SPDX-License-Identifier: Apache-2.0
"""join.py FILE: an application with a stage that reads two others. It says "ready" once it is through, and waits for FILE."""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    print(f"application {spark.sparkContext.applicationId}", flush=True)
    print(f"web {spark.sparkContext.uiWebUrl}", flush=True)
    left = spark.range(0, 1000, 1, 3).selectExpr("id % 10 AS k", "id")
    right = spark.range(0, 100, 1, 2).selectExpr("id AS k", "id AS other")
    rows = len(left.join(right, "k").collect())
    print(f"rows {rows}", flush=True)
    print("ready", flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.1)
    spark.stop()


if __name__ == "__main__":
    main()
