"""An earlier state of the warehouse file: of each row and range the version that was written up to a commit and not replaced by then."""

import hashlib
import re
import time
import warnings

import pandas as pd

from .errors import Unknowable
from .sqlite_backend import SqliteBackend
from .times import to_micros, to_stamp

_HOUR = 3_600_000_000
#: More keys than a dictionary has.
_PART = 2**24
#: Alone, or in a citation.
_TOKEN = re.compile(r"(?:^|.*\sstate=)(\S+Z)@(\d+)-([0-9a-f]{12})$", re.DOTALL)
_TICKS = "series, ts, price, volume, tick_volume, CASE WHEN confirmed > {0} THEN 1 ELSE source END AS source, details"
_RANGES = "stream, series, from_ts, to_ts, proof, reason"
#: Where the earlier versions of the rows of each table are.
_TABLES = {
    "past_tick_rows": "index_tick_rows",
    "past_daily_bar_rows": "daily_bar_rows",
    "past_exchange_tick_rows": "exchange_tick_slots",
    "past_market_cap_rows": "market_cap_slots",
    "past_derivative_tick_rows": "derivative_tick_slots",
    "past_settled_ranges": "settled_ranges",
}
#: The lists of the service: what names an entry in status_changes, which has every change, and the keys of the table.
_LISTS = {
    "assets": ("asset", ("id",)),
    "market_rows": ("market", ("id",)),
    "exchanges": ("exchange", ("id",)),
    "exchange_markets": ("exchange_market", ("exchange_id", "market_id")),
    "exchange_symbols": ("exchange_symbol", ("exchange_id", "asset_id")),
    "contracts": ("contract", ("derivative_type", "id")),
}
#: Columns of the lists whose changes are not recorded.
_UNTRACKED = ("contract", "first_seen", "absences", "quality", "extra", "details", "exchange", "pair")
#: When what has no versions was stored.
_NOTICED = {"status_changes": "seen_at", "rejects": "received_at"}
#: What the ledger of then lacked of the targets of now: neither those of then nor what the service had published is known.
_GAPS = """WITH spans AS (SELECT stream, series, from_ts AS target, min(coalesce(to_ts, {0}), {0}) AS end_ts,
      CASE WHEN is_snapshot = 1 OR service_window IS NULL THEN from_ts
        ELSE max(from_ts, coalesce((SELECT min(f.from_ts) FROM settled_ranges f WHERE f.stream = w.stream AND f.series = w.series
          AND f.from_ts <= {0} - service_window + 60000000), {0} - service_window)) END AS start_ts FROM targets w),
  parts AS (
    SELECT stream, series, max(to_ts) OVER ranges AS from_ts, coalesce(lead(from_ts) OVER ranges, end_ts) AS to_ts,
      'open' AS state, 'not proven then' AS reason
    FROM (SELECT stream, series, target, end_ts, start_ts AS from_ts, start_ts AS to_ts FROM spans
      UNION ALL SELECT w.stream, w.series, w.target, w.end_ts, r.from_ts, r.to_ts FROM spans w JOIN settled_ranges r USING (stream, series)
      WHERE r.to_ts > w.start_ts AND r.from_ts < w.end_ts)
    WINDOW ranges AS (PARTITION BY stream, series, target ORDER BY from_ts)
    UNION ALL SELECT stream, series, from_ts, to_ts, 'lost', reason FROM settled_ranges WHERE proof = 'lost')
  SELECT p.stream, nullif(s.index_type, '') AS index_type, nullif(s.index_id, '') AS index_id, nullif(s.name, '') AS name, p.from_ts, p.to_ts,
    {1} AS from_time, {2} AS to_time, p.state, p.reason, NULL AS lost_at
  FROM parts p JOIN series s USING (series) WHERE p.from_ts < p.to_ts"""
#: Views of the file that read the tables hidden here.
_VIEWS = ("index_ticks", "bars_1h", "ohlcv", "coverage")


def cite(backend, state=None):
    """A token that names a state: the newest one by default."""
    commit, present = state or (_last_commit(backend), backend.present())
    return f"{to_stamp(present)}@{commit}-{_digest(backend, commit)}"


