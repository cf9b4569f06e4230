-- What the ledger proves about a series, how much it moves, and what it is worth: mds-sync query --param name=BTC - < report.sql
WITH returns AS (
  SELECT ln(close / lag(close) OVER (ORDER BY ts)) AS change FROM bars_15m WHERE index_type = 'GWA' AND name = :name AND is_complete),
missing AS (
  SELECT count(*) AS ranges, min(from_time) AS first FROM gaps
  WHERE stream = 'index_ticks' AND index_type = 'GWA' AND name = :name AND state <> 'unconfirmed')
SELECT t.name, m.ranges AS missing_ranges, m.first AS first_missing,
  (SELECT round(sqrt(avg(change * change) - avg(change) * avg(change)), 6) FROM returns) AS volatility_15m,
  (SELECT max(price) FROM index_ticks WHERE index_type = 'GWA' AND name = :name) AS highest,
  t.price_exact AS last_price, t.time AS last_time
FROM latest_index_ticks t, missing m WHERE t.index_type = 'GWA' AND t.name = :name;
