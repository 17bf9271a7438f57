# SPDX-License-Identifier: Apache-2.0
"""service.py FILE: a latency-sensitive service whose memory rises, until SIGTERM.

A request comes every 40 ms and takes 3 ms of CPU time. One after the other is served. FILE gets a line for each: the time at which it came
(CLOCK_MONOTONIC) and its latency, both in seconds. The latency counts from then, so it contains all waits.
"""

import signal
import sys
import time
from pathlib import Path

EVERY_S = 0.04
CPU_S = 0.003
RISE_BYTES = 400_000  # with each request: 10 MB/s
PAGE_BYTES = 4096


def main() -> None:
    over = []
    signal.signal(signal.SIGTERM, lambda *_: over.append(True))
    kept = []
    come = time.monotonic()
    with Path(sys.argv[1]).open("w", encoding="utf-8", buffering=1) as lines:
        while not over:
            time.sleep(max(0.0, come - time.monotonic()))
            end = time.thread_time() + CPU_S
            block = bytearray(RISE_BYTES)
            block[::PAGE_BYTES] = b"x" * len(block[::PAGE_BYTES])
            kept.append(block)
            while time.thread_time() < end:
                pass
            lines.write(f"{come} {time.monotonic() - come}\n")
            come += EVERY_S


if __name__ == "__main__":
    main()
