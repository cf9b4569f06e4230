"""Reads every view of a warehouse by each of its keys and names in the order of time, and prints the queries that are out of order.

Argument: the file. The order that is expected is Python's own, of the rows that the query gave.
"""

import json
import sqlite3
import sys
from collections import Counter

KEYS = (
    *(("index_type",), ("index_id",), ("name",), ("index_type", "index_id"), ("index_type", "name")),
    *(("exchange_id",), ("market_id",), ("exchange",), ("pair",), ("exchange_id", "market_id"), ("exchange", "pair")),
    *(("contract_id",), ("contract",), ("exchange_name",), ("derivative_type",), ("derivative_type", "contract_id")),
    *(("asset_id",), ("symbol",), ("stream",), ("stream", "index_type", "index_id"), ("stream", "name"), ()),
)
TIMES = ("ts", "day", "first_ts", "from_ts")


def open_copy(path: str) -> sqlite3.Connection:
    """A copy in memory with few rows: the plan of a query does not depend on their number."""
    copy = sqlite3.connect(":memory:")
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as file:
        file.backup(copy)
    for table in ("index_tick_rows", "kept_bars"):
        copy.execute(f"DELETE FROM {table} WHERE ts < (SELECT max(ts) FROM {table}) - 3 * 3600 * 1000000")
    copy.execute("DELETE FROM index_tick_rows WHERE ts / 30000000 % 16 > 0")
    copy.execute("DELETE FROM daily_bar_rows WHERE ts < (SELECT max(ts) FROM daily_bar_rows) - 5 * 86400 * 1000000")
    # Two contracts of each type.
    copy.execute("""DELETE FROM derivative_tick_slots WHERE slot & 16777215 NOT IN (SELECT c.contract FROM (
        SELECT contract, row_number() OVER (PARTITION BY derivative_type ORDER BY contract) AS place
        FROM contracts WHERE contract IN (SELECT contract FROM derivative_tick_rows)) c WHERE c.place <= 2)""")
    copy.row_factory = sqlite3.Row
    return copy


def queries(view: str, time: str, where: str):
    """Every query with the direction of its order, and whether it tells the time of the row before."""
    # The time alone: SQLite omits the most joins.
    for direction in ("ASC", "DESC"):
        yield f"SELECT {time} FROM {view}{where} ORDER BY {time} {direction}", direction, False
        before = f"lag({time}) OVER (ORDER BY {time} {direction}) AS row_before"
        yield f"SELECT {time}, {before} FROM {view}{where}", direction, True


def is_in_order(rows: list, time: str, direction: str, has_before: bool) -> bool:
    times = [row[time] for row in rows]
    ordered = sorted(times, reverse=direction == "DESC")
    if has_before:
        return Counter((row[time], row["row_before"]) for row in rows) == Counter(zip(ordered, [None, *ordered]))
    return times == ordered and len(times) > 0


def main() -> None:
    database = open_copy(sys.argv[1])
    tried, wrong = Counter(), []
    for (view,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'view' ORDER BY name").fetchall():
        rows = database.execute(f"SELECT * FROM {view}").fetchall()
        columns = rows[0].keys() if rows else []
        for time in set(TIMES).intersection(columns):
            for key in KEYS:
                if not set(key) <= set(columns):
                    continue
                found = Counter(tuple(row[name] for name in key) for row in rows)
                values = max((found[each], each) for each in found if None not in each)[1] if key else ()
                where = f" WHERE {' AND '.join(f'{name} = ?' for name in key)}" if key else ""
                for sql, direction, has_before in queries(view, time, where):
                    tried[view] += 1
                    if not is_in_order(database.execute(sql, values).fetchall(), time, direction, has_before):
                        wrong.append(sql)
    print(json.dumps({"version": sqlite3.sqlite_version, "tried": tried, "wrong": wrong}))


main()
