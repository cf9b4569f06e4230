"""Times and lengths as users write them. Times are integer microseconds since 1970 UTC, as `ts` in the warehouse."""

import datetime
import re

import pandas as pd

MICROS = 1_000_000
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_RELATIVE = re.compile(r"^(?:now)?\s*(?:-\s*(\d+)\s*([smhdw]))?$")
_LENGTH = re.compile(r"^(\d+)\s*([smhdw])$")


def to_micros(time, now=None):
    """A time as microseconds: `2026-03-01`, `2026-03-01 12:00`, ISO 8601, `now`, `-7d`, `now-7d`, a datetime, a Timestamp,
    or microseconds. A time without a zone is UTC."""
    if isinstance(time, bool) or time is None:
        raise TypeError(f"not a time: {time!r}")
    if isinstance(time, int) or type(time).__name__ in ("int64", "int32"):
        return int(time)
    if isinstance(time, str):
        relative = _RELATIVE.match(time.strip()) if time.strip() else None
        if relative:
            count, unit = relative.groups()
            back = int(count) * _UNITS[unit] * MICROS if count else 0
            return (now if now is not None else now_micros()) - back
    elif not isinstance(time, datetime.date):  # datetime and Timestamp are dates too
        raise TypeError(f"not a time: {time!r}")
    try:
        stamp = pd.Timestamp(time)
    except ValueError as error:
        raise ValueError(
            f"not a time: {time!r}; write 2026-03-01, 2026-03-01 12:00, now or -7d"
        ) from error
    if stamp is pd.NaT:
        raise ValueError(f"not a time: {time!r}")
    stamp = stamp.tz_localize("UTC") if stamp.tzinfo is None else stamp.tz_convert("UTC")
    return stamp.value // 1000


def now_micros():
    return pd.Timestamp.now(tz="UTC").value // 1000


def to_length(every):
    """The length of a bar in microseconds: `30s`, `10m`, `1h`, `1d`, `1w`, or a timedelta."""
    if isinstance(every, str):
        match = _LENGTH.match(every.strip())
        if not match:
            raise ValueError(f"not a length: {every!r}; write 30s, 10m, 1h or 1d")
        length = int(match.group(1)) * _UNITS[match.group(2)] * MICROS
    else:
        length = pd.Timedelta(every).value // 1000
    if length <= 0:
        raise ValueError(f"not a length: {every!r}; it must be longer than nothing")
    return length


def to_index(micros, tz=None):
    """Microseconds as a DatetimeIndex, in UTC or another zone."""
    index = pd.to_datetime(pd.Index(micros, dtype="int64"), unit="us", utc=True).rename("time")
    return index if tz is None else index.tz_convert(tz)


def to_text(micros):
    return pd.Timestamp(micros * 1000, tz="UTC").strftime("%Y-%m-%d %H:%M:%S")
