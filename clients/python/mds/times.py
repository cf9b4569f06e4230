"""Times and lengths as users write them. Times are integer microseconds since 1970 UTC, as `ts` in the warehouse."""

import datetime
import functools
import re
import zoneinfo

import numpy as np
import pandas as pd

MICROS = 1_000_000
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_RELATIVE = re.compile(r"(?:now)?-(\d{1,9})([smhdw])", re.ASCII)
_ABSOLUTE = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[ T](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(?:(Z)|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?",
    re.IGNORECASE | re.ASCII,
)
_UTC = re.compile("utc|z|etc/utc|gmt", re.IGNORECASE)
_OFFSET = re.compile(r"([+-])([01]\d|2[0-3])(?::?([0-5]\d))?", re.ASCII)
_CLOCK = re.compile(r"\d\d:\d\d(:\d\d)?", re.ASCII)
_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = 86_400 * MICROS
_LENGTH = re.compile(r"^(\d+)\s*([smhdw])$")


def to_micros(time, now=None, tz=None):
    """A time as microseconds: a text (docs/commands.md, Times) such as `2026-03-01 12:00` or `-7d`, a datetime, a Timestamp, or
    microseconds. A time without a zone is one of the clocks of `tz`: of UTC if it is left out."""
    if isinstance(time, bool) or time is None:
        raise TypeError(f"not a time: {time!r}")
    if isinstance(time, int) or type(time).__name__ in ("int64", "int32"):
        return int(time)
    if isinstance(time, str):
        found = _parse(time, now, tz)
        if found is None:
            raise ValueError(f"not a time: {time!r}; write 2026-03-01, 2026-03-01 12:00, now or -7d")
        return found
    if not isinstance(time, datetime.date):  # datetime and Timestamp are dates too
        raise TypeError(f"not a time: {time!r}")
    stamp = pd.Timestamp(time)
    if stamp is pd.NaT:
        raise ValueError(f"not a time: {time!r}")
    if stamp.tzinfo is None:
        return moment_of(stamp.tz_localize("UTC").value // 1000, tz)
    return stamp.tz_convert("UTC").value // 1000


@functools.lru_cache
def to_zone(tz):
    """A zone as pandas takes it: a name in any case, `Z`, an offset such as `+05:30`, or a tzinfo."""
    if isinstance(tz, datetime.tzinfo):
        return "UTC" if _UTC.fullmatch(str(tz)) else tz
    if not isinstance(tz, str):
        raise TypeError(f"not a time zone: {tz!r}; give a name such as America/New_York")
    if _UTC.fullmatch(tz):
        return "UTC"
    offset = _OFFSET.fullmatch(tz)
    if offset:
        sign, hours, minutes = offset.groups(default="0")
        return datetime.timezone(datetime.timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1))
    for name in zoneinfo.available_timezones():
        if name.lower() == tz.lower():
            return name
    raise ValueError(f"there is no time zone {tz!r}; give a name such as America/New_York")


def moment_of(local, tz):
    """When the clocks of a zone show a time, given as if in UTC: the first of two, when they are set back; a time that is skipped
    counts by the offset before."""
    if tz is None:
        return local
    zone = to_zone(tz)
    zone = zoneinfo.ZoneInfo(zone) if isinstance(zone, str) else zone
    shown = _EPOCH + datetime.timedelta(microseconds=local)
    return (shown.replace(tzinfo=zone) - _EPOCH.replace(tzinfo=datetime.timezone.utc)) // datetime.timedelta(microseconds=1)


def to_moments(times, now=None, tz=None):
    """A column of times as an array of microseconds."""
    if not pd.api.types.is_datetime64_any_dtype(times):
        return np.array([to_micros(each, now, tz) for each in times], dtype="int64")
    if times.isna().any():
        raise ValueError("a row has no time")
    index = pd.DatetimeIndex(times)
    if index.tz is None and tz is not None:
        index = localize(index, tz)
    index = index if index.tz is None else index.tz_convert("UTC").tz_localize(None)
    return index.to_numpy(dtype="datetime64[us]").astype("int64")


def localize(index, tz):
    """Times of the clocks of a zone: the first of two; what is skipped counts by the offset before."""
    found = index.tz_localize(to_zone(tz), ambiguous=np.ones(len(index), dtype=bool), nonexistent="NaT")
    if not found.isna().any():
        return found
    local = index.to_numpy(dtype="datetime64[us]").astype("int64")
    moments = found.tz_convert("UTC").tz_localize(None).to_numpy(dtype="datetime64[us]").astype("int64")
    for at in np.flatnonzero(found.isna()):
        moments[at] = moment_of(int(local[at]), tz)
    return to_index(moments, tz)


def schedule(at, first, end, tz):
    """The moments in [first, end) at which the clocks of a zone show a time of day, `09:30`."""
    clock = _parse(f"1970-01-01 {at}", None, None) if isinstance(at, str) and _CLOCK.fullmatch(at) else None
    if clock is None or clock >= _DAY:
        raise ValueError(f"not a time of day: {at!r}; write 09:30")
    if first >= end:
        raise ValueError("the range is empty: its start is not before its end")
    # No zone is further than a day from UTC.
    days = range(first // _DAY - 1, end // _DAY + 2)
    return [moment for day in days if first <= (moment := moment_of(day * _DAY + clock, tz)) < end]


def _parse(text, now, tz):
    """The same texts as the program; None if it is no time."""
    relative = _RELATIVE.fullmatch(text)
    if relative or text == "now":
        back = int(relative.group(1)) * _UNITS[relative.group(2)] if relative else 0
        return (now if now is not None else now_micros()) - back * MICROS
    absolute = _ABSOLUTE.fullmatch(text)
    if not absolute:
        return None
    day, *clock, fraction, utc, sign, hours, minutes = absolute.groups(default="0")
    try:
        days = datetime.date.fromisoformat(day).toordinal() - datetime.date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    hour, minute, second = map(int, clock)
    micros = int(fraction[:6].ljust(6, "0"))
    if (hour, minute, second) == (23, 59, 60):  # a leap second is the end of its minute
        second, micros = 59, MICROS - 1
    if minute > 59 or second > 59 or (hour > 23 and (hour, minute, second, micros) != (24, 0, 0, 0)):
        return None
    offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)
    found = ((days * 24 + hour) * 3600 + (minute - offset) * 60 + second) * MICROS + micros
    return moment_of(found, tz) if (utc, sign) == ("0", "0") else found


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
    return index if tz is None else index.tz_convert(to_zone(tz))


def to_text(micros):
    return pd.Timestamp(micros * 1000, tz="UTC").strftime("%Y-%m-%d %H:%M:%S")


def to_stamp(micros):
    """As the columns `time` have it."""
    return f"{to_text(micros).replace(' ', 'T')}.{micros % 1_000_000:06d}Z"
