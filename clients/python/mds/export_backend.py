"""A folder that `mds-sync export` wrote: through DuckDB, or without SQL through pyarrow."""

import datetime
import json
import os
from decimal import Decimal

import pandas as pd

from .backend import Backend, SqlBackend, default_refresh, replace_parameters
from .errors import MdsError, OpenError
from .times import to_micros


def open_export(folder):
    manifest = os.path.join(folder, "manifest.json")
    if not os.path.isfile(manifest):
        raise OpenError(f"{folder} is not an export: it has no manifest.json")
    try:
        import duckdb  # noqa: F401
    except ImportError:
        try:
            import pyarrow.dataset  # noqa: F401
        except ImportError as error:
            raise OpenError("an export needs DuckDB or pyarrow: pip install duckdb") from error
        return ArrowBackend(folder)
    return DuckDbBackend(folder)


class _Export(Backend):
    def __init__(self, folder):
        self.folder = os.path.abspath(folder)
        with open(os.path.join(self.folder, "manifest.json"), encoding="utf-8") as file:
            self._manifest = json.load(file)

    def present(self):
        """The time of the export: what was in progress then is so in its bars."""
        return to_micros(self._manifest["exported_at"])


class DuckDbBackend(_Export, SqlBackend):
    kind = "an export, read by DuckDB"

    def __init__(self, folder):
        import duckdb

        super().__init__(folder)
        self._connection = duckdb.connect(os.path.join(self.folder, "mds.duckdb"), read_only=True)
        self._connection.execute("SET TimeZone = 'UTC'")

    def run(self, query, values):
        cursor = self._connection.cursor()
        text = replace_parameters(query, lambda name: f"${name}") if values else query
        cursor.execute(text, values or None)
        return [column[0] for column in cursor.description or ()], cursor.fetchall()

    def spans(self, stream, keys, labels=()):
        newest = [f"arg_max({label}, ts)" for label in labels]
        return self.rows(f"SELECT {', '.join([*keys, *newest])}, min(ts), max(ts) FROM {stream} GROUP BY {', '.join(keys)}")

    def series(self):
        return self.rows("SELECT index_type, index_id, name FROM series")

    def refresh_micros(self, series):
        sql = "SELECT refresh_us FROM series WHERE index_type = :type AND index_id = :id"
        rows = self.rows(sql, {"type": series.index_type, "id": series.index_id})
        return rows[0][0] if rows else default_refresh(series)

    def close(self):
        self._connection.close()


class ArrowBackend(_Export):
    kind = "an export, read by pyarrow"
    has_bars = False

    def read(self, relation, columns, where=(), order=None, descending=False, limit=None):
        import pyarrow.compute as pc
        import pyarrow.dataset as ds

        dataset = ds.dataset(os.path.join(self.folder, relation), format="parquet", partitioning="hive")
        compare = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
        condition = None
        for column, operator, value in where:
            if value is not None and str(dataset.schema.field(column).type).startswith("date"):
                value = datetime.date.fromisoformat(value)
            field = pc.field(column)
            part = field.is_valid() if value is None else getattr(field, compare[operator])(value)
            condition = part if condition is None else condition & part
        stored = [name for name in dict.fromkeys(_stored(columns, dataset.schema.names))]
        frame = dataset.to_table(columns=stored, filter=condition).to_pandas()
        for column in columns:
            if column not in frame:
                frame[column] = _exact(frame, column)
        if order:
            frame = frame.sort_values(order, ascending=not descending, kind="stable")
        return frame[list(columns)].head(len(frame) if limit is None else limit).reset_index(drop=True)

    def sql(self, query, values):
        raise MdsError("SQL over an export needs DuckDB: pip install duckdb")

    def spans(self, stream, keys, labels=()):
        time = "day" if stream == "ohlcv" else "ts"
        named = {label: (label, "last") for label in labels}
        rows = self.read(stream, [*keys, *labels, time], order=time).groupby(list(keys), observed=True)
        return rows.agg(**named, first=(time, "min"), last=(time, "max")).reset_index().itertuples(index=False, name=None)

    def series(self):
        return list(self.read("series", ["index_type", "index_id", "name"]).itertuples(index=False, name=None))

    def refresh_micros(self, series):
        known = self.read("series", ["index_type", "index_id", "refresh_us"])
        own = known[(known.index_type == series.index_type) & (known.index_id == series.index_id)]
        return int(own["refresh_us"].iloc[0]) if len(own) else default_refresh(series)

    def close(self):
        pass


def _stored(columns, names):
    """The columns of the files: exact digits are stored only where the number cannot hold them."""
    for column in columns:
        if column in names:
            yield column
        else:
            base = column[: -len("_exact")]
            yield base
            yield f"{base}_digits"


def _exact(frame, column):
    base = column[: -len("_exact")]
    plain = frame[base].map(lambda value: None if pd.isna(value) else _plain_digits(value))
    return frame[f"{base}_digits"].where(frame[f"{base}_digits"].notna(), plain)


def _plain_digits(value):
    digits = format(value, ".15g")
    if "e" in digits:
        digits = format(Decimal(digits), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits
