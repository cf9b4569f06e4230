"""Bars from ticks, and what the ledger proves about them. Integer arithmetic on microseconds, floats as stored."""

import numpy as np
import pandas as pd

PRICES = ("open", "high", "low", "close")
BAR_DIGITS = tuple(f"{name}_exact" for name in (*PRICES, "volume_24h"))


def _groups(ts, grid):
    """The starts of the bars, and the positions of the first and the last row of each. `ts` is ascending."""
    starts = grid.starts(ts)
    if len(ts) == 0:
        return starts, starts, starts
    first = np.flatnonzero(np.r_[True, starts[1:] != starts[:-1]])
    return starts[first], first, np.r_[first[1:], len(ts)] - 1


def _extremes(values, first, last, find):
    """The position of the first extreme of each bar. Equal prices may differ in their exact digits: the first one counts."""
    if len(first) == len(values):
        return first
    return np.array([a + find(values[a : z + 1]) for a, z in zip(first, last)], dtype="int64")


def bars_from_ticks(ticks, grid):
    """Bars from ticks in the order of time, by start. Columns of `ticks`: ts, price, volume, quality, and
    price_exact and volume_exact if the bars shall have exact columns."""
    ticks = ticks[ticks["price"].notna()]
    bars = {"ts": ticks["ts"], **{name: ticks["price"] for name in PRICES}, "volume_24h": ticks["volume"]}
    if "price_exact" in ticks:
        bars.update({f"{name}_exact": ticks["price_exact"] for name in PRICES}, volume_24h_exact=ticks["volume_exact"])
    return bars_from_bars(pd.DataFrame({**bars, "n_ticks": 1, "doubtful": ticks["quality"].notna()}), grid)


def bars_from_bars(bars, grid):
    """Longer bars from shorter ones in the order of time, by start. Columns of `bars`: ts, those of a bar, and `doubtful`."""
    starts, first, last = _groups(bars["ts"].to_numpy(dtype="int64"), grid)
    values = {name: bars[name].to_numpy(dtype="float64") for name in (*PRICES, "volume_24h")}
    at = {
        "open": first,
        "high": _extremes(values["high"], first, last, np.argmax),
        "low": _extremes(values["low"], first, last, np.argmin),
        "close": last,
        "volume_24h": last,
    }
    counts = np.r_[0, bars["n_ticks"].to_numpy(dtype="int64").cumsum()]
    doubtful = np.r_[0, bars["doubtful"].to_numpy(dtype=bool).cumsum()]
    columns = {name: values[name][rows] for name, rows in at.items()}
    columns["n_ticks"] = counts[last + 1] - counts[first]
    columns["doubtful"] = doubtful[last + 1] > doubtful[first]
    for name, rows in at.items():
        if f"{name}_exact" in bars:
            columns[f"{name}_exact"] = bars[f"{name}_exact"].to_numpy()[rows]
    return pd.DataFrame(columns, index=pd.Index(starts, name="ts", dtype="int64"))


def covered_micros(ranges, starts, ends):
    """How many microseconds of each [start, end) the ranges cover. `ranges`: (from, to), ascending and disjoint."""
    starts, ends = np.asarray(starts, dtype="int64"), np.asarray(ends, dtype="int64")
    if not ranges:
        return np.zeros(len(starts), dtype="int64")
    froms, tos = (np.array(side, dtype="int64") for side in zip(*ranges))
    before = np.r_[0, np.cumsum(tos - froms)]

    def covered_until(moments):
        at = np.searchsorted(froms, moments, side="right") - 1
        inside = np.minimum(moments, tos[np.maximum(at, 0)]) - froms[np.maximum(at, 0)]
        return np.where(at < 0, 0, before[np.maximum(at, 0)] + inside)

    return covered_until(ends) - covered_until(starts)


def uncovered(ranges, start, end):
    """The parts of [start, end) that the ranges do not cover."""
    missing, at = [], start
    for from_ts, to_ts in ranges:
        if from_ts > at:
            missing.append((at, min(from_ts, end)))
        at = max(at, to_ts)
        if at >= end:
            break
    if at < end:
        missing.append((at, end))
    return [(a, z) for a, z in missing if a < z]


def covers(ranges, starts, ends):
    """Whether one of the ranges, which are ascending and apart, contains each [start, end)."""
    if not ranges:
        return np.zeros(len(starts), dtype=bool)
    lowers, uppers = np.array(ranges, dtype="int64").T
    at = np.searchsorted(lowers, starts, side="right") - 1
    return (at >= 0) & (uppers[at] >= ends)


def judge(bars, ends, ranges, period, present):
    """Adds what the ledger proves: expected_ticks, coverage, is_complete, quality."""
    starts = bars.index.to_numpy(dtype="int64")
    length = ends - starts
    covered = covered_micros(ranges, starts, ends)
    expected = length // period
    bars["expected_ticks"] = expected
    bars["coverage"] = covered / length
    bars["is_complete"] = covered == length
    doubtful = bars.pop("doubtful").to_numpy(dtype=bool)
    quality = np.full(len(bars), None, dtype=object)
    quality[bars["n_ticks"].to_numpy() < expected] = "fewer ticks than expected"
    quality[doubtful] = "doubtful ticks"
    quality[covered < length] = "not proven whole"
    quality[ends > present] = "in progress"
    bars["quality"] = quality
    return bars
