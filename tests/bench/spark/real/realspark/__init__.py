# SPDX-License-Identifier: Apache-2.0
"""Real applications on a real cluster, of which some executors are killed in the middle."""