def find_state(backend, known_at):
    """The commit and the present that a token or a time names. Raises Unknowable if the warehouse cannot tell that state."""
    token = _TOKEN.match(known_at) if isinstance(known_at, str) else None
    last = _last_commit(backend)
    if token:
        commit = int(token.group(2))
        if commit > last:
            raise Unknowable(f"{known_at} cites a state that this warehouse never had; read the warehouse it is from")
        if _digest(backend, commit) != token.group(3):
            raise Unknowable(f"{known_at} cites another warehouse; read that one, or a copy of it")
        return commit, to_micros(token.group(1))
    if isinstance(known_at, str) and "@" in known_at:
        raise Unknowable(f"{known_at} is not a whole token; give it as `cite` printed it, TIME@COMMIT-DIGEST")
    now = time.time_ns() // 1000
    at = to_micros(known_at, now)
    if at > max(now, (_commit(backend, last) or (0,))[0]):
        raise Unknowable(f"{to_stamp(at)} is in the future; give a moment that is over")
    # Within each part moments ascend: the clock of the machine may be set back, and a copy restored.
    parts = backend.rows("SELECT seq, at FROM commits WHERE seq = 0 OR unknown_from IS NOT NULL ORDER BY seq")
    begun = [seq for seq, begin in parts if begin <= at]
    if not begun:
        since = to_stamp(min(begin for _, begin in parts)) if parts else "its next run"
        raise Unknowable(
            f"what was known at {to_stamp(at)} cannot be shown: this warehouse keeps its past since {since}; give a later moment"
        )
    low = begun[-1]
    high = min([seq - 1 for seq, _ in parts if seq > low], default=last)
    while low < high:
        middle = (low + high + 1) // 2
        if _commit(backend, middle)[0] <= at:
            low = middle
        else:
            high = middle - 1
    later = _commit(backend, low + 1)
    if later and later[1] is not None and at > later[1]:
        raise Unknowable(
            f"what was known at {to_stamp(at)} cannot be shown: a copy from {to_stamp(later[1])} was restored at {to_stamp(later[0])};"
            " ask the file that `restore` has set aside"
        )
    # The present of a state is by the service's clock, a moment by this machine's.
    return low, at + (_commit(backend, low)[2] or 0)


class KnownBackend(SqliteBackend):
    """Temporary views with the names of the tables hide these. Rows that were replaced later are read by a second connection."""

    def __init__(self, path, state):
        super().__init__(path)
        self.state = state
        self._replaced = SqliteBackend(path)
        self._whole = None
        commit, present = state
        self._current = current = f"ifnull(since, 0) <= {commit}"
        self._replaced_rows = replaced = f"{current} AND until > {commit}"
        kept = f"SELECT * FROM main.kept_bars WHERE n_ticks IS NOT NULL AND ifnull(last_commit, 0) <= {commit}"
        for backend, ticks, bars, where in (
            (self, "index_tick_rows", "daily_bar_rows", current),
            (self._replaced, "past_tick_rows", "past_daily_bar_rows", replaced),
        ):
            define = [
                f"VIEW index_tick_rows AS SELECT {_TICKS.format(commit)} FROM main.{ticks} WHERE {where}",
                f"VIEW daily_bar_rows AS SELECT * FROM main.{bars} WHERE {where}",
                f"VIEW kept_bars AS {kept}",
                f"""VIEW warehouse_state AS
                SELECT {present} - CAST(strftime('%s', 'now') AS INTEGER) * 1000000 AS clock_skew""",
                """TABLE settled_ranges (stream, series, from_ts, to_ts, proof, reason,
                PRIMARY KEY (stream, series, from_ts)) WITHOUT ROWID""",
            ]
            names = ", ".join(f"'{name}'" for name in _VIEWS)
            copies = backend.rows(f"SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name IN ({names})")
            backend.change([f"CREATE TEMP {text}" for text in define])
            backend.change([sql.replace("CREATE VIEW", "CREATE TEMP VIEW", 1) for (sql,) in copies])
        self._loaded = set()

    def read(self, relation, columns, where=(), order=None, descending=False, limit=None):
        stream = next((value for column, _, value in where if column == "stream"), relation)
        is_named = any(column == "index_id" for column, _, _ in where)
        if not is_named and stream not in ("index_ticks", "ohlcv", "bars_1h", "coverage", "gaps"):
            read = self._everything().read
            return self._lost(columns, where, read) if relation == "gaps" else read(relation, columns, where, order, descending, limit)
        self._load(where)
        if relation == "gaps":
            return self._lost(columns, where, super().read)
        frame = super().read(relation, columns, where, order, descending, limit)
        if relation in ("index_ticks", "ohlcv"):
            frame = self._with_replaced(frame, relation, columns, where, order, descending, limit)
        return frame

    def _with_replaced(self, frame, *query):
        more = self._replaced.read(*query)
        if len(more) == 0:
            return frame
        _, _, _, order, descending, limit = query
        both = pd.concat([frame, more], ignore_index=True) if len(frame) else more
        if order:
            both = both.sort_values(order, ascending=not descending, ignore_index=True)
        return both if limit is None else both.head(limit)

    def unproven(self, series):
        return super().unproven(series)[0], "not proven then"

    def pinned(self):
        return KnownBackend(self.path, self.state)

    def state_token(self):
        return cite(self._replaced, self.state)

    def stale_hours(self, series, lower, upper):
        commit = self.state[0]
        rows = self.rows(
            f"""SELECT k.ts FROM series s CROSS JOIN main.kept_bars k ON k.series = s.series
            WHERE s.index_type = :type AND s.index_id = :id AND k.ts >= :lower AND k.ts < :upper
              AND ifnull(k.first_commit, 0) <= {commit} AND (k.n_ticks IS NULL OR k.last_commit > {commit})
            UNION SELECT p.ts - p.ts % {_HOUR} FROM series s CROSS JOIN main.past_tick_rows p ON p.series = s.series
            WHERE s.index_type = :type AND s.index_id = :id AND p.ts >= :lower AND p.ts < :upper AND {self._replaced_rows}
            ORDER BY 1""",
            {"type": series.index_type, "id": series.index_id, "lower": lower, "upper": upper},
        )
        return [hour for (hour,) in rows]

    def close(self):
        super().close()
        self._replaced.close()
        if self._whole is not None:
            self._whole.close()

    def sql(self, query, values):
        whole = self._everything()
        for name in _relations_of_now(whole, query):
            warnings.warn(f"{name} has no earlier states: its rows are those of now", stacklevel=4)
        return whole.sql(query, values)

    def _everything(self):
        """The file with views of then of all that it has."""
        if self._whole is None:
            self._whole = SqliteBackend(self.path)
            self._whole.change(_past_of_everything(self._whole, *self.state))
        return self._whole

    def _lost(self, columns, where, read):
        """Of an earlier state the ledger alone is known."""
        selected = [{"state": "'lost' AS state", "lost_at": "NULL AS lost_at"}.get(name, name) for name in columns]
        return read("coverage", selected, [*where, ("proof", "=", "lost")])

    def _load(self, where):
        """Brings the ledger of the series that the conditions name."""
        given = {column: value for column, operator, value in where if operator == "="}
        if "index_id" not in given:
            raise Unknowable("an earlier state can be shown for named series only; name them")
        sql = "SELECT series FROM series WHERE index_type = :index_type AND index_id = :index_id"
        key = self.rows(sql, {name: given[name] for name in ("index_type", "index_id")})
        if not key or key[0][0] in self._loaded:
            return
        series = key[0][0]
        tables = {"settled_ranges": self._current, "past_settled_ranges": self._replaced_rows}
        statements = [
            f"""INSERT INTO temp.settled_ranges SELECT {_RANGES} FROM main.{table}
            WHERE stream IN ('index_ticks', 'ohlcv') AND series = {series} AND {condition}"""
            for table, condition in tables.items()
        ]
        for backend in (self, self._replaced):
            backend.change(statements)
        self._loaded.add(series)


