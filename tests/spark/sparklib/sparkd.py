# SPDX-License-Identifier: Apache-2.0
"""The socket of berth-sparkd, as systemd would serve it: one process without rights for each connection."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

NOBODY = 65534


class Sparkd:
    """Listens at `path` until it is stopped."""

    def __init__(self, build: Path) -> None:
        # Where every user may run it, whoever owns the build directory.
        self.place = Path(tempfile.mkdtemp(prefix="berth-sparkd-", dir="/tmp"))
        self.place.chmod(0o755)
        self.path = self.place / "socket"
        self.program = self.place / "berth-sparkd"
        shutil.copy(build / "spark" / "sparkd" / "berth-sparkd", self.program)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(str(self.path))
        self.listening.listen()
        self.processes: list[subprocess.Popen] = []
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                return
            with connection:
                self.processes.append(
                    subprocess.Popen([str(self.program)], stdin=connection, user=NOBODY, group=NOBODY, extra_groups=[], env={})
                )

    def stop(self) -> None:
        """Ends the processes that their connections did not end; an AssertionError where one failed."""
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join(timeout=60)
        try:
            for process in self.processes:
                assert process.wait(timeout=60) == 0, f"berth-sparkd: {process.returncode}"
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            shutil.rmtree(self.place)
