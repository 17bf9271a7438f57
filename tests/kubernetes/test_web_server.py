# SPDX-License-Identifier: Apache-2.0
"""Snapshots of other hosts come by mutual TLS, through the web server that docs/clusters.md shows and by the command of the example unit."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from certificates import Authority
from cluster import free_port
from conftest import MANIFESTS, ROOT
from extender import Extender, snapshot
from waiting import PATIENCE_S, until


def replaced(text: str, changes: dict[str, str]) -> str:
    """Each key must be there, so that a change of the page or of the unit is noticed."""
    for old, new in changes.items():
        assert old in text, f"{old} is not in: {text}"
        text = text.replace(old, new)
    return text


def documented_server() -> str:
    page = (ROOT / "docs/clusters.md").read_text()
    found = re.findall(r"^```\n(server \{\n.*?^\}\n)```$", page, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, found
    return str(found[0])


def documented_send() -> str:
    """The command of berth-snapshot.service."""
    unit = (MANIFESTS / "berth-snapshot.service").read_text()
    words = shlex.split(next(line for line in unit.splitlines() if line.startswith("ExecStart=")).removeprefix("ExecStart="))
    assert words[:2] == ["/bin/sh", "-c"], words
    return words[2]


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass
class Front:
    """nginx before an extender whose snapshots come by a local socket alone."""

    extender: Extender
    authority: Authority
    port: int
    directory: Path

    def send(self, document: dict[str, object], certificate: tuple[Path, Path]) -> subprocess.CompletedProcess[str]:
        file = self.directory / "snapshot.json"
        file.write_text(json.dumps(document))
        changes = {
            "berthctl snapshot": f"cat {file}",
            "/etc/berth/kube/ca.crt": str(self.authority.certificate),
            "/etc/berth/kube/client.crt": str(certificate[0]),
            "/etc/berth/kube/client.key": str(certificate[1]),
            "10.0.0.1:8473": f"127.0.0.1:{self.port}",
        }
        return subprocess.run(["/bin/sh", "-c", replaced(documented_send(), changes)], capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture
def front(build: Path, tmp_path: Path) -> Iterator[Front]:
    authority = Authority(tmp_path / "pki")
    certificate, key = authority.issue("apiserver", "/CN=front")
    local = tmp_path / "snapshots"
    extender = Extender(build, "--snapshots", str(local))
    port = free_port()
    server = replaced(
        documented_server(),
        {
            "listen 8473": f"listen 127.0.0.1:{port}",
            "/etc/kubernetes/pki/apiserver.crt": str(certificate),
            "/etc/kubernetes/pki/apiserver.key": str(key),
            "/etc/kubernetes/pki/ca.crt": str(authority.certificate),
            "/run/berth-extender/snapshots": str(local),
        },
    )
    (tmp_path / "nginx.conf").write_text(f"user root;\npid {tmp_path}/pid;\ndaemon off;\nevents {{}}\nhttp {{\naccess_log off;\n{server}}}\n")
    words = ["nginx", "-p", str(tmp_path), "-e", str(tmp_path / "nginx.log"), "-c", str(tmp_path / "nginx.conf")]
    nginx = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        until(lambda: nginx.poll() is not None or accepts(port), "nginx")
        assert nginx.poll() is None, (tmp_path / "nginx.log").read_text()
        yield Front(extender, authority, port, tmp_path)
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait(PATIENCE_S)
        extender.stop(signal.SIGKILL)


def test_a_node_with_a_certificate_sends_its_snapshot(front: Front) -> None:
    done = front.send(snapshot("n1"), front.authority.issue("node", "/CN=n1"))
    assert done.returncode == 0 and json.loads(done.stdout) == {"taken": 1}, done
    assert front.extender.health()["hosts"] == 1


def test_without_a_good_certificate_no_snapshot_comes_through(front: Front) -> None:
    other = Authority(front.directory / "other").issue("stranger", "/CN=n1")
    old = front.authority.issue("old", "/CN=n1", days=-1)
    for certificate in (other, old):
        done = front.send(snapshot("n1"), certificate)
        assert done.returncode != 0 and "400" in done.stderr, done
    # Neither does one that comes by the loopback, past the web server.
    assert front.extender.post("/snapshots", snapshot("n1"))[0] == 404
    assert front.extender.health()["hosts"] == 0
