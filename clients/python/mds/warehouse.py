"""The reader: series, bars, ticks, values as of a time, and what the ledger proves about them."""

import functools
import warnings

import numpy as np
import pandas as pd

from . import citation
from .aggregate import BAR_DIGITS, PRICES, bars_from_bars, bars_from_ticks, covers, judge, uncovered
from .errors import Incomplete, UnknownSeries
from .frames import align, join, labels_of, outline, plain_text, regular, starts_of, tick_columns, to_decimals, to_numbers, to_times
from .grids import DAY as _DAY
from .grids import HOUR as _HOUR
from .grids import Grid, make_grid
from .names import KINDS, Series, find_series, names_ticker, read_tickers
from .times import now_micros, schedule, to_index, to_length, to_micros, to_moments, to_text

#: An export tells its time a little later than its ledger.
_HEAD_MICROS = 10 * 60 * 1_000_000
_LEDGER = ["stream", "index_type", "index_id", "name", "from_ts", "to_ts"]


def _with_past(method):
    """Adds `known_at`: a time, or a token of `cite()`. The answer is as it was known then."""

    @functools.wraps(method)
    def read(self, *args, known_at=None, **options):
        return method(self if known_at is None else self._at(known_at, options.get("tz")), *args, **options)

    return read


class Warehouse:
    """A warehouse, opened for reading with `mds.open`. Windows are [start, end); times without a zone are those of `tz`, where it is
    given, else of UTC.

    bars, ticks, ohlcv, returns, asof, coverage, missing, is_whole and sql take `known_at`: the answer as it was known at that time, or
    at the state that a token of `cite()` names."""

    def __init__(self, backend):
        self._backend = backend
        self._known = None
        self._known_tickers = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"<mds.Warehouse on {self._backend.kind}>"

    def close(self):
        self._backend.close()

    def series(self, index_type=None):
        """Every series that has ticks or daily bars: indices, tickers of exchanges, contracts and market caps, whose index_type is their
        stream. index_type, index_id, name, the times of its first and last tick, has_ticks, has_ohlcv."""
        keys = ["index_type", "index_id"]
        ticks, days = ({row[:2]: row[2:] for row in self._backend.spans(stream, keys)} for stream in ("index_ticks", "ohlcv"))
        rows = [(*series, *ticks.get(series[:2], (None, None)), series[:2] in days) for series in self._series()]
        if index_type is None or index_type in KINDS:
            rows += [(*each, *each.span, False) for each in read_tickers(self._backend)]
        rows = [row for row in rows if index_type in (None, row[0]) and (row[3] is not None or row[5])]
        frame = pd.DataFrame(rows, columns=[*keys, "name", "first", "last", "has_ohlcv"])
        frame.insert(5, "has_ticks", frame["first"].notna())
        for column in ("first", "last"):
            frame[column] = pd.to_datetime(frame[column].astype("Int64"), unit="us", utc=True)
        return frame.sort_values(["index_type", "name", "index_id"], ignore_index=True)

    @_with_past
    def bars(
        self,
        series,
        every,
        start=None,
        end=None,
        *,
        index_type=None,
        of=None,
        over=None,
        exact=False,
        grid=False,
        running=False,
        tz=None,
        align=None,
        require_complete=False,
    ):
        """Bars that begin in [start, end), from ticks: open, high, low, close, volume_24h, n_ticks, expected_ticks,
        coverage, is_complete, quality.

        For one name the columns are these; for a list they are (column, name), so that `bars(…)["close"]` has a column
        per series. A bar without ticks has no row, unless another series or `grid` needs one: then its prices are NaN.
        `exact`: adds open_exact … as Decimal. `running`: also the bar that is not over, whose close is the last price so far.
        `of`: another figure than the price, such as `mid` or `funding`. `over`: the prices in that of this series, each tick over its
        newest price by then. `tz`: the zone of the index, of times without one, and of the midnights from which bars count; `align="day"`: shorter bars count from those of UTC. `require_complete`: raises Incomplete if a
        bar is not whole."""
        layout = make_grid(every, tz, align)
        found = self._find(series, index_type, of, over)
        window = self._window(start, end, layout, tz)
        present = self._backend.present()
        is_hourly = layout.is_hourly(max(window[0], 0), min(window[1], present + _DAY))
        parts = [self._bars_of(each, layout, is_hourly, window, exact) for each in found]
        for each, part in zip(found, parts):
            if len(part) == 0 and len(self._backend.read(each.stream, ["ts"], each.key, limit=1)) == 0:
                warnings.warn(f"{each} has no ticks; ohlcv() reads the service's daily bars", stacklevel=2)
        starts = starts_of(parts)
        if grid:
            starts = regular(starts, layout, window)
        if not running:
            starts = starts[layout.ends(starts) <= present]
        ends = layout.ends(starts)
        for at, (each, part) in enumerate(zip(found, parts)):
            whole = part.reindex(starts)
            whole["n_ticks"] = whole["n_ticks"].fillna(0).astype("int64")
            whole["doubtful"] = whole["doubtful"].fillna(False).astype(bool)
            proven = self._proven(each)
            if each.over:
                others = self._proven(each.over)
                proven = [part for bounds in proven for part in uncovered(uncovered(others, *bounds), *bounds)]
            parts[at] = judge(whole, ends, proven, self._backend.refresh_micros(each), present)
        if require_complete:
            self._require(found, *outline(starts, layout, window))
        return join(series, found, parts, tz)

    @_with_past
    def ticks(self, series, start=None, end=None, *, columns=("price", "volume"), index_type=None, of=None, exact=False, tz=None):
        """The ticks of [start, end). Other columns: tick_volume, is_settled, source, quality. `exact`: adds price_exact …
        as Decimal. `tz`: the zone of the index, and of times without one. Columns as in `bars`."""
        found = self._find(series, index_type, of)
        names = tick_columns(columns, exact)
        parts = [self._ticks_of(each, names, *self._window(start, end, tz=tz)) for each in found]
        return join(series, found, align(parts), tz)

    @_with_past
    def iter_ticks(
        self, series, start=None, end=None, *, columns=("price", "volume"), index_type=None, of=None, exact=False, tz=None, rows=100_000
    ):
        """The ticks of one series as DataFrames of at most `rows` rows, one after the other, in constant memory. All are of the
        state at the first one, whatever the daemon writes meanwhile. Options as in `ticks`."""
        if not isinstance(series, str):
            raise TypeError("iter_ticks reads one series: give its name")
        found = self._find(series, index_type, of)
        names = tick_columns(columns, exact)
        lower, upper = self._window(start, end, tz=tz)
        backend = self._backend.pinned()
        try:
            while True:
                part = self._ticks_of(found[0], names, lower, upper, backend, rows)
                if len(part) == 0:
                    return
                lower = int(part.index[-1]) + 1
                is_last = len(part) < rows
                yield join(series, found, [part], tz)
                if is_last:
                    return
        finally:
            if backend is not self._backend:
                backend.close()

    @_with_past
    def ohlcv(self, series, start=None, end=None, *, index_type=None, exact=False, running=False):
        """The service's own daily bars of the days in [start, end), which are those of UTC. `running`: also of the day that is not
        over, which the service still changes. Columns as in `bars`."""
        found = self._find(series, index_type)
        names = [*PRICES, "volume", "vwap", "twap", "volume_usd"]
        names += [f"{name}_exact" for name in names if exact] + ["is_final", "quality"]
        lower, upper = self._window(start, end)
        where = [("day", ">=", to_text(lower)[:10] if lower % _DAY == 0 else to_text(lower + _DAY)[:10])] if start is not None else []
        where += [("day", "<", to_text(upper - 1 + _DAY)[:10])] if end is not None else []
        parts = []
        for each in found:
            frame = self._backend.read("ohlcv", ["day", *names], [*each.key, *where], order="day")
            frame.index = pd.Index([to_micros(str(day)[:10]) for day in frame.pop("day")], dtype="int64")
            frame["is_final"] = frame["is_final"].astype(bool)
            frame = frame if running else frame[frame.index + _DAY <= self._backend.present()].copy()
            parts.append(to_decimals(frame))
        return join(series, found, align(parts))

    @_with_past
    def returns(self, series, every="1h", start=None, end=None, *, log=False, index_type=None, of=None, tz=None, align=None):
        """Returns from close to close, simple or logarithmic. NaN unless both bars are whole and follow one another. `tz`, `align`:
        as in `bars`."""
        layout = make_grid(every, tz, align)
        lower, upper = self._window(start, end, layout, tz)
        earlier = int(layout.starts([lower - 1])[0]) if start is not None else None
        names = [series] if isinstance(series, str) else list(series)
        options = {"index_type": index_type, "of": of, "grid": True, "tz": tz, "align": align}
        bars = self.bars(names, every, earlier, upper if end is not None else None, **options)
        close = bars["close"].where(bars["is_complete"])
        change = close / close.shift(1)
        result = np.log(change) if log else change - 1
        result = result.iloc[1:] if start is not None else result
        return result[result.columns[0]].rename(names[0]) if isinstance(series, str) else result

    @_with_past
    def asof(self, time=None, series=None, *, at=None, start=None, end=None, index_type=None, of=None, max_age=None, tz=None):
        """What each series was worth at or before a time: time, price, volume and age of its newest tick with a price, by name. Without
        `series`: all. For a list of times: the prices, a row for each time and a column for each series; so too with `at` (`09:30`)
        for that time of each day in [start, end). `max_age` (`5m`): older ticks count as missing. `tz`: the zone of the times."""
        found = self._all(index_type) if series is None else self._find(series, index_type, of)
        limit = None if max_age is None else to_length(max_age)
        present = self._backend.present()
        if at is not None:
            if time is not None or start is None:
                raise ValueError("at needs the days instead of a time; give the first as start")
            last = present if end is None else to_micros(end, present, tz)
            time = schedule(at, to_micros(start, present, tz), last, tz)
        if not isinstance(time, str) and hasattr(time, "__iter__"):
            moments = [to_micros(each, present, tz) for each in time]
            prices = {
                label: [self._tick_before(each, at, limit)[1] for at in moments]
                for each, label in zip(found, labels_of(series, found))
            }
            return pd.DataFrame(prices, index=to_index(moments, tz), dtype="float64")
        at = to_micros(time, present, tz)
        rows = [self._tick_before(each, at, limit) for each in found]
        kept = [(label, row) for label, row in zip(labels_of(series, found), rows) if row[0] is not None or series is not None]
        frame = pd.DataFrame([row for _, row in kept], columns=["time", "price", "volume"])
        frame.index = pd.Index([label for label, _ in kept], name="name")
        stamps = frame["time"].astype("Int64")
        frame["age"] = pd.to_timedelta((at - stamps).astype("Int64"), unit="us")
        frame["time"] = pd.to_datetime(stamps, unit="us", utc=True).dt.tz_convert(tz or "UTC")
        return frame

    @_with_past
    def asof_join(self, frame, *, on="time", by="name", index_type=None, of=None, max_age=None, tz=None):
        """`frame`, trades for example, with what the series of each row was worth at its time: asof_price, asof_time and asof_age of the
        newest tick with a price, and asof_complete: whether the service has no later one. `on` is the column of times, `by` that of
        names. `max_age` (`5m`): older prices do not count. `tz`: the zone of times without one."""
        moments = to_moments(frame[on], self._backend.present(), tz)
        limit = 2**62 if max_age is None else to_length(max_age)
        prices, stamps = np.full(len(frame), np.nan), np.full(len(frame), -1, dtype="int64")
        complete = np.zeros(len(frame), dtype=bool)
        codes, names = pd.factorize(frame[by])
        for code, each in enumerate(self._find(list(names), index_type, of) if len(names) else []):
            rows = np.flatnonzero(codes == code)
            at = moments[rows]
            first = self._tick_before(each, int(at.min()), None)[0]
            ticks = self._raw_ticks(each, ["price"], int(at.min() if first is None else first), int(at.max()) + 1).dropna()
            ts = ticks["ts"].to_numpy(dtype="int64")
            found = np.searchsorted(ts, at, side="right") - 1
            known = found >= 0
            known[known] = at[known] - ts[found[known]] <= limit
            rows, at, found = rows[known], at[known], found[known]
            prices[rows], stamps[rows] = ticks["price"].to_numpy()[found], ts[found]
            complete[rows] = covers(self._proven(each), ts[found], at + 1)
        known = stamps >= 0
        joined = frame.copy()
        joined["asof_price"] = prices
        times = pd.Series(pd.to_datetime(pd.Series(stamps).where(known).astype("Int64"), unit="us", utc=True))
        joined["asof_time"] = times.dt.tz_convert(tz or "UTC").set_axis(frame.index)
        joined["asof_age"] = pd.to_timedelta(pd.Series(moments - stamps).where(known).astype("Int64"), unit="us").set_axis(frame.index)
        joined["asof_complete"] = complete
        return joined

    @_with_past
    def coverage(self, series=None, start=None, end=None, *, stream="index_ticks", index_type=None, tz=None):
        """The ranges that the ledger has settled: rows, empty or lost. `stream=None`: of all streams."""
        return self._ledger("coverage", ["proof", "reason"], series, start, end, stream, index_type, tz)

    def gaps(self, series=None, start=None, end=None, *, stream="index_ticks", index_type=None, tz=None):
        """The ranges that are not proven: open (will be fetched), unconfirmed (the service must only say once more that
        there is nothing else) or lost. `stream=None`: of all streams."""
        return self._ledger("gaps", ["state", "reason", "lost_at"], series, start, end, stream, index_type, tz)

    @_with_past
    def missing(self, series, start, end, *, stream="index_ticks", index_type=None, tz=None):
        """The parts of [start, end) that are not proven, with the reason; time that was never selected too."""
        return self._missing(self._find(series, index_type), stream, *self._window(start, end, tz=tz))

    @_with_past
    def is_whole(self, series, start, end, *, stream="index_ticks", index_type=None, tz=None):
        """Whether every microsecond of [start, end) is proven. For a list: one answer for each name."""
        found = self._find(series, index_type)
        window = self._window(start, end, tz=tz)
        answers = [not uncovered(self._proven(each, stream), *window) for each in found]
        return answers[0] if isinstance(series, str) else pd.Series(answers, index=labels_of(series, found))

    def cite(self, method=None, *args, known_at=None, **options):
        """A token that names the newest state: as `known_at` it reproduces every answer of now. With `bars`, `ticks` or `asof` and its
        arguments one line that cites the answer, with a SHA-256 of the exact values; `check` and `mds-sync check` recompute it."""
        if method is None:
            return self._backend.cite()
        state = self if known_at is None else self._at(known_at, options.get("tz"))
        return citation.write(state, *citation.ask(state, method, args, options))

    def check(self, line):
        """Recomputes what a line of `cite` cites, in whichever warehouse of the same service: equal or not, and the first `difference`
        with its `reason`, as far as the ledger knows it."""
        return citation.check(self, line)

    @_with_past
    def sql(self, query, params=None, *, times=True):
        """The result of any SQL. Parameters are written `:name` and given as a dict; times may be given as
        datetimes or Timestamps, and stand for their microseconds. `times`: columns that are moments (time, from_time,
        changed_at …) become datetimes."""
        values = {name: to_micros(value) if hasattr(value, "tzinfo") else value for name, value in (params or {}).items()}
        frame = self._backend.sql(query, values)
        return to_times(frame) if times else frame

    def _at(self, known_at, tz=None):
        is_token = isinstance(known_at, str) and "@" in known_at
        return self._on(self._backend.at(known_at if tz is None or is_token else to_micros(known_at, now_micros(), tz)))

    def _pinned(self):
        """The same state, which stays when another is shown."""
        return self._on(self._backend.pinned())

    def _on(self, backend):
        """The same series, read from a backend of another state."""
        other = Warehouse(backend)
        other._known, other._known_tickers = self._known, self._known_tickers
        return other

    def _series(self):
        if self._known is None:
            self._known = [Series(row) for row in self._backend.series()]
        return self._known

    def _all(self, index_type):
        known = [each for each in self._series() if index_type in (None, each.index_type)]
        return sorted(known, key=lambda each: (each.name, each.index_type))

    def _tickers(self):
        if self._known_tickers is None:
            self._known_tickers = read_tickers(self._backend)
        return self._known_tickers

    def _find(self, series, index_type, of=None, over=None):
        names = [series] if isinstance(series, str) else list(series)
        if not names:
            raise ValueError("name at least one series")
        assets, days = functools.cache(self._assets), functools.cache(self._days)

        def find(name):
            if names_ticker(name, self._series()):
                return find_series(name, self._tickers(), None, assets)
            return find_series(name, self._series(), index_type, assets, days, self._tickers)

        try:
            found = [find(name) for name in names]
        except UnknownSeries:
            # The daemon may have added it since.
            self._known = self._known_tickers = None
            found = [find(name) for name in names]
        divisor = None if over is None else self._find([over], index_type)[0]
        return [each.of(of, divisor) for each in found]

    def _assets(self):
        rows = self._backend.read("assets", ["id", "name", "status"])
        return {id: (name or "", (status or "").lower()) for id, name, status in rows.itertuples(index=False)}

    def _days(self, series):
        """The first and the last day that has rows; None if there is none."""
        found = []
        for relation, column in (("index_ticks", "ts"), ("ohlcv", "day")):
            for descending in (False, True):
                rows = self._backend.read(
                    relation, [column], series.key, order=column, descending=descending, limit=1
                )
                found += [(to_text(int(value)) if column == "ts" else str(value))[:10] for value in rows[column]]
        return (min(found), max(found)) if found else None

    def _window(self, start, end, layout=Grid(1, 0), tz=None):
        """The bounds in microseconds, moved up to the starts of bars."""
        present = self._backend.present()
        lower = -(2**62) if start is None else layout.next(to_micros(start, present, tz))
        upper = 2**62 if end is None else layout.next(to_micros(end, present, tz))
        return lower, upper

    def _ticks_of(self, series, columns, lower, upper, backend=None, limit=None):
        part = self._raw_ticks(series, columns, lower, upper, backend, limit).set_index("ts")
        if "is_settled" in part:
            part["is_settled"] = part["is_settled"].astype(bool)
        return to_decimals(part)

    def _raw_ticks(self, series, columns, lower, upper, backend=None, limit=None):
        own = self._read_ticks(series, columns, [("ts", ">=", lower), ("ts", "<", upper)], backend=backend, limit=limit)
        if series.over is None:
            return own
        first = self._tick_before(series.over, lower, None)[0]
        others = self._raw_ticks(series.over, ["price", "quality"], lower if first is None else int(first), upper)
        others = others[others["price"].notna()]
        at = np.searchsorted(others["ts"].to_numpy(dtype="int64"), own["ts"].to_numpy(dtype="int64"), side="right") - 1
        newest = others.iloc[np.maximum(at, 0)] if len(others) else others.reindex(range(len(own)))
        own["price"] = (own["price"] / newest["price"].replace(0, np.nan).to_numpy(dtype="float64")).where(at >= 0)
        own["quality"] = own["quality"].where(own["quality"].notna(), newest["quality"].to_numpy())
        own["volume"] = np.nan
        if "price_exact" in own:
            own["price_exact"] = own["price"].map(plain_text).where(own["price"].notna(), None)
            own["volume_exact"] = None
        return own

    def _read_ticks(self, series, columns, where, descending=False, limit=None, backend=None):
        """The columns of ticks, whatever their relation calls them."""
        backend = backend or self._backend
        where = [*series.key, *where]
        if series.stream == "index_ticks" and series.figure == "price":
            return to_numbers(backend.read("index_ticks", ["ts", *columns], where, order="ts", descending=descending, limit=limit))
        parts = ["bid", "ask"] if series.figure == "mid" else [series.figure]
        others = [*KINDS[series.stream].figures, "quality", *(["source"] if series.stream in ("index_ticks", "exchange_ticks") else [])]
        stored = {}
        for name in columns:
            base, exact, _ = name.partition("_exact")
            if base == "price":
                stored[name] = [each if each.endswith("rank") or len(parts) > 1 else each + exact for each in parts]
            elif base in others:
                stored[name] = [name]
        names = list(dict.fromkeys(["ts", *(each for all in stored.values() for each in all)]))
        found = backend.read(series.stream, names, where, order="ts", descending=descending, limit=limit)
        frame = pd.DataFrame({"ts": found["ts"]})
        for name in columns:
            if name == "is_settled":
                stamps = frame["ts"].to_numpy(dtype="int64")
                frame[name] = covers(self._proven(series), stamps, stamps + 1)
            elif name not in stored:
                frame[name] = np.nan
            elif len(stored[name]) == 2:
                middle = (pd.to_numeric(found["bid"]) + pd.to_numeric(found["ask"])) / 2
                frame[name] = middle.map(plain_text).where(middle.notna(), None) if name.endswith("_exact") else middle
            else:
                frame[name] = found[stored[name][0]]
        return to_numbers(frame)

    def _bars_of(self, series, layout, is_hourly, window, exact):
        is_kept = series.stream == "index_ticks" and series.figure == "price" and series.over is None
        if self._backend.has_bars and is_hourly and is_kept:
            columns = ["ts", *PRICES, "volume_24h", "n_ticks", "quality", *(BAR_DIGITS if exact else ())]
            where = [*series.key, ("ts", ">=", window[0]), ("ts", "<", window[1])]
            hours = to_numbers(self._backend.read("bars_1h", columns, where, order="ts"))
            hours["doubtful"] = hours.pop("quality") == "doubtful ticks"
            hours = self._with_stale(series, hours, window, exact)
            return to_decimals(bars_from_bars(hours, layout))
        return to_decimals(self._bars_from_ticks(series, layout, window, exact))

    def _bars_from_ticks(self, series, layout, window, exact):
        columns = ["price", "volume", "quality", *(["price_exact", "volume_exact"] if exact else [])]
        return bars_from_ticks(self._raw_ticks(series, columns, *window), layout)

    def _with_stale(self, series, hours, window, exact):
        """Adds the hours that must be computed from their ticks."""
        stale = self._backend.stale_hours(series, *window)
        runs = np.split(np.array(stale, dtype="int64"), np.flatnonzero(np.diff(stale) != _HOUR) + 1) if stale else []
        windows = [(int(run[0]), int(run[-1]) + _HOUR) for run in runs]
        more = [self._bars_from_ticks(series, Grid(_HOUR, 0), window, exact).reset_index() for window in windows]
        found = [part for part in (hours, *more) if len(part)]
        return pd.concat(found, ignore_index=True).sort_values("ts", ignore_index=True) if len(found) > 1 else (found or [hours])[0]

    def _tick_before(self, series, at, limit, columns=("price", "volume")):
        figures = ["bid", "ask"] if series.figure == "mid" else [series.figure]
        where = [("ts", "<=", at), *((figure, "<>", None) for figure in figures)]
        # Only the rows of an index are found by their time at once.
        spans = [_HOUR, _DAY] if series.stream != "index_ticks" else []
        for span in [*(span for span in spans if limit is None or span < limit), limit]:
            bound = [] if span is None else [("ts", ">=", at - span)]
            found = self._read_ticks(series, list(columns), where + bound, descending=True, limit=1)
            if len(found):
                return tuple(found.iloc[0])
        return (None, np.nan, np.nan)

    def _ledger_rows(self, relation, columns, series, stream=None, where=()):
        """What the ledger says of a series; of a ticker, of its exchange, or of all. `stream`: None for all of the series."""
        kind, ids = series.ledger
        if kind:
            of_stream = [] if stream is None else [("stream", "=", stream)]
            return self._backend.read(relation, columns, [*where, *of_stream, *series.key])
        names = list(dict.fromkeys([*columns, "index_type", "index_id"]))
        rows = self._backend.read(relation, names, [*where, ("stream", "=", series.stream)])
        return rows[rows["index_type"].isna() & rows["index_id"].fillna("").isin(ids)][list(columns)]

    def _proven(self, series, stream="index_ticks"):
        """The bounds of every covered range, ascending and apart."""
        rows = self._ledger_rows("coverage", ["from_ts", "to_ts"], series, stream, [("proof", "<>", "lost")])
        merged = []
        for lower, upper in rows.sort_values("from_ts").astype("int64").itertuples(index=False):
            if merged and lower <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], upper))
            else:
                merged.append((lower, upper))
        return merged

    def _missing(self, found, stream, start, end):
        rows = []
        present = self._backend.present()
        divisors = {each.over: None for each in found if each.over}
        for each in [*found, *divisors]:
            known = self._ledger_rows("gaps", ["from_ts", "to_ts", "state", "reason"], each, stream)
            for lower, upper in uncovered(self._proven(each, stream), start, end):
                own = known[(known.from_ts < upper) & (known.to_ts >= lower)].sort_values("from_ts")
                # The ledger may have been read a moment before the present: a head at its end goes on until now.
                own = [(int(row.from_ts), int(row.to_ts), row.state, row.reason) for row in own.itertuples()]
                if own and own[-1][2] != "lost" and 0 < min(upper, present) - own[-1][1] < _HEAD_MICROS:
                    own[-1] = (own[-1][0], min(upper, present), *own[-1][2:])
                # Of a ticker there may be two subscriptions, which lack the same.
                parts, at = [], lower
                for a, z, *why in own:
                    if max(a, at) < min(z, upper):
                        parts.append((max(a, at), min(z, upper), *why))
                        at = min(z, upper)
                rest = uncovered([(a, z) for a, z, *_ in parts], lower, upper)
                parts += [(a, min(z, present), *self._backend.unproven(each)) for a, z in rest if a < present]
                parts += [(max(a, present), z, "open", "in the future") for a, z in rest if z > present]
                rows += [(each.name, *part) for part in parts]
        frame = pd.DataFrame(rows, columns=["name", "from_time", "to_time", "state", "reason"])
        frame = frame.sort_values(["name", "from_time"], ignore_index=True)
        for column in ("from_time", "to_time"):
            frame[column] = pd.to_datetime(frame[column].astype("int64"), unit="us", utc=True)
        return frame

    def _require(self, found, start, end):
        missing = self._missing(found, "index_ticks", start, end)
        if len(missing) == 0:
            return
        first = missing.iloc[0]
        more = f", and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise Incomplete(
            f"{first['name']} is not proven from {first.from_time} to {first.to_time} ({first.state}, {first.reason}){more};"
            " `missing()` lists all",
            missing,
        )

    def _ledger(self, relation, more, series, start, end, stream, index_type, tz):
        lower, upper = self._window(start, end, tz=tz)
        where = [("from_ts", "<", upper), ("to_ts", ">", lower)]
        columns = [*_LEDGER, *more]
        if series is None:
            frame = self._backend.read(relation, columns, where + ([] if stream is None else [("stream", "=", stream)]))
        else:
            parts = [self._ledger_rows(relation, columns, each, stream, where) for each in self._find(series, index_type)]
            frame = pd.concat(parts, ignore_index=True)
        frame = frame.sort_values(["stream", "name", "from_ts"], ignore_index=True, na_position="first")
        for side in ("from", "to"):
            moments = frame.pop(f"{side}_ts").astype("int64").clip(lower, upper)
            frame.insert(4 if side == "from" else 5, f"{side}_time", pd.to_datetime(moments, unit="us", utc=True))
        return to_times(frame)
