"""Finds series by what a person calls them."""

import difflib
import re

from .errors import UnknownSeries


class Series(tuple):
    """One index: (index_type, index_id, name)."""

    index_type = property(lambda self: self[0])
    index_id = property(lambda self: self[1])
    name = property(lambda self: self[2])

    def __str__(self):
        return f"{self.index_type}:{self.name}"


def find_series(wanted, known, index_type=None, assets=dict, days=lambda series: None):
    """The series that `wanted` names: an id, a name (`BTC`, `BTC/USD`, `BLX`, `Bitcoin`), either with its type (`GWA:BTC`), or a
    name with the beginning of its first day (`LUNA@2022`). `assets()`: (name, status) by id; `days(series)`: first and last day."""
    text = str(wanted)
    prefix, separator, rest = text.partition(":")
    if separator and prefix.upper() in {series.index_type for series in known}:
        index_type, text = prefix.upper(), rest
    candidates = [series for series in known if index_type is None or series.index_type == index_type]
    found = _matches(text, candidates, assets)
    since = re.fullmatch(r"(.+)@(\d{4}(?:-\d\d){0,2})", text)
    if not found and since:
        named = _matches(since[1], candidates, assets)
        found = [series for series in named if (days(series) or ("",))[0].startswith(since[2])]
    if not found:
        raise UnknownSeries(_explain(text, candidates, bool(known)))
    if len(found) > 1:
        choices = " or ".join(_describe(series, found, assets, days) for series in found)
        raise UnknownSeries(f"{text} names {len(found)} series: write {choices}")
    return found[0]


def _matches(text, candidates, assets):
    """What the strongest kind of match selects."""
    for matches in (
        lambda series: series.index_id == text,
        lambda series: series.name == text,
        lambda series: series.name.lower() == text.lower(),
        lambda series: series.index_type == "GWA" and assets().get(series.index_id, ("",))[0].lower() == text.lower(),
    ):
        found = [series for series in candidates if matches(series)]
        if found:
            return found
    return []


def _describe(series, found, assets, days):
    """A name that means this one only, and what it is: `LUNA@2022 (Terra, active, 2022-05-28 to 2026-11-16)`."""
    name, status = assets().get(series.index_id, ("", ""))
    span = days(series)
    known = ", ".join(text for text in (name, status, " to ".join(span) if span else "no rows") if text)
    return f"{_tell_apart(series, found, days)} ({known})"


def _tell_apart(series, found, days):
    others = [other for other in found if other is not series]
    if all(other.index_type != series.index_type for other in others):
        return str(series)
    span = days(series)
    for length in (4, 7, 10) if span else ():
        since = span[0][:length]
        if not any((days(other) or ("",))[0].startswith(since) for other in others):
            return f"{series.name}@{since}"
    return f"{series.index_type}:{series.index_id}"


def _explain(text, candidates, has_series):
    if not has_series:
        return f"the warehouse has no series yet: {text} is unknown; run `mds-sync backfill` first"
    names = {series.name.lower(): series.name for series in candidates}
    close = difflib.get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"the warehouse has no series {text}: did you mean {', '.join(names[each] for each in close)}?"
    return f"the warehouse has no series {text}: `series()` lists those that it has"
