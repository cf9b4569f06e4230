"""Rows of the warehouse as tables."""

import decimal
import functools

import pandas as pd

from .aggregate import PRICES
from .times import to_index

_MOMENTS = {"time", "first_seen", "last_moved", "listing", "expiration"}
_DECIMALS = ("price", "volume", "tick_volume")


def tick_columns(columns, exact):
    return [*columns, *(f"{name}_exact" for name in columns if exact and name in _DECIMALS)]


def labels_of(series, found):
    """What the columns are called: the names, or what the user wrote if two have the same name."""
    names = [each.name for each in found]
    return names if len(set(names)) == len(names) else [str(each) for each in found]


def regular(starts, layout, window):
    """Every start of a bar in the window, or between the first and the last bar."""
    if len(starts) == 0 and abs(window[0]) == 2**62:
        return starts
    first = window[0] if window[0] != -(2**62) else starts.min()
    last = window[1] if window[1] != 2**62 else (int(layout.ends([starts.max()])[0]) if len(starts) else first)
    return pd.Index(layout.between(first, last), name="ts")


def outline(starts, layout, window):
    first = window[0] if window[0] != -(2**62) else (int(starts.min()) if len(starts) else 0)
    last = window[1] if window[1] != 2**62 else (int(layout.ends([starts.max()])[0]) if len(starts) else 0)
    return first, last


def starts_of(parts):
    """The times at which any of the tables has a row."""
    return functools.reduce(lambda starts, part: starts.union(part.index), parts[1:], parts[0].index)


def align(parts):
    """The same tables, each with a row for every time."""
    starts = starts_of(parts)
    return [part.reindex(starts) for part in parts] if len(parts) > 1 else parts


def join(series, found, parts, tz=None):
    for part in parts:
        part.index = to_index(part.index, tz)
    if isinstance(series, str):
        return parts[0]
    joined = pd.concat(parts, axis=1, keys=labels_of(series, found), names=["name", None])
    return joined.swaplevel(axis=1)[list(dict.fromkeys(parts[0].columns))] if len(parts[0].columns) else joined


def to_numbers(frame):
    """A column without any value is not one of objects."""
    for column in frame.columns:
        if column in _NUMBERS:
            frame[column] = pd.to_numeric(frame[column])
    return frame


_NUMBERS = {"price", "volume", "tick_volume", "volume_24h", *PRICES}


def to_decimals(frame):
    for column in frame.columns:
        if str(column).endswith("_exact"):
            frame[column] = [
                None if value is None or value != value else decimal.Decimal(value) for value in frame[column]
            ]
    return frame


def plain_text(value):
    """A number, or its exact text, in plain notation: no exponent, no trailing zeros. What is missing is empty."""
    if value is None or value != value or isinstance(value, str):
        return value if isinstance(value, str) else ""
    value = value.item() if hasattr(value, "item") else value
    digits = format(value if isinstance(value, decimal.Decimal) else decimal.Decimal(repr(value)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def to_times(frame):
    """Moments as text become datetimes, unless one of them is out of pandas' range."""
    for column in frame.columns:
        name = str(column)
        if not (name in _MOMENTS or name.endswith(("_time", "_at"))):
            continue
        values = frame[column]
        if pd.api.types.is_datetime64_any_dtype(values):
            frame[column] = values if values.dt.tz is not None else values.dt.tz_localize("UTC")
            continue
        try:
            frame[column] = pd.to_datetime(values, utc=True)
        except (ValueError, TypeError):
            pass
    return frame
