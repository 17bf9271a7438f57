# SPDX-License-Identifier: Apache-2.0
"""A driver that misbehaves: fake_driver.py MODE FILE. Listens on the loopback, and writes each path that it is asked for to FILE.

Run under the name of Spark's own main class, by a program that calls itself java, it is a driver to whoever looks at
command lines.
"""

import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, FILE = sys.argv[1], sys.argv[2]
LIES = {
    "not-json": b"<html>It works!</html>",
    "wrong-types": b'[{"id": 7, "attempts": {"startTimeEpoch": "soon"}}]',
    "deep": b"[" * 1_000_000,
    "no-such-number": b'[{"id": "app-1", "attempts": [{"startTimeEpoch": 1e999, "completed": false}]}]',
}


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:  # noqa: N802, the base class's name
        with open(FILE, "a", encoding="utf-8") as asked:
            asked.write(self.path + "\n")
        if MODE == "silent":
            time.sleep(3600)
        if MODE == "forbidden":
            self.send_error(403)
        elif MODE == "redirect":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif MODE == "endless":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"[" + b" " * 65536)
        elif MODE == "drip":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b" ")
                time.sleep(0.2)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(LIES[MODE])))
            self.end_headers()
            self.wfile.write(LIES[MODE])


ThreadingHTTPServer(("127.0.0.1", 0), Handler).serve_forever()
