# SPDX-License-Identifier: Apache-2.0
"""A virtual machine in which berth's tests run: its image, its life and its shell."""

from .booted import Preparation
from .errors import CommandFailed, GuestError, GuestSilent
from .guest import PATIENCE, Guest
from .image import VARIANTS, Image, ensure_image, prune_images
from .machine import TOPOLOGIES, Topology

__all__ = [
    "PATIENCE",
    "TOPOLOGIES",
    "VARIANTS",
    "CommandFailed",
    "Guest",
    "GuestError",
    "GuestSilent",
    "Image",
    "Preparation",
    "Topology",
    "ensure_image",
    "prune_images",
]
