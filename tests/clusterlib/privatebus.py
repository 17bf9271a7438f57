# SPDX-License-Identifier: Apache-2.0
"""A bus of its own for a berthd on a host of files, in place of the system's."""

from __future__ import annotations

import subprocess
from pathlib import Path

from waiting import until

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path={}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class PrivateBus:
    def __init__(self, directory: Path) -> None:
        """The path of a socket has 107 bytes at most."""
        self.socket = directory / "bus"
        configuration = directory / "bus.conf"
        configuration.write_text(CONFIGURATION.format(self.socket))
        words = ["dbus-daemon", "--config-file", str(configuration), "--nofork", "--nopidfile"]
        with (directory / "bus.log").open("ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        until(self.socket.exists, "bus")

    @property
    def address(self) -> str:
        return f"unix:path={self.socket}"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()
