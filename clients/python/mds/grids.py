"""Where bars begin and end."""

import re

import numpy as np
import pandas as pd

from .times import localize, to_length, to_zone

HOUR = 3_600_000_000
DAY = 24 * HOUR
#: 1970-01-05 was a Monday: weeks begin on Mondays.
_FIRST_MONDAY = 4


def make_grid(every, tz=None, align=None):
    """Bars shorter than a day begin at multiples of their length since 1970-01-01 00:00 UTC; in a zone, or with `align="day"`, they count
    from the midnight of each day. Bars of days begin at midnight, of weeks on Monday. `tz` is the zone of these midnights."""
    if align not in (None, "day"):
        raise ValueError(f"align must be 'day' or left out, not {align!r}")
    length = to_length(every)
    is_week = isinstance(every, str) and every.strip().endswith("w")
    is_hours = isinstance(every, str) and re.search(r"[smh]$", every.strip()) is not None
    is_days = length % DAY == 0 and not is_hours
    # The offset of every zone is a multiple of a quarter of an hour.
    has_parts = not is_days and length <= DAY and (HOUR // 4) % length != 0
    zone = "UTC" if tz is None else to_zone(tz)
    if align is None and (zone == "UTC" or not (is_days or has_parts)):
        return Grid(length, _FIRST_MONDAY * DAY if is_week else 0)
    if not is_days and length > DAY:
        raise ValueError(f'align="day" needs bars of at most a day, not {every!r}')
    return DayGrid(length, _FIRST_MONDAY if is_week else 0, zone, is_days)


class Grid:
    """Bars of one length."""

    def __init__(self, length, origin):
        self._length, self._origin = length, origin

    def starts(self, ts):
        """The start of the bar of each timestamp."""
        ts = np.asarray(ts, dtype="int64")
        return (ts - self._origin) // self._length * self._length + self._origin

    def ends(self, starts):
        return np.asarray(starts, dtype="int64") + self._length

    def between(self, first, last):
        """Every start in [first, last), where a bar begins at `first`."""
        return np.arange(first, last, self._length, dtype="int64")

    def is_hourly(self, lower, upper):
        """Whether every bar of [lower, upper) consists of whole hours."""
        return self._length % HOUR == 0

    def next(self, moment):
        """The first start at or after a moment."""
        start = int(self.starts([moment])[0])
        return start if start == moment else int(self.ends([start])[0])


class DayGrid(Grid):
    """Bars that count from the midnights of a zone: whole days, or parts of a day."""

    def __init__(self, length, first_day, tz, is_days):
        super().__init__(length, 0)
        self._days, self._first_day, self._tz = (length // DAY if is_days else 0), first_day, tz

    def starts(self, ts):
        ts = np.asarray(ts, dtype="int64")
        days = self._day_of(ts)
        if self._days:
            return self._midnight(self._first(days))
        midnights = self._midnight(days)
        return midnights + (ts - midnights) // self._length * self._length

    def ends(self, starts):
        starts = np.asarray(starts, dtype="int64")
        days = self._day_of(starts)
        if self._days:
            return self._midnight(days + self._days)
        return np.minimum(starts + self._length, self._midnight(days + 1))

    def between(self, first, last):
        if first >= last:
            return np.array([], dtype="int64")
        days = np.arange(self._day_of([first])[0], self._day_of([last - 1])[0] + 2, dtype="int64")
        if self._days:
            found = self._midnight(np.unique(self._first(days)))
        else:
            midnights = self._midnight(days)
            found = np.concatenate([np.arange(a, z, self._length) for a, z in zip(midnights, midnights[1:])])
        return found[(found >= first) & (found < last)].astype("int64")

    def is_hourly(self, lower, upper):
        if not self._days and self._length % HOUR != 0:
            return False
        first, last = self._day_of([lower, upper])
        return bool((self._midnight(np.arange(first, last + 2)) % HOUR == 0).all())

    def _first(self, days):
        return (days - self._first_day) // self._days * self._days + self._first_day

    def _day_of(self, ts):
        local = pd.to_datetime(np.asarray(ts, dtype="int64"), unit="us", utc=True).tz_convert(self._tz).tz_localize(None)
        return local.to_numpy(dtype="datetime64[us]").astype("int64") // DAY

    def _midnight(self, days):
        """The first moment of each day: not always 00:00, where clocks change at midnight."""
        every, at = np.unique(np.asarray(days, dtype="int64"), return_inverse=True)
        local = pd.DatetimeIndex((every * DAY).astype("datetime64[us]"))
        found = localize(local, self._tz)
        return found.tz_convert("UTC").tz_localize(None).to_numpy(dtype="datetime64[us]").astype("int64")[at.reshape(-1)]
