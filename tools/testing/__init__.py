# SPDX-License-Identifier: Apache-2.0
"""What tools/test does: the parts, what each depends on, and the green results that are kept."""
