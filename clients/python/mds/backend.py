"""What the sources share: one structured query, written as SQL."""

import re

import pandas as pd

from .errors import Unknowable

_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|::|:([A-Za-z_]\w*)")


def replace_parameters(query, write):
    """Replaces each `:name` outside of quotes and comments."""
    return _PARAMETER.sub(lambda found: write(found.group(1)) if found.group(1) else found.group(0), query)


class Backend:
    """What every source has, unless it says otherwise."""

    #: What the source is, for messages.
    kind = ""
    #: The reason of time that the ledger does not mention.
    unproven = "not selected"

    def at(self, known_at):
        """The same source as it was known then."""
        raise Unknowable(f"{self.kind} has no earlier states; open the warehouse file, mds.sqlite")

    def pinned(self):
        """The same source, in which nothing changes until it is closed."""
        return self

    def cite(self):
        """A token that names the newest state."""
        return self.at(None)

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

    def sql(self, query, values):
        names, rows = self.run(query, values)
        return pd.DataFrame.from_records(rows, columns=names)
