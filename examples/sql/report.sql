-- What the ledger proves about a day, how much the series moved, and what it is worth:
-- mds-sync query --format csv --param name=BTC --param day=yesterday - < examples/sql/report.sql      (or day=2026-02-28)
WITH chosen(day) AS (SELECT iif(:day = 'yesterday', date('now', '-1 day'), :day)),
asked AS (SELECT day, unixepoch(day) * 1000000 AS from_ts, unixepoch(day, '+1 day') * 1000000 AS to_ts FROM chosen),
bars AS (
  SELECT ts, close, ts - lag(ts) OVER (ORDER BY ts) AS step, lag(close) OVER (ORDER BY ts) AS before FROM bars_15m, asked
  WHERE index_type = 'GWA' AND name = :name AND ts >= from_ts AND ts < to_ts AND is_complete),
moves AS (SELECT ln(close / before) AS move FROM bars WHERE step = 15 * 60000000),
ticks AS (
  SELECT count(*) AS n, max(price) AS highest FROM index_ticks, asked
  WHERE index_type = 'GWA' AND name = :name AND ts >= from_ts AND ts < to_ts),
missing AS (
  SELECT count(*) AS n FROM gaps g, asked a
  WHERE stream = 'index_ticks' AND index_type = 'GWA' AND name = :name AND g.from_ts < a.to_ts AND g.to_ts > a.from_ts)
SELECT t.name, day, missing.n AS missing_ranges, (SELECT count(*) FROM bars) AS bars,
  (SELECT round(sqrt((sum(move * move) - sum(move) * avg(move)) / (count(*) - 1)), 6) FROM moves) AS volatility,
  ticks.n AS ticks, highest, t.price AS last_price, t.time AS last_time
FROM latest_index_ticks t, asked, ticks, missing WHERE t.index_type = 'GWA' AND t.name = :name;
