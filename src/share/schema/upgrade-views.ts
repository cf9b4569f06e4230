import { dependentsFailure } from "../server/postgres-errors.ts";
import { BUILD_TIMEOUT_MS, type SharedSession } from "../server/session.ts";
import { dropFunctionStatements } from "./functions.ts";

/** A view as it is, beside what it is to become. */
interface ViewState {
  readonly name: string;
  readonly isEqual: boolean;
  /** It has all its columns in their places, and may have more. */
  readonly isExtended: boolean;
  readonly dependents: readonly string[];
  /** GRANT statements: a view that is created anew has none. */
  readonly grants: readonly string[];
}

const INCOMING = "pg_temp.incoming_";

const columnsSql = (view: string) =>
  `ARRAY(SELECT a.attname || ' ' || format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = ${view} AND a.attnum > 0 ORDER BY a.attnum)`;

const grantsSql = (
  acl: string,
  of: string,
) => `SELECT format('GRANT %s${of} ON mds.%I TO %s%s', x.privilege_type, v.relname,
    CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END, CASE WHEN x.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM aclexplode(${acl}) x WHERE x.grantee <> v.relowner`;

const statesSql = `SELECT v.relname AS name, pg_get_viewdef(v.oid) = pg_get_viewdef(n.oid) AS "isEqual",
  ${columnsSql("v.oid")} = (${columnsSql("n.oid")})[1:(SELECT count(*) FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attnum > 0)] AS "isExtended",
  ARRAY(SELECT DISTINCT w.ev_class::regclass::text FROM pg_depend d JOIN pg_rewrite w ON w.oid = d.objid
    WHERE d.classid = 'pg_rewrite'::regclass AND d.refobjid = v.oid AND w.ev_class <> v.oid) AS dependents,
  ARRAY(${grantsSql("v.relacl", "")} UNION ALL SELECT g.text FROM pg_attribute a CROSS JOIN LATERAL
    (${grantsSql("a.attacl", " (' || quote_ident(a.attname) || ')")}) g(text) WHERE a.attrelid = v.oid AND a.attacl IS NOT NULL) AS grants
FROM pg_class v JOIN pg_class n ON n.relname = left('incoming_' || v.relname, 63) AND n.relnamespace = pg_my_temp_schema()
WHERE v.relnamespace = 'mds'::regnamespace`;

/**
 * Inside a transaction: creates views, or replaces in place those that differ, so that grants and the views that users have
 * made over them stay. A view that loses a column or changes one is created anew, with its grants; not if a user's view
 * reads it.
 */
export async function upgradeViews(
  session: SharedSession,
  views: Readonly<Record<string, string>>,
): Promise<void> {
  const all = Object.entries(views);
  const existing = await session.query<{ name: string }>(
    "SELECT relname AS name FROM pg_class WHERE relnamespace = 'mds'::regnamespace AND relkind = 'v'",
  );
  const known = new Set(existing.map(({ name }) => name));
  const incoming = all.filter(([name]) => known.has(name));
  const create = (place: string, [name, sql]: readonly [string, string]) => `${place}${name} AS ${sql}`;
  const statements = all.filter(([name]) => !known.has(name)).map((view) => create("CREATE VIEW mds.", view));
  if (incoming.length > 0) {
    await session.query(incoming.map((view) => create(`CREATE VIEW ${INCOMING}`, view)).join(";\n"));
    const states = new Map((await session.query<ViewState>(statesSql)).map((state) => [state.name, state]));
    for (const view of incoming) statements.push(...replaceStatements(session, view, states.get(view[0])));
    statements.push(`DROP VIEW ${incoming.map(([name]) => `${INCOMING}${name}`).join(", ")}`);
  }
  await session.query(statements.join(";\n"), undefined, BUILD_TIMEOUT_MS);
}

function replaceStatements(
  session: SharedSession,
  [name, sql]: readonly [string, string],
  state: ViewState | undefined,
): string[] {
  if (!state) throw new Error(`view mds.${name} cannot be compared`);
  if (state.isEqual) return [];
  if (state.isExtended) return [`CREATE OR REPLACE VIEW mds.${name} AS ${sql}`];
  if (state.dependents.length > 0) throw dependentsFailure(session.server, name, state.dependents);
  return [
    ...dropFunctionStatements,
    `DROP VIEW mds.${name}`,
    `CREATE VIEW mds.${name} AS ${sql}`,
    ...state.grants,
  ];
}
