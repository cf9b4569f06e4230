"""Finds series by what a person calls them."""

import difflib

from .errors import UnknownSeries


class Series(tuple):
    """One index: (index_type, index_id, name)."""

    index_type = property(lambda self: self[0])
    index_id = property(lambda self: self[1])
    name = property(lambda self: self[2])

    def __str__(self):
        return f"{self.index_type}:{self.name}"


def find_series(wanted, known, index_type=None):
    """The series that `wanted` names: an id, a name (`BTC`, `BTC/USD`, `BLX`), or either with its type (`GWA:BTC`)."""
    text = str(wanted)
    prefix, separator, rest = text.partition(":")
    if separator and prefix.upper() in {series.index_type for series in known}:
        index_type, text = prefix.upper(), rest
    candidates = [series for series in known if index_type is None or series.index_type == index_type]
    for matches in (
        lambda series: series.index_id == text,
        lambda series: series.name == text,
        lambda series: series.name.lower() == text.lower(),
    ):
        found = [series for series in candidates if matches(series)]
        if len(found) == 1:
            return found[0]
        if found:
            if len({series.index_type for series in found}) == len(found):
                choice = " or ".join(str(series) for series in found)
            else:
                choice = "one of the ids " + ", ".join(series.index_id for series in found)
            raise UnknownSeries(f"{text} names {len(found)} series: write {choice}")
    raise UnknownSeries(_explain(text, candidates, bool(known)))


def _explain(text, candidates, has_series):
    if not has_series:
        return f"the warehouse has no series yet: {text} is unknown; run `mds-sync backfill` first"
    names = {series.name.lower(): series.name for series in candidates}
    close = difflib.get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"the warehouse has no series {text}: did you mean {', '.join(names[each] for each in close)}?"
    return f"the warehouse has no series {text}: `series()` lists those that it has"
