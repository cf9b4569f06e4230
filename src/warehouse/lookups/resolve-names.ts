import { exitCode, Failure } from "../../model/failure.ts";
import {
  formatUnknownNames,
  resolveSelector,
  type Selection,
  type SelectorCandidate,
} from "../../model/selector.ts";
import type { Connection } from "../sqlite/connection.ts";

/** An asset (as its GWA index), a market (as its MWA index), an LX index, or an exchange. */
export interface NamedSeries {
  readonly id: string;
  /** Null for an exchange. */
  readonly indexType: string | null;
  readonly name: string;
}

interface KnownName extends NamedSeries {
  readonly label: string;
}

const knownNamesSql = `
  SELECT index_id AS id, nullif(index_type, '') AS indexType, name, name AS label FROM series WHERE index_id <> ''
  UNION ALL SELECT id, 'GWA', symbol, symbol FROM assets
  UNION ALL SELECT id, 'GWA', symbol, name FROM assets
  UNION ALL SELECT id, 'MWA', pair, pair FROM markets
  UNION ALL SELECT id, NULL, name, name FROM exchanges`;

/**
 * Resolves ids, symbols, pairs and names by the same rules as the selectors in the settings. Throws for an unknown
 * name. `ambiguous`: names of several series.
 */
export function resolveNames(
  connection: Connection,
  names: readonly string[],
): { readonly found: readonly NamedSeries[]; readonly ambiguous: readonly string[] } {
  const known = connection.statement<KnownName>(knownNamesSql).all();
  const byId = Map.groupBy(known, ({ id }) => id);
  const candidates = [...byId].map(
    ([id, rows]): SelectorCandidate => ({ id, labels: rows.flatMap(({ label }) => label ?? []) }),
  );
  const selection = resolveSelector({ kind: "list", names }, candidates, undefined);
  if (selection.unknownNames.length > 0) throw unknownSeries(selection, candidates.length > 0);
  const found = selection.ids.flatMap((id) => byId.get(id)?.slice(0, 1) ?? []);
  return { found, ambiguous: selection.ambiguousNames };
}

function unknownSeries(selection: Selection, hasSeries: boolean): Failure {
  const { unknownNames, suggestions } = selection;
  if (!hasSeries) {
    return new Failure(`the warehouse has no series yet: ${unknownNames.join(", ")} is unknown`, {
      code: "nothing_synced",
      remedy: "run `mds-sync backfill` first",
      exit: exitCode.incomplete,
    });
  }
  const [first = "", ...others] = unknownNames;
  const suggestion = others.length === 0 ? suggestions[first] : undefined;
  const names = others.length === 0 ? first : formatUnknownNames(selection);
  return new Failure(`the warehouse has no series ${names}`, {
    code: "unknown_series",
    remedy: suggestion
      ? `did you mean ${suggestion}?`
      : "give the id, symbol, pair or name of one that the service lists",
    exit: exitCode.usage,
  });
}
