/*
 * Index ticks of a name by functions. PostgreSQL cannot stop after the newest rows of a view that joins names to rows; these
 * find the series first.
 */

const ts = (moment: string) => `(extract(epoch FROM ${moment}) * 1000000)::bigint`;
const ofSeries = "t.index_type = s.index_type AND t.index_id = s.index_id";
const newest = (rest: string) =>
  `SELECT r.ts FROM mds.index_tick_rows r WHERE r.series = s.series${rest} ORDER BY r.ts DESC LIMIT`;

interface SqlFunction {
  /** Name and parameters. */
  readonly signature: string;
  readonly body: string;
  readonly comment: string;
}

const functions: readonly SqlFunction[] = [
  {
    signature: `ticks(name text, "from" timestamptz, "to" timestamptz)`,
    body: `SELECT t.* FROM mds.index_ticks t WHERE t.name = $1 AND t.ts >= ${ts("$2")} AND t.ts < ${ts("$3")} ORDER BY t.ts`,
    comment: "The index ticks of a name from a time on and before another.",
  },
  {
    signature: "last_ticks(name text, n integer)",
    body: `SELECT t.* FROM mds.series s CROSS JOIN LATERAL (SELECT min(x.ts) AS ts FROM (${newest("")} $2) x) f
      JOIN mds.index_ticks t ON ${ofSeries} AND t.ts >= f.ts WHERE s.name = $1 ORDER BY t.ts DESC LIMIT $2`,
    comment: "The newest index ticks of a name, the newest first.",
  },
  {
    signature: "as_of(name text, at timestamptz)",
    body: `SELECT t.* FROM mds.series s CROSS JOIN LATERAL (${newest(` AND r.ts <= ${ts("$2")} AND r.price IS NOT NULL`)} 1) n
      JOIN mds.index_ticks t ON ${ofSeries} AND t.ts = n.ts WHERE s.name = $1`,
    comment:
      "The newest index tick of a name with a price at or before a time; one per index type of that name.",
  },
];

/** Run them after the views are created. */
export const functionStatements: readonly string[] = functions.flatMap(({ signature, body, comment }) => [
  `CREATE OR REPLACE FUNCTION mds.${signature} RETURNS SETOF mds.index_ticks LANGUAGE sql STABLE PARALLEL SAFE AS $$${body}$$`,
  `COMMENT ON FUNCTION mds.${signature} IS '${comment}'`,
]);
