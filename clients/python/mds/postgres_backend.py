"""The shared warehouse."""

import os

from .backend import SqlBackend, replace_parameters
from .errors import OpenError


class PostgresBackend(SqlBackend):
    kind = "PostgreSQL"

    def __init__(self, url, password=None):
        self._connection = _connect(url, password or os.environ.get("MDS_SHARED_PASSWORD"))

    def run(self, query, values):
        text = replace_parameters(query.replace("%", "%%"), lambda name: f"%({name})s") if values else query
        with self._connection.cursor() as cursor:
            cursor.execute(text, values or None)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()

    def present(self):
        sql = "SELECT floor(extract(epoch FROM statement_timestamp()))::bigint * 1000000 + clock_skew FROM source"
        return int(self.value(sql))

    def close(self):
        self._connection.close()


def _connect(url, password):
    given = {"password": password} if password else {}
    # To compile a query of bars takes longer than to run it.
    options = "-c search_path=mds -c default_transaction_read_only=on -c jit=off"
    try:
        import psycopg
    except ImportError:
        psycopg = None
    if psycopg is not None:
        return psycopg.connect(url, autocommit=True, options=options, **given)
    try:
        import psycopg2
    except ImportError as error:
        raise OpenError("PostgreSQL needs a driver: pip install psycopg (or psycopg2)") from error
    connection = psycopg2.connect(url, options=options, **given)
    connection.set_session(readonly=True, autocommit=True)
    return connection
