# SPDX-License-Identifier: Apache-2.0
"""A certificate authority for one test run, and certificates of it for 127.0.0.1 and for clients."""

from __future__ import annotations

import subprocess
from pathlib import Path


def openssl(*words: str) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


class Authority:
    def __init__(self, directory: Path, name: str = "ca") -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.certificate, self.key = directory / f"{name}.crt", directory / f"{name}.key"
        openssl(*"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2".split(), "-subj", f"/CN={name}", "-keyout", str(self.key), "-out", str(self.certificate))

    def issue(self, name: str, subject: str, days: int = 2) -> tuple[Path, Path]:
        """The files of a certificate and its key. It is good for 127.0.0.1, and for clients. With -1 days it has expired."""
        certificate, key, request = (self.directory / f"{name}.{end}" for end in ("crt", "key", "csr"))
        extensions = self.directory / "extensions"
        extensions.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n")
        openssl(*"req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes".split(), "-subj", subject, "-keyout", str(key), "-out", str(request))
        openssl(*"x509 -req -CAcreateserial".split(), "-days", str(days), "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self.key), "-extfile", str(extensions), "-out", str(certificate))
        return certificate, key
