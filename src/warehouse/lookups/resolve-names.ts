import { nearest } from "../../model/did-you-mean.ts";
import { exitCode, Failure } from "../../model/failure.ts";
import { type Candidate, select } from "../../model/selector.ts";
import type { Connection } from "../sqlite/connection.ts";

/** Something that people name: an asset (its GWA), a market (its MWA), an LX index, or an exchange. */
export interface NamedSeries {
  readonly id: string;
  /** Null for an exchange. */
  readonly indexType: string | null;
  readonly name: string;
}

interface KnownName extends NamedSeries {
  readonly label: string;
}

const knownNames = `
  SELECT index_id AS id, nullif(index_type, '') AS indexType, name, name AS label FROM series WHERE index_id <> ''
  UNION ALL SELECT id, 'GWA', symbol, symbol FROM assets
  UNION ALL SELECT id, 'GWA', symbol, name FROM assets
  UNION ALL SELECT id, 'MWA', pair, pair FROM markets
  UNION ALL SELECT id, NULL, name, name FROM exchanges`;

/** Finds what ids, symbols, pairs and names stand for, as the settings' selectors do. Throws for one that nobody knows. */
export function findNamed(
  connection: Connection,
  names: readonly string[],
): { readonly found: readonly NamedSeries[]; readonly shared: readonly string[] } {
  const known = connection.statement(knownNames).all() as KnownName[];
  const byId = Map.groupBy(known, ({ id }) => id);
  const candidates = [...byId].map(
    ([id, rows]): Candidate => ({ id, labels: rows.flatMap(({ label }) => label ?? []) }),
  );
  const { ids, unknown, shared } = select({ kind: "list", names }, candidates, undefined);
  const [first] = unknown;
  if (first !== undefined) throw nobodyKnows(first, candidates);
  return { found: ids.flatMap((id) => byId.get(id)?.slice(0, 1) ?? []), shared };
}

function nobodyKnows(name: string, candidates: readonly Candidate[]): Failure {
  if (candidates.length === 0) {
    return new Failure(`the warehouse knows no series yet, ${name} neither`, {
      family: "operator",
      code: "nothing_synced",
      remedy: "`mds-sync backfill` looks them up",
      exit: exitCode.incomplete,
    });
  }
  const meant = nearest(
    name,
    candidates.flatMap(({ labels }) => labels),
  );
  return new Failure(`the warehouse knows no series ${name}`, {
    family: "operator",
    code: "unknown_series",
    remedy: meant
      ? `did you mean ${meant}?`
      : "give the id, symbol, pair or name of one that the service lists",
    exit: exitCode.usage,
  });
}
