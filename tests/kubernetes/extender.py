# SPDX-License-Identifier: Apache-2.0
"""A running `berthctl serve`, and snapshots for it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from cluster import free_port
from waiting import PATIENCE_S

GIB = 1024**3


def snapshot(host: str, busy: int = 0, pods: list[str] | None = None) -> dict[str, Any]:
    """Eight vCPUs; `busy` best-effort workloads of a core each, and one for each UID of a pod."""
    cpus = [{"cpu": cpu, "core": cpu, "llc": 0, "numa": 0, "socket": 0} for cpu in range(8)]
    names = [f"batch/{number}" for number in range(busy)]
    for uid in pods or []:
        pod = f"kubepods-besteffort-pod{uid.replace('-', '_')}.slice"
        names.append(f"kubepods.slice/kubepods-besteffort.slice/{pod}/cri-containerd-0.scope")
    return {
        "schema": "berth.snapshot/1",
        "host": host,
        "time": time.time(),
        "topology": {"cpus": cpus},
        "memory": {"total_bytes": 64 * GIB},
        "workloads": [{"id": name, "class": "best-effort", "cpu_quota": 1} for name in sorted(names)],
    }


class Extender:
    def __init__(self, build: Path, *options: str, pause_s: int = 0) -> None:
        self.port = free_port()
        words = [str(build / "cli/berthctl"), "serve", "--listen", f"127.0.0.1:{self.port}", "--pause", str(pause_s), *options]
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        assert self.process.stdout is not None
        assert "listens on" in self.process.stdout.readline()
        self.url = f"http://127.0.0.1:{self.port}"

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            text = body if isinstance(body, (str, bytes)) else json.dumps(body)
            connection.request("POST", path, text, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def push(self, *documents: dict[str, Any]) -> None:
        for document in documents:
            status, answer = self.post("/snapshots", document)
            assert status == 200, answer

    def health(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        connection.request("GET", "/healthz")
        return dict(json.loads(connection.getresponse().read()))

    def log(self) -> str:
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode()

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)
