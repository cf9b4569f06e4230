import { decimalColumns, fromAside, timeText } from "./view-expressions.ts";

const known = (
  from: string,
  until: string,
) => `${from} AS known_from_ts, ${timeText(from)} AS known_from_time,
  ${until} AS known_until_ts, ${timeText(until)} AS known_until_time`;

/**
 * Every version of every tick with the time during which it was what the warehouse said. A correction or a withdrawal
 * ends one version; the next begins with it. When the first version of a row arrived is not kept (it would cost eight
 * bytes a tick): its beginning is null, which reads as "from the start".
 */
export const versionViews: Record<string, string> = {
  index_tick_versions: `WITH changes AS (
  SELECT v.key, v.ts, v.before, v.changed_at, lag(v.changed_at) OVER (PARTITION BY v.key, v.ts ORDER BY v.revision) AS since
  FROM revision_rows v WHERE v.stream = 'index_ticks'
),
latest AS (
  SELECT v.key, v.ts, max(v.changed_at) AS since FROM revision_rows v WHERE v.stream = 'index_ticks' GROUP BY v.key, v.ts
)
SELECT s.index_type, s.index_id, s.name, r.ts, ${timeText("r.ts")} AS time,
  ${decimalColumns("r", "price")}, ${decimalColumns("r", "volume")},
  ${known("c.since", "NULL")}, ${fromAside("r", "quality")} AS quality
FROM series s CROSS JOIN index_tick_rows r ON r.series = s.series
  LEFT JOIN latest c ON c.key = r.series AND c.ts = r.ts
UNION ALL
SELECT s.index_type, s.index_id, s.name, c.ts, ${timeText("c.ts")},
  CAST(json_extract(c.before, '$.price') AS REAL), json_extract(c.before, '$.price'),
  CAST(json_extract(c.before, '$.volume') AS REAL), json_extract(c.before, '$.volume'),
  ${known("c.since", "c.changed_at")}, json_extract(c.before, '$.quality')
FROM series s CROSS JOIN changes c ON c.key = s.series`,
};
