"""What the sources share: one structured query, written as SQL."""

import re

import pandas as pd

from .errors import Unknowable

#: Of each stream the dictionary of its keys and their column, its rows, and what the dictionary calls other columns.
_DICTIONARIES = {
    "index_ticks": ("series", "series", "index_tick_rows", {}),
    "ohlcv": ("series", "series", "daily_bar_rows", {}),
    "exchange_ticks": ("listings", "listing", "exchange_tick_rows", {}),
    "derivative_ticks": ("contracts", "contract", "derivative_tick_rows", {"contract_id": "id"}),
    "market_caps": ("series", "series", "market_cap_rows", {"asset_id": "index_id", "symbol": "name"}),
}
_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|::|:([A-Za-z_]\w*)")


def replace_parameters(query, write):
    """Replaces each `:name` outside of quotes and comments."""
    return _PARAMETER.sub(lambda found: write(found.group(1)) if found.group(1) else found.group(0), query)


def default_refresh(series):
    return {"market_caps": 300_000_000, "derivative_ticks": 60_000_000}.get(series.stream, 30_000_000)


class Backend:
    """What every source has, unless it says otherwise."""

    #: What the source is, for messages.
    kind = ""

    def unproven(self, series):
        """State and reason of time that the ledger does not mention: a snapshot can never be fetched again."""
        return ("open", "not selected") if series.ledger[0] else ("lost", "not followed")

    def at(self, known_at):
        """The same source as it was known then."""
        raise Unknowable(f"{self.kind} has no earlier states; open the warehouse file, mds.sqlite")

    def pinned(self):
        """The same source, in which nothing changes until it is closed."""
        return self

    def cite(self):
        """A token that names the newest state."""
        return self.at(None)

    def state_token(self):
        """A token that names the state that is shown; None: the source has none."""
        return None

    def stale_hours(self, series, lower, upper):
        """The hours that bars_1h lacks, and whose ticks must be read."""
        return []


class SqlBackend(Backend):
    """A source that understands SQL. Subclasses connect, and say how their SQL differs."""

    #: Whether bars_1h is a relation.
    has_bars = True

    def run(self, query, values):
        """The names of the columns, and the rows, of a query with `:name` parameters."""
        raise NotImplementedError

    def rows(self, query, values=None):
        return self.run(query, values or {})[1]

    def value(self, query):
        """The only value of a query."""
        return self.rows(query)[0][0]

    def series(self):
        return self.rows("SELECT index_type, index_id, name FROM series WHERE index_type <> ''")

    def read(self, relation, columns, where=(), order=None, descending=False, limit=None):
        """The rows of a relation. `where`: (column, operator, value); no value: the column is not null."""
        values = {f"v{at}": value for at, (_, _, value) in enumerate(where) if value is not None}
        conditions = " AND ".join(
            f"{column} IS NOT NULL" if value is None else f"{column} {operator} :v{at}"
            for at, (column, operator, value) in enumerate(where)
        )
        query = f"SELECT {', '.join(columns)} FROM {relation}"
        if conditions:
            query += f" WHERE {conditions}"
        if order:
            query += f" ORDER BY {order}{' DESC' if descending else ''}"
        if limit is not None:
            query += f" LIMIT {int(limit)}"
        names, rows = self.run(query, values)
        return pd.DataFrame.from_records(rows, columns=names)

    #: What comes before `ts` in the order of the rows of one key, of the streams that are stored in parts.
    _part = ()

    def spans(self, stream, keys, labels=()):
        """Keys and labels of every series with rows, and the times of its first and last row: two seeks, as a stream may have millions."""
        dictionary, key, rows, names = _DICTIONARIES[stream]
        parts = self._part if dictionary != "series" or stream == "market_caps" else ()
        ends = (
            f"(SELECT r.ts FROM {rows} r WHERE r.{key} = d.{key} ORDER BY {', '.join(f'r.{name} {way}' for name in (*parts, 'ts'))} LIMIT 1)"
            for way in ("ASC", "DESC")
        )
        own = ", ".join(f"d.{names.get(column, column)}" for column in (*keys, *labels))
        found = self.rows(f"SELECT {own}, {', '.join(ends)} FROM {dictionary} d")
        return [row for row in found if row[-1] is not None]

    def refresh_micros(self, series):
        """The period between two ticks."""
        kind, ids = series.ledger
        rows = self.rows(
            """SELECT w.period FROM targets w JOIN series s ON s.series = w.series WHERE w.stream = :stream
            AND s.index_type = :type AND s.index_id IN (:id, :other) ORDER BY w.from_ts DESC LIMIT 1""",
            {"stream": series.stream, "type": kind, "id": ids[0], "other": ids[1]},
        )
        return int(rows[0][0]) if rows else default_refresh(series)

    def sql(self, query, values):
        names, rows = self.run(query, values)
        return pd.DataFrame.from_records(rows, columns=names)
