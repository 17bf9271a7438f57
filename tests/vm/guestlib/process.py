# SPDX-License-Identifier: Apache-2.0
"""Children that do not outlive whoever started them."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def dies_with_parent() -> Callable[[], None]:
    """For `preexec_fn`: the kernel kills the child when this process ends, however it ends."""
    parent = os.getpid()
    libc = ctypes.CDLL(None, use_errno=True)

    def in_child() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the request.
        if os.getppid() != parent:
            os._exit(1)

    return in_child
