"""Reads an mds-sync warehouse into pandas: the SQLite file, the shared PostgreSQL warehouse, or an export.

>>> import mds
>>> warehouse = mds.open("data/mds.sqlite")
>>> warehouse.bars(["BTC", "ETH"], "1h", "2026-05-01", "2026-06-01")["close"]
"""

import os

from .errors import Incomplete, MdsError, OpenError, Unknowable, UnknownSeries
from .warehouse import Warehouse

__all__ = ["Incomplete", "MdsError", "OpenError", "Unknowable", "UnknownSeries", "Warehouse", "open"]


def open(source, password=None, *, frames="pandas"):
    """Opens a warehouse for reading: the path of `mds.sqlite`, the folder of an export, or `postgres://user@host/database`.

    Nothing can be written through it. The password of a server is taken from the argument, the address,
    MDS_SHARED_PASSWORD or PGPASSWORD. `frames="polars"`: results are polars DataFrames."""
    if frames not in ("pandas", "polars"):
        raise ValueError(f"frames must be pandas or polars, not {frames!r}")
    backend = _open_backend(source, password)
    if frames == "pandas":
        return Warehouse(backend)
    from .polars_warehouse import PolarsWarehouse

    return PolarsWarehouse(backend)


def _open_backend(source, password):
    if isinstance(source, str) and source.startswith(("postgres://", "postgresql://")):
        from .postgres_backend import PostgresBackend

        return PostgresBackend(source, password)
    path = os.path.expanduser(os.fspath(source))
    if os.path.basename(path) == "mds.duckdb":
        path = os.path.dirname(path) or "."
    if os.path.isdir(path):
        from .export_backend import open_export

        return open_export(path)
    from .sqlite_backend import SqliteBackend

    return SqliteBackend(path)
