# SPDX-License-Identifier: Apache-2.0
"""The demonstration, step by step; `tools/demo-scenario` runs it.

host        commands, cgroup files and waits whose length follows the measured speed of the host
load        the services of the demonstration, their rules, and the client that measures
runner      runs a step, reports what was seen where it fails, and goes on
pinning     steps: the host, the load, the plan, the load without berth, by its default, and on own vCPUs
late_job    step: a job that is late grows
eviction    step: a service needs memory that batch work holds
table       the four lines at the end
"""
