"""A line that cites an answer with a digest of its exact values, and its check: docs/research.md has the format."""

import hashlib
import re
import urllib.parse
from typing import NamedTuple

from .aggregate import BAR_DIGITS, PRICES, bars_from_bars, uncovered
from .errors import MdsError, Unknowable
from .frames import plain_text
from .grids import make_grid
from .times import now_micros, schedule, to_micros, to_stamp, to_text

_VERSION = "mds1"
_MAX_MARKS = 32
_MARK_DIGITS = 4
_MAX_MOMENTS = 32
_MAX_STATES = 20
_DAY = 86_400_000_000


class Row(NamedTuple):
    """A line of the canonical text, and the time whose records decide it."""

    series: tuple
    stream: str
    ts: int
    start: int
    end: int
    text: str
    is_complete: bool


def address(series):
    return f"{series.index_type}:{series.index_id}" if series.ledger[0] else series.index_id


def lines(warehouse, question):
    """The rows that answer a question: the words of a citation."""
    kind, tz = question["kind"], question.get("tz")
    start, end = (to_micros(question[name]) if name in question else None for name in ("from", "to"))
    sources = question["source"].split(",")
    for n, series in enumerate(warehouse._find(_list(question["ids"]), None, question.get("of"), question.get("over"))):
        source = sources[n] if n < len(sources) else sources[0]
        stream = "ohlcv" if source == "ohlcv" else series.stream
        if kind == "ticks":
            columns = ["price_exact", "volume_exact", "tick_volume_exact"]
            frame = warehouse._raw_ticks(series, columns, start, end)
            for ts, *values in frame[["ts", *columns]].itertuples(index=False):
                yield _row(series, stream, ts, ts, ts + 1, values)
        elif kind == "bars":
            layout = make_grid(question["every"], tz)
            window = warehouse._window(start, end, layout)
            frame = _days(warehouse, series, layout, window) if stream == "ohlcv" else None
            if frame is None:
                frame = warehouse._bars_of(series, layout, layout.is_hourly(*window), window, True)
            columns = [*BAR_DIGITS, "n_ticks"]
            for ts, last, values in zip(frame.index, layout.ends(frame.index), frame[columns].itertuples(index=False)):
                yield _row(series, stream, ts, ts, last, values)
        else:
            moments = schedule(question["at"], start, end, tz) if "T" not in question["at"] else map(to_micros, question["at"].split(","))
            proven = warehouse._proven(series, stream)
            for at in moments:
                ts, *values = _before(warehouse, series, stream, at)
                known = ts is not None
                first, until = (ts - _DAY, at // _DAY * _DAY) if known and stream == "ohlcv" else (ts, at + 1)
                whole = known and not uncovered(proven, first, until)
                yield _row(series, stream, at, ts if known else at, at + 1, [ts, *values], bool(whole))


def _row(series, stream, ts, start, end, values, is_complete=True):
    text = ",".join([address(series), str(int(ts)), *map(plain_text, values)]) + "\n"
    return Row(series, stream, int(ts), int(start), int(end), text, is_complete)


def _before(warehouse, series, stream, at):
    """ts, price and volume of the last tick, or of the last day that was over."""
    if stream != "ohlcv":
        return warehouse._tick_before(series, at, None, ["price_exact", "volume_exact"])
    day = to_text(at)[:10]
    where = [*series.key, ("day", "<", day), ("close", "<>", None)]
    found = warehouse._backend.read("ohlcv", ["day", "close_exact", "volume_exact"], where, order="day", descending=True, limit=1)
    if not len(found):
        return None, None, None
    last, close, volume = found.iloc[0]
    return to_micros(str(last)[:10]) + _DAY, close, volume


def _days(warehouse, series, layout, window):
    """Bars made of the service's daily bars."""
    columns = [name for price in (*PRICES, "volume") for name in (price, f"{price}_exact")]
    bounds = [("day", ">=", to_text(window[0])[:10]), ("day", "<", to_text(window[1] + _DAY - 1)[:10])]
    frame = warehouse._backend.read("ohlcv", ["day", *columns, "quality"], [*series.key, *bounds], order="day")
    frame = frame[frame[list(PRICES)].notna().all(axis=1)].rename(columns={"volume": "volume_24h", "volume_exact": "volume_24h_exact"})
    frame["ts"] = [to_micros(str(day)[:10]) for day in frame.pop("day")]
    frame["n_ticks"], frame["doubtful"] = 1, frame.pop("quality").notna()
    return bars_from_bars(frame, layout)


class Digest(NamedTuple):
    rows: list
    sha256: str
    #: After every `step` rows the beginning of the digest up to there.
    marks: list
    step: int


def digest(rows, step=None):
    """`step`: after how many rows there is a mark. Default: as a citation of so many rows has them."""
    rows, sha256, marks = list(rows), hashlib.sha256(), []
    step = step or step_of(len(rows))
    for count, row in enumerate(rows, 1):
        sha256.update(row.text.encode())
        if count % step == 0:
            marks.append(sha256.hexdigest()[:_MARK_DIGITS])
    return Digest(rows, sha256.hexdigest(), marks, step)


def step_of(rows):
    step = 1
    while rows // step > _MAX_MARKS:
        step *= 2
    return step


def write(warehouse, question, names):
    """The line that cites the answer."""
    found = digest(lines(warehouse, question))
    is_complete = all(row.is_complete for row in found.rows)
    if question["kind"] != "asof":
        is_complete = len(missing(warehouse, question)) == 0
    words = {
        **{name: value for name, value in question.items() if name != "kind" and value is not None},
        **{"rows": len(found.rows), "complete": "yes" if is_complete else "no", "sha256": found.sha256},
        **({"marks": "".join(found.marks)} if found.marks else {}),
    }
    state = warehouse._backend.state_token()
    words.update({"state": state} if state else {})
    return " ".join([_VERSION, question["kind"], join(names), *(f"{name}={value}" for name, value in words.items())])


def missing(warehouse, question):
    """What the ledger lacks of the range."""
    start, end = to_micros(question["from"]), to_micros(question["to"])
    found = warehouse._find(_list(question["ids"]), None, over=question.get("over"))
    stream = "ohlcv" if question["source"] == "ohlcv" else "index_ticks"
    return warehouse._missing(found, stream, start, end) if start < end else []


def parse(text):
    """The words of a citation, wherever it stands in a text."""
    words = text.split()
    given = words[words.index(_VERSION) + 1 :] if _VERSION in words else []
    question = dict(word.partition("=")[::2] for word in given[2:])
    needed = {"bars": {"from", "to", "every"}, "ticks": {"from", "to"}, "asof": {"at"}}.get(given[0] if given else "")
    if needed is None or not ({"ids", "source", "rows", "sha256"} | needed) <= set(question):
        raise MdsError("that is no whole citation: give the line as `cite` wrote it, from mds1 on")
    return {"kind": given[0], **question}


def check(warehouse, text):
    """Compares what this warehouse answers with what is cited."""
    question = parse(text)
    rows = int(question["rows"])
    step = step_of(rows)
    answer = lambda state: digest(lines(state, question), step)
    cited = _state(warehouse, lambda: question.get("state"))
    present = question.get("known-at") or question.get("state", "").partition("@")[0] or None
    # Commits are dated by the clock of the machine.
    skew = warehouse._backend.present() - now_micros()
    then = _state(warehouse, lambda: present and min(to_micros(present) - skew, now_micros()))
    shown = (cited or then or warehouse) if "known-at" in question else warehouse
    here = answer(shown)
    if here.sha256 != question["sha256"] and shown is not warehouse:
        newest = answer(warehouse)
        shown, here = (warehouse, newest) if newest.sha256 == question["sha256"] else (shown, here)
    equal = here.sha256 == question["sha256"]
    if question["kind"] == "asof":
        whole = all(row.is_complete for row in here.rows)
    else:
        whole = len(missing(shown, question)) == 0
    difference = None
    if not equal:
        changes = _changes(warehouse, question)
        earlier = [lambda at=at: at - 1 for at in sorted({to_micros(at) for *_, at in changes}, reverse=True)[:_MAX_STATES]]
        difference = explain(shown, question, here, changes)
        for state in (cited, then, *(lambda read=read: _state(warehouse, read) for read in earlier)):
            state = state() if callable(state) else state
            before = None if state is None or state is shown else answer(state)
            if before and before.sha256 == question["sha256"]:
                difference = compare(before.rows, here.rows, changes, state)
                break
    return {"equal": equal, "cited_rows": rows, "rows": len(here.rows), "is_complete": whole, "difference": difference}


def _state(warehouse, read):
    """None: the warehouse does not know the state."""
    try:
        known_at = read()
        return warehouse._at(known_at)._pinned() if known_at else None
    except (Unknowable, ValueError):
        return None


def _changes(warehouse, question):
    """Which rows of the asked streams were corrected or withdrawn, and when: stream, ts, time of the change."""
    try:
        found = warehouse._find(_list(question["ids"]), None, question.get("of"), question.get("over"))
        streams = {"ohlcv"} if question["source"] == "ohlcv" else {each.stream for each in found}
        start, end = to_micros(question.get("from", "1970-01-01")), to_micros(question["to"]) if "to" in question else 2**62
        where = [("ts", ">=", start), ("ts", "<", end)]
        columns = ["stream", "index_id", "ts", "changed_at"]
        rows = [warehouse._backend.read("revisions", columns, [("stream", "=", each), *where]) for each in streams]
        return [row for each in rows for row in each.sort_values("changed_at").itertuples(index=False)]
    except Unknowable:
        return []


def compare(cited, here, changes, state):
    """The first row that differs from an earlier state."""
    places = {address(row.series): n for n, row in reversed(list(enumerate([*cited, *here])))}
    order = lambda row: (places[address(row.series)], row.ts)
    a, b = {order(row): row for row in cited}, {order(row): row for row in here}
    place = min(place for place in {*a, *b} if (a.get(place) and a[place].text) != (b.get(place) and b[place].text))
    old, new = a.get(place), b.get(place)
    row = old or new
    since = getattr(state._backend, "state", (None, 0))[1]
    when = [at for _, index_id, ts, at in changes if row.start <= ts < row.end and to_micros(at) > since - _DAY]
    reason = "corrected later" if old and new else "withdrawn later" if old else "arrived later"
    return _difference(row.series, row.ts, row.ts + 1, reason, when[0] if when else None, old, new)


def explain(warehouse, question, here, changes):
    """Where the first difference is by the marks, and what the ledger knows about that place."""
    marks = re.findall(f".{{{_MARK_DIGITS}}}", question.get("marks", ""))
    n = next((n for n, mark in enumerate(marks) if n >= len(here.marks) or here.marks[n] != mark), len(marks))
    block = here.rows[n * here.step : (n + 1) * here.step]
    previous = here.rows[n * here.step - 1] if n and len(here.rows) >= n * here.step else None
    row = block[0] if block else previous
    series = row.series if row else warehouse._find(_list(question["ids"]), None)[0]
    stream = row.stream if row else series.stream
    start = to_micros(question["from"]) if "from" in question else row.start if row else 0
    end = to_micros(question["to"]) if "to" in question else (block[-1].end if block else start + 1)
    if previous and previous.series == series:
        start = previous.end
    if len(block) == here.step and block[-1].series == series:
        end = block[-1].end
    end = max(end, start + 1)
    one = block[0] if block and here.step == 1 else None
    gaps = warehouse._missing([series], stream if series.ledger[0] else "index_ticks", start, end)
    if len(gaps):
        gap = gaps.iloc[0]
        return _difference(series, to_micros(gap.from_time), to_micros(gap.to_time), f"{gap.state} here", gap.reason, None, one)
    for changed, index_id, ts, at in changes:
        if changed == stream and start <= ts < end and index_id in (series.index_id, None):
            return _difference(series, ts, ts + 1, "corrected here", at, None, one)
    if question.get("complete") != "yes":
        return _difference(series, start, end, "incomplete when cited", None, None, one)
    why = "both prove it complete: `mds-sync verify` compares this one with the service"
    return _difference(series, start, end, "unknown", why, None, one)


def _difference(series, start, end, reason, detail, cited, here):
    values = lambda row: row.text.partition(",")[2].rstrip("\n") if row else None
    place = {"name": series.name, "from_ts": start, "to_ts": end, "from_time": to_stamp(start), "to_time": to_stamp(end)}
    return {**place, "cited": values(cited), "here": values(here), "reason": reason, "detail": detail}


def ask(warehouse, method, args, options):
    """The question of a call of `bars`, `ticks` or `asof`."""
    return {"bars": _ask_bars, "ticks": _ask_ticks, "asof": _ask_asof}[method](warehouse, *args, **options)


def _ask_bars(warehouse, series, every, start=None, end=None, *, index_type=None, of=None, over=None, tz=None):
    layout = make_grid(every, tz)
    ended = int(layout.starts([warehouse._backend.present()])[0])
    found = warehouse._find(series, index_type, of, over)
    words = {"of": of, "over": found[0].over and address(found[0].over), "every": every, "tz": tz and str(tz)}
    return _ask_range(warehouse, "bars", found, start, end, ended, layout, words, tz)


def _ask_ticks(warehouse, series, start=None, end=None, *, index_type=None, of=None, tz=None):
    found = warehouse._find(series, index_type, of)
    return _ask_range(warehouse, "ticks", found, start, end, warehouse._backend.present(), None, {"of": of}, tz)


def _ask_range(warehouse, kind, found, start, end, ended, layout, words, tz):
    present = warehouse._backend.present()
    if start is None:
        firsts = [warehouse._backend.read(each.stream, ["ts"], each.key, order="ts", limit=1)["ts"] for each in found]
        first = min([int(each.iloc[0]) for each in firsts if len(each)], default=ended)
        start = int(layout.starts([first])[0]) if layout else first
    start = to_micros(start, present, tz)
    end = ended if end is None else min(ended, to_micros(end, present, tz))
    bounds = {"from": to_stamp(start), "to": to_stamp(max(start, end))}
    names = [f"{each.name} over {each.over.name}" if each.over else each.name for each in found]
    return _question(kind, found, {**words, **bounds}, warehouse), names


def _ask_asof(warehouse, time=None, series=None, *, at=None, start=None, end=None, index_type=None, of=None, tz=None):
    found = warehouse._find(series, index_type, of)
    present = warehouse._backend.present()
    if at is not None:
        last = present if end is None else to_micros(end, present, tz)
        moments = schedule(at, to_micros(start, present, tz), last, tz)
        words = {"of": of, "tz": tz and str(tz), "from": to_stamp(moments[0]), "to": to_stamp(moments[-1] + 1), "at": at}
    else:
        times = [time] if isinstance(time, str) or not hasattr(time, "__iter__") else time
        moments = [to_micros(each, present, tz) for each in times]
        if len(moments) > _MAX_MOMENTS:
            raise MdsError(f"a citation has at most {_MAX_MOMENTS} moments; cite a part of them, or one a day with at=")
        words = {"of": of, "at": ",".join(map(to_stamp, moments))}
    return _question("asof", found, words, warehouse), [each.name for each in found]


def _question(kind, found, words, warehouse):
    state = getattr(warehouse._backend, "state", None)
    known = {"known-at": to_stamp(state[1])} if state else {}
    return {"kind": kind, "ids": join(address(each) for each in found), "source": "ticks", **words, **known}


def join(texts):
    """A name may contain what separates words."""
    return ",".join(re.sub(r"[\s,%]", lambda found: urllib.parse.quote(found[0]), text) for text in texts)


def _list(text):
    return [urllib.parse.unquote(each) for each in text.split(",")]
