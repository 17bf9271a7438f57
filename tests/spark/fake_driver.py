# SPDX-License-Identifier: Apache-2.0
"""A driver that misbehaves, or, in the mode `honest`, has one small application to tell of: fake_driver.py MODE FILE [PORT].
Listens on the loopback, and writes each path that it is asked for to FILE.

Run under the name of Spark's own main class, by a program that calls itself java, it is a driver to whoever looks at
command lines.
"""

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE, FILE = sys.argv[1], sys.argv[2]
PORT = int(sys.argv[3]) if len(sys.argv) > 3 else 0
APPLICATIONS = "/api/v1/applications"
STAGE = {"status": "COMPLETE", "stageId": 0, "attemptId": 0, "numTasks": 1, "numCompletedIndices": 1, "shuffleWriteBytes": 0}
TASK = {"index": 0, "partitionId": 0, "status": "SUCCESS", "executorId": "0", "taskMetrics": {"executorRunTime": 1500}}
TRUTHS = {
    APPLICATIONS: [{"id": "app-fake", "attempts": [{"startTimeEpoch": time.time() * 1000, "completed": False}]}],
    f"{APPLICATIONS}/app-fake/environment": {"sparkProperties": []},
    f"{APPLICATIONS}/app-fake/storage/rdd": [],
    f"{APPLICATIONS}/app-fake/jobs": [{"stageIds": [0]}],
    f"{APPLICATIONS}/app-fake/stages": [STAGE],
    f"{APPLICATIONS}/app-fake/stages?status=active": [],
    f"{APPLICATIONS}/app-fake/stages/0/0/taskList?offset=0&length=256": [TASK],
}
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
        elif MODE == "honest" and self.path not in TRUTHS:
            self.send_error(404)
        else:
            body = json.dumps(TRUTHS[self.path]).encode() if MODE == "honest" else LIES[MODE]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
