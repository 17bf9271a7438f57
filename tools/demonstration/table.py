# SPDX-License-Identifier: Apache-2.0
"""The four lines at the end: what was asked, before, after, and the ratio with its spread over the rounds."""

from __future__ import annotations

import statistics
from typing import Any

from .load import WAYS

Row = dict[str, Any]


def rows(figures: dict[str, Any], problems: dict[str, str]) -> list[Row]:
    """One row each for latency, requests, the late job and the eviction, with the reason where a step was not shown."""
    makers = [("compare", latency), ("compare", requests), ("late-job", late_job), ("eviction", eviction)]
    names = ["latency of nginx", "requests served", "pace of a late job", "work lost by eviction"]
    found = []
    for (step, make), name in zip(makers, names):
        if step in figures:
            found.append({"name": name, **make(figures[step])})
        else:
            found.append({"name": name, "problem": problems.get(step) or "its step did not run"})
    return found


def row(asked: str, before: list[float], after: list[float], unit: str, better: str, helped: str, not_helped: str) -> Row:
    """`better` is "less" or "more"; pairs of before and after are one round each."""
    ratios = [late / early for early, late in zip(before, after)]
    median = statistics.median(ratios)
    good = [ratio < 1 if better == "less" else ratio > 1 for ratio in ratios]
    if all(good):
        verdict = helped
    else:
        verdict = f"{not_helped} in {good.count(False)} of {len(good)} rounds"
    return {
        "asked": asked, "before": statistics.median(before), "after": statistics.median(after), "unit": unit,
        "ratio": median, "least": min(ratios), "most": max(ratios), "rounds": len(ratios), "better": better,
        "helped": all(good), "verdict": verdict,
    }


def tail_of(figures: dict[str, Any]) -> str:
    """Of fewer requests the slowest hundredth is a single one."""
    return "p99" if min(found["requests"] for measured in figures["rounds"] for found in measured.values()) >= 100 else "p90"


def ratios(figures: dict[str, Any], way: str, figure: str) -> list[float]:
    """One of each round, against the load without berth."""
    return [measured[way][figure] / measured["unpinned"][figure] for measured in figures["rounds"]]


def price(figures: dict[str, Any]) -> list[str]:
    """What each of berth's ways gives nginx, and what the batch keeps."""
    tail = tail_of(figures)
    found = []
    for way in ("shared", "vcpus"):
        late, kept = (statistics.median(ratios(figures, way, figure)) for figure in (tail, "batch_cores"))
        cores = statistics.median(measured[way]["batch_cores"] for measured in figures["rounds"])
        found.append(f"{WAYS[way]}: {tail} of nginx x{number(late)}; the batch keeps {kept:.0%} of its CPU time, {cores:.1f} cores")
    return found


def latency(figures: dict[str, Any]) -> Row:
    free = [measured["unpinned"] for measured in figures["rounds"]]
    bound = [measured["shared"] for measured in figures["rounds"]]
    percentile = tail_of(figures)
    return row(f"nginx: {percentile}", [found[percentile] for found in free], [found[percentile] for found in bound],
               "ms", "less", "berth helped", "berth did NOT help")


def requests(figures: dict[str, Any]) -> Row:
    free = [measured["unpinned"]["rate"] for measured in figures["rounds"]]
    bound = [measured["shared"]["rate"] for measured in figures["rounds"]]
    return row("nginx: requests", free, bound, "/s", "more", "berth helped", "berth did NOT help")


def late_job(figures: dict[str, Any]) -> Row:
    asked, took = figures["asked_s"], figures["took_s"]
    outcome = f"took {took:.0f} s; {figures['forecast_s']:.0f} s at its first pace"
    if took > asked:
        outcome = f"LATE all the same: {outcome}"
    found = row(f"job: done in {asked:.0f} s", [pace * 100 for pace in figures["pace_before"]],
                [pace * 100 for pace in figures["pace_after"]], "%/s", "more", outcome, f"{outcome}; NOT faster")
    return {**found, "in_time": took <= asked}


def eviction(figures: dict[str, Any]) -> Row:
    before = [lost["dearer"] for lost in figures["rounds"]]
    after = [lost["cheaper"] for lost in figures["rounds"]]
    return row(f"service: {figures['bytes'] >> 20} MiB", before, after, "CPU s lost", "less",
               "the job with less to lose went", "the dearer job went")


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def lines(found: list[Row]) -> list[str]:
    """The table as text, a verdict at the end of each line."""
    cells = [["asked", "before", "after", "ratio (least to most)", ""]]
    for entry in found:
        if problem := entry.get("problem"):
            cells.append([entry["name"], "-", "-", "-", f"NOT SHOWN: {problem.splitlines()[0]}"])
            continue
        spread = f"x{number(entry['ratio'])} ({number(entry['least'])} to {number(entry['most'])})"
        cells.append([entry["asked"], f"{number(entry['before'])} {entry['unit']}",
                      f"{number(entry['after'])} {entry['unit']}", spread, entry["verdict"]])
    widths = [max(len(cell[column]) for cell in cells) for column in range(4)]
    return ["  ".join([*(text.ljust(width) for text, width in zip(cell, widths)), cell[4]]).rstrip() for cell in cells]
