"""Finds series by what a person calls them."""

import copy
import difflib
import re
from typing import NamedTuple

from .errors import MdsError, UnknownSeries


class Kind(NamedTuple):
    """The series of one relation: the columns that select one, those that describe it, which make id, name and exchange, and its figures."""

    keys: tuple
    labels: tuple
    describe: object
    default: str
    figures: tuple
    aliases: dict


_CHANGES = [f"{name}change_{days}" for name in ("", "price_", "volume_", "total_market_cap_") for days in ("24h", "7d", "30d")]
KINDS = {
    "index_ticks": Kind(("index_type", "index_id"), (), None, "price", ("price", "volume", "tick_volume"), {"last": "price"}),
    "exchange_ticks": Kind(
        ("exchange_id", "market_id"),
        ("exchange", "pair"),
        lambda of, id, exchange, pair: (f"{of}:{id}", f"{exchange}:{pair}", of),
        "last",
        ("last", "bid", "ask", "mid", "volume"),
        {"price": "last"},
    ),
    "derivative_ticks": Kind(
        ("contract_id", "derivative_type"),
        ("exchange", "exchange_name", "exchange_id"),
        lambda id, _, exchange, name, of: (f"{of or ''}:{id}", exchange and f"{exchange}:{name or id}", of or ""),
        "price",
        (
            *("price", "volume", "volume_usd", "open_interest", "open_interest_usd", "bid", "ask", "mid"),
            *("index_price", "mark_price", "funding_rate"),
        ),
        {"last": "price", "funding": "funding_rate"},
    ),
    "market_caps": Kind(
        ("asset_id",),
        ("symbol",),
        lambda id, symbol: (f"cap:{id}", f"cap:{symbol}", ""),
        "market_cap",
        (
            *("rank", "volume_rank", "price", "volume", "market_cap", "total_market_cap", "free_float_supply", "total_supply"),
            *_CHANGES,
        ),
        {},
    ),
}


class Series(tuple):
    """One index: (index_type, index_id, name)."""

    index_type = property(lambda self: self[0])
    index_id = property(lambda self: self[1])
    name = property(lambda self: self[2])
    #: The relation of its ticks, and the column that is read as their price.
    stream = "index_ticks"
    figure = "price"
    #: The series in whose price its own is.
    over = None

    def __str__(self):
        return f"{self.index_type}:{self.name}"

    @property
    def key(self):
        """The conditions that select its rows."""
        return [("index_type", "=", self.index_type), ("index_id", "=", self.index_id)]

    @property
    def ledger(self):
        """How the ledger knows it: the type and the ids, of which either counts."""
        return self.index_type, (self.index_id, self.index_id)

    def of(self, figure, over=None):
        """The same series, of which another figure is read, in the price of another one."""
        kind = KINDS[self.stream]
        column = kind.default if figure is None else kind.aliases.get(figure, figure)
        if column not in kind.figures:
            raise MdsError(f"{self.name} has no figure {figure}: give one of {', '.join(kind.figures)}")
        found = copy.copy(self)
        found.figure, found.over = column, over
        return found


class Ticker(Series):
    """A series of a snapshot stream: (stream, id, name)."""

    stream = property(lambda self: self[0])

    def __str__(self):
        return self.name

    @property
    def key(self):
        return [(column, "=", value) for column, value in zip(KINDS[self.stream].keys, self.ids)]

    @property
    def ledger(self):
        return "", (self.exchange_id, "")


def read_tickers(backend):
    """Every ticker of exchanges, contract and market capitalisation that has rows, with the times of its first and last row."""
    found = []
    for stream, kind in KINDS.items():
        if not kind.labels:
            continue
        for *values, first, last in backend.spans(stream, kind.keys, kind.labels):
            id, name, exchange = kind.describe(*values)
            if name:
                ticker = Ticker((stream, id, name))
                ticker.ids, ticker.exchange_id, ticker.span = tuple(values[: len(kind.keys)]), exchange, (first, last)
                found.append(ticker)
    return found


def names_ticker(name, known):
    """Whether only a ticker can have the name."""
    prefix, separator, _ = str(name).partition(":")
    return bool(separator) and prefix.upper() not in {"GWA", "MWA", "LX"} | {series.index_type for series in known}


def find_series(wanted, known, index_type=None, assets=dict, days=lambda series: None, tickers=list):
    """The series that `wanted` names: an id, a name (`BTC`, `BTC/USD`, `BLX`, `Bitcoin`), either with its type (`GWA:BTC`), or a
    name with the beginning of its first day (`LUNA@2022`). `assets()`: (name, status) by id; `days(series)`: first and last day;
    `tickers()`: what a name without its exchange may have meant."""
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
        ends = [ticker for ticker in tickers() if ticker.name.lower().endswith(f":{text.lower()}")]
        raise UnknownSeries(_explain(text, ends or candidates, bool(known)))
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
        lambda series: series.stream == "market_caps" and f"cap:{assets().get(series.ids[0], ('',))[0]}".lower() == text.lower(),
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
    # Of thousands, those that have one part of the name.
    parts = set(text.lower().split(":"))
    names = {name: names[name] for name in names if parts & set(name.split(":"))} or names
    close = difflib.get_close_matches(text.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"the warehouse has no series {text}: did you mean {', '.join(names[each] for each in close)}?"
    return f"the warehouse has no series {text}: `series()` lists those that it has"