def _past_of_everything(file, commit, present):
    """Temporary views with the names of the tables, which show all rows of then, and copies of the file's views, which read them."""
    current = f"ifnull(since, 0) <= {commit}"
    replaced = f"{current} AND until > {commit}"
    kept_bars = _columns(file, "kept_bars")
    figures = ", ".join(
        {"n_ticks": f"CASE WHEN ifnull(last_commit, 0) <= {commit} THEN n_ticks END AS n_ticks"}.get(name, name) for name in kept_bars
    )
    hour = f"p.ts - p.ts % {_HOUR}"
    state = _columns(file, "warehouse_state")
    skew = f"{present} - CAST(strftime('%s', 'now') AS INTEGER) * 1000000 AS clock_skew"
    views = {
        "kept_bars": f"""SELECT {figures} FROM main.kept_bars WHERE ifnull(first_commit, 0) <= {commit}
            UNION ALL SELECT DISTINCT series, {hour}, {", ".join(["NULL"] * (len(kept_bars) - 2))} FROM main.past_tick_rows p
            WHERE {replaced} AND NOT EXISTS (SELECT 1 FROM main.kept_bars k
              WHERE k.series = p.series AND k.ts = {hour} AND ifnull(k.first_commit, 0) <= {commit})""",
        "warehouse_state": f"SELECT {', '.join(skew if name == 'clock_skew' else name for name in state)} FROM main.warehouse_state",
    }
    for past, table in _TABLES.items():
        names = [_columns(file, each) for each in (table, past)]
        shared = [name for name in names[0] if name in names[1]]
        source = f"CASE WHEN confirmed > {commit} THEN 1 ELSE source END AS source"
        if names[0][0] == "slot":
            own = ", ".join(source if name == "source" else f"r.{name}" for name in shared)
            views[past.removeprefix("past_")] = _parted_rows(table, past, names[1][0], own, current, replaced)
            continue
        columns = ", ".join(source if name == "source" else name for name in shared)
        views[table] = f"""SELECT {columns} FROM main.{table} WHERE {current}
            UNION ALL SELECT {columns} FROM main.{past} WHERE {replaced}"""
    at = (_commit(file, commit) or (present,))[0]
    for table, (entity, keys) in _LISTS.items():
        views[table] = _list_then(file, table, entity, keys, f"'{to_stamp(at)}'")
    for table, column in _NOTICED.items():
        views[table] = f"SELECT * FROM main.{table} WHERE {column} <= '{to_stamp(at)}'"
    views["revision_rows"] = f"SELECT * FROM main.revision_rows WHERE changed_at <= {at}"
    times = [f"strftime('%Y-%m-%dT%H:%M:%S', {ts} / 1000000, 'unixepoch') || printf('.%06dZ', {ts} % 1000000)" for ts in ("p.from_ts", "p.to_ts")]
    views["gaps"] = _GAPS.format(present, *times)
    hidden = ", ".join(f"'{name}'" for name in views)
    copies = file.rows(f"SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name NOT IN ({hidden})")
    # Rows of then are ordered by their time alone.
    return [f"CREATE TEMP VIEW {name} AS {sql}" for name, sql in views.items()] + [
        re.sub(r"\b(\w+\.)?part (ASC|DESC), ", "", sql.replace("CREATE VIEW", "CREATE TEMP VIEW", 1)) for (sql,) in copies
    ]


