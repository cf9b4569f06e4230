"""The warehouse file itself."""

import os
import sqlite3
import urllib.parse

from .backend import SqlBackend
from .errors import OpenError

_APPLICATION_ID = 0x4D445357


class SqliteBackend(SqlBackend):
    kind = "SQLite"
    _part = ("part",)

    def __init__(self, path):
        self.path = os.fspath(path)
        self._connection = _connect(self.path)
        self._past = None
        if self._connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
            self._connection.close()
            raise OpenError(f"{self.path} is the database of another program")

    def run(self, query, values):
        cursor = self._connection.execute(query, values or {})
        return [column[0] for column in cursor.description or ()], cursor.fetchall()

    def present(self):
        return self.value("SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + clock_skew FROM warehouse_state")

    def at(self, known_at):
        from .known_backend import KnownBackend, find_state

        state = find_state(self, known_at)
        if self._past is None or self._past.state != state:
            if self._past is not None:
                self._past.close()
            self._past = KnownBackend(self.path, state)
        return self._past

    def pinned(self):
        from .known_backend import KnownBackend, find_state

        return KnownBackend(self.path, find_state(self, self.cite()))

    def cite(self):
        from .known_backend import cite

        return cite(self)

    def state_token(self):
        return self.cite()

    def change(self, statements):
        """Changes temporary tables and views: the file itself is open for reading only."""
        self._connection.execute("PRAGMA query_only = 0")
        try:
            for statement in statements:
                self._connection.execute(statement)
            self._connection.commit()
        finally:
            self._connection.execute("PRAGMA query_only = 1")

    def close(self):
        if self._past is not None:
            self._past.close()
        self._connection.close()


def _connect(path):
    if not os.path.isfile(path):
        raise OpenError(f"there is no warehouse {path}; give the path of mds.sqlite, a folder of an export, or postgres://…")
    address = "file:" + urllib.parse.quote(os.path.abspath(path)) + "?mode=ro"
    try:
        return _check(sqlite3.connect(address, uri=True, check_same_thread=False))
    except sqlite3.OperationalError as error:
        # Without write access SQLite cannot make the files of the WAL. A warehouse that was closed has no WAL.
        if os.path.exists(path + "-wal"):
            raise OpenError(
                f"{path} cannot be read: {error}; a warehouse in use needs write access to its folder, or take a copy"
                " with `mds-sync backup`"
            ) from error
        return _check(sqlite3.connect(address + "&immutable=1", uri=True, check_same_thread=False))
    except sqlite3.DatabaseError as error:
        raise OpenError(f"{path} is not a warehouse: {error}") from error


def _check(connection):
    connection.execute("PRAGMA query_only = 1")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return connection
