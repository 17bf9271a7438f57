# SPDX-License-Identifier: Apache-2.0
"""Real applications on a real cluster. Some of their executors are killed in the middle."""
