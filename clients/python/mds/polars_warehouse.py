"""The same reader with polars DataFrames as results."""

import pandas as pd

from .errors import OpenError
from .warehouse import Warehouse

_TABLES = (
    *("series", "bars", "ticks", "ohlcv", "returns", "asof", "asof_join", "is_whole", "coverage", "gaps", "missing", "sql"),
    *("cite", "check"),
)


class PolarsWarehouse:
    """A Warehouse whose tables are polars DataFrames: the index is a column, and names are joined (`close_BTC`)."""

    def __init__(self, backend):
        try:
            import polars
        except ImportError as error:
            raise OpenError('frames="polars" needs polars and pyarrow: pip install polars pyarrow') from error
        self._polars = polars
        self._warehouse = Warehouse(backend)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __repr__(self):
        return f"{self._warehouse!r} with polars"

    def close(self):
        self._warehouse.close()

    def __getattr__(self, name):
        if name not in _TABLES:
            raise AttributeError(f"a warehouse has no {name}")
        method = getattr(self._warehouse, name)
        return lambda *args, **kwargs: self._convert(method(*map(self._to_pandas, args), **kwargs))

    def iter_ticks(self, *args, **kwargs):
        return map(self._convert, self._warehouse.iter_ticks(*args, **kwargs))

    def _to_pandas(self, value):
        return value.to_pandas() if isinstance(value, self._polars.DataFrame) else value

    def _convert(self, result):
        if isinstance(result, pd.Series):
            result = result.rename(result.name or "value").rename_axis(result.index.name or "name").to_frame()
        if not isinstance(result, pd.DataFrame):
            return result
        if isinstance(result.columns, pd.MultiIndex):
            result.columns = ["_".join(str(part) for part in column) for column in result.columns]
        return self._polars.from_pandas(result.reset_index() if result.index.name is not None else result)
