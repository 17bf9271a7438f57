# SPDX-License-Identifier: Apache-2.0
"""A false API server with one node object. It speaks TLS, and fails as a test tells it."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

from certificates import Authority


def merged(before: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeServer

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)
        # The handshake is done with the first byte that is read.
        self.begun = False

    def parse_request(self) -> bool:
        if not self.begun:
            self.begun = True
            self.server.resumed.append(bool(self.connection.session_reused))
            peer = dict(part[0] for part in (self.connection.getpeercert() or {}).get("subject", ()))
            self.server.clients.append(str(peer.get("commonName", "")))
        return super().parse_request()

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake = self.server
        with fake.lock:
            fake.requests.append((time.monotonic(), self.path))
            hang = fake.mode == "hang"
            if not hang:
                status, headers, answer = fake.answer(self.path, body, self.headers.get("Authorization", ""))
        if hang:
            # Until the client gives up, or the test ends.
            fake.ended.wait()
            self.close_connection = True
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        pass


class FakeServer(http.server.ThreadingHTTPServer):
    """`mode`: "good", "hang", "long", "html", or a status that is always answered."""

    daemon_threads = True

    def __init__(self, authority: Authority, node: str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        certificate, key = authority.issue("server", "/CN=kube-apiserver")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(authority.certificate)
        context.verify_mode = ssl.CERT_OPTIONAL
        # The handshake is that of the connection's own thread: a client that is silent holds up no other.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.lock, self.ended = threading.Lock(), threading.Event()
        self.mode: str | int = "good"
        self.retry_after: int | None = None
        self.token = "good-token"
        self.connections: list[socket.socket] = []
        self.requests: list[tuple[float, str]] = []
        # Of each connection: whether it resumed a TLS session, and the name in the client's certificate.
        self.resumed: list[bool] = []
        self.clients: list[str] = []
        self.name, self.version = node, 0
        self.node: dict[str, Any] = {}
        self.make_anew("u-1")
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}"

    def make_anew(self, uid: str) -> None:
        self.node = {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "uid": uid, "resourceVersion": "0"},
            "spec": {"taints": [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]},
            "status": {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}},
        }
        self.version = 0

    def answer(self, path: str, patch: dict[str, Any], authorization: str) -> tuple[int, dict[str, str], bytes]:
        headers = {"Content-Type": "application/json"}
        if isinstance(self.mode, int):
            if self.retry_after is not None:
                headers["Retry-After"] = str(self.retry_after)
            return self.mode, headers, json.dumps({"kind": "Status", "message": f"this is {self.mode}"}).encode()
        if self.mode == "long":
            return 200, headers, b" " * (8 << 20)
        if self.mode == "html":
            return 200, headers, b"<html>It works!</html>"
        if authorization != f"Bearer {self.token}":
            return 401, headers, b'{"kind":"Status","message":"Unauthorized"}'
        if not path.startswith(f"/api/v1/nodes/{self.name}"):
            return 404, headers, b'{"kind":"Status","message":"no such node"}'
        wanted = patch.get("metadata", {}).get("resourceVersion", str(self.version))
        if wanted != str(self.version):
            return 409, headers, b'{"kind":"Status","message":"the object has been modified"}'
        part = "status" if path.endswith("/status") else "spec"
        before = json.dumps(self.node[part])
        self.node[part] = merged(self.node[part], patch.get(part, {}))
        if json.dumps(self.node[part]) != before:
            self.version += 1
        self.node["metadata"]["resourceVersion"] = str(self.version)
        return 200, headers, json.dumps(self.node).encode()

    def amount(self, name: str = "be-cpu") -> str | None:
        with self.lock:
            return self.node["status"]["allocatable"].get(f"berth.org/{name}")

    def taint(self) -> str | None:
        with self.lock:
            own = [taint["value"] for taint in self.node["spec"]["taints"] if taint["key"] == "berth.org/no-schedule"]
            return own[0] if own else None

    def stop(self) -> None:
        self.ended.set()
        self.shutdown()
        self.server_close()
        # Kept ones, too.
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
