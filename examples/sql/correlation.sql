-- The correlation of hourly returns, of all pairs of assets, in DuckDB: duckdb -readonly export/mds.duckdb < examples/sql/correlation.sql
-- returns_1h has NULL where one of both hours is not proven whole, and corr ignores it.
SELECT a.name, b.name AS other, regr_count(a.simple_return, b.simple_return) AS hours,
  round(corr(a.simple_return, b.simple_return), 3) AS correlation
FROM returns_1h a JOIN returns_1h b ON b.time = a.time AND b.name > a.name
WHERE a.index_type = 'GWA' AND b.index_type = 'GWA'
GROUP BY ALL ORDER BY ALL;