def _columns(file, table):
    return [name for _, name, *_ in file.rows(f"PRAGMA main.table_info({table})")]


def _parted_rows(table, past, key, columns, current, replaced):
    """The rows of a stream in parts; each term of the union seeks a key."""
    dictionary = {"listing": "listings", "contract": "contracts", "series": "series"}[key]
    return f"""SELECT r.slot AS {key}, 0 AS part, {columns} FROM main.{table} r WHERE r.slot < {_PART} AND {current}
        UNION ALL SELECT d.{key}, 0, {columns} FROM main.{dictionary} d CROSS JOIN main.row_parts p CROSS JOIN main.{table} r
          WHERE p.part > 0 AND r.slot = p.part * {_PART} + d.{key} AND {current}
        UNION ALL SELECT r.{key}, 0, {columns} FROM main.{past} r WHERE {replaced}"""


def _list_then(file, table, entity, keys, at):
    """The rows of a list with the values that their later changes have replaced."""
    name = " || '/' || ".join(f"t.{key}" for key in keys)
    micros = "CAST(strftime('%s', old) AS INTEGER) * 1000000 + CAST(substr(old, 21, 6) AS INTEGER)"
    values = {"INTEGER": f"CASE WHEN old LIKE '%Z' THEN {micros} ELSE old + 0 END", "REAL": "old + 0"}
    columns = []
    for _, column, kind, *_ in file.rows(f"PRAGMA main.table_info({table})"):
        later = f"FROM main.status_changes c WHERE c.entity = '{entity}' AND c.id = {name} AND c.field = '{column}' AND c.seen_at > {at}"
        old = f"(SELECT {values.get(kind, 'old')} {later} ORDER BY c.change LIMIT 1)"
        then = f"CASE WHEN EXISTS (SELECT 1 {later}) THEN {old} ELSE t.{column} END AS {column}"
        # The key of a contract is in every row of its ticks, whenever it was described.
        described = f"(t.is_described AND t.first_seen <= {at}) AS is_described"
        columns.append(described if column == "is_described" else f"t.{column}" if column in (*keys, *_UNTRACKED) else then)
    known = "" if table == "contracts" else f" WHERE t.first_seen <= {at}"
    return f"SELECT {', '.join(columns)} FROM main.{table} t{known}"


def _relations_of_now(file, query):
    """The relations that a statement reads and that have no earlier states."""
    query = re.sub(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", " ", query, flags=re.DOTALL)
    if re.search(r"\bmain[\"`\]]?\s*\.", query, re.IGNORECASE):
        raise Unknowable("`main.` names the newest state; leave it out: an earlier state has relations of the same names")
    tables = [name for (name,) in file.rows("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    of_now = {*tables} - {*_TABLES.values(), *_LISTS, *_NOTICED, "kept_bars", "warehouse_state"}
    named = re.findall(r"(?:\bfrom|\bjoin|,)\s*[\"`\[]?(\w+)", query.lower())
    return [name for name in dict.fromkeys(named) if name in of_now]


def _last_commit(backend):
    return backend.value("SELECT coalesce(max(seq), 0) FROM commits")


def _commit(backend, seq):
    """at, unknown_from, clock_skew; a file of an earlier version has no clock_skew."""
    rows = backend.rows("SELECT * FROM commits WHERE seq = :seq", {"seq": seq})
    return (*rows[0][1:], None) if rows else None


def _digest(backend, seq):
    name = backend.value("SELECT history_id FROM warehouse_state")
    at = (_commit(backend, seq) or (0,))[0]
    return hashlib.sha256(f"{name} {seq} {at}".encode()).hexdigest()[:12]
