import type { Micros } from "../../model/time.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, createFinding } from "./audited-key.ts";
import { createRowSeeks } from "./row-seeks.ts";

const flagSql = "SELECT is_settled FROM index_ticks WHERE index_type = ? AND index_id = ? AND ts = ?";

/**
 * `is_settled` can only change where a settled range begins or ends, so the rows on both sides of each of these points
 * stand for all others.
 */
export function checkSettledFlag({ connection }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const { key, names, settled } = audited;
  if (key.stream !== "index_ticks" || names === null) return [];
  const seeks = createRowSeeks(connection, audited);
  const flags = connection.statement<0 | 1>(flagSql).pluck();
  const [min, max] = [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER];
  const edges = new Set(settled.flatMap(({ from, to }) => [from, to]));
  const rows = new Set<Micros>();
  for (const edge of edges) {
    const [before, after] = [seeks.last({ from: min, to: edge }), seeks.first({ from: edge, to: max })];
    if (before !== undefined) rows.add(before);
    if (after !== undefined) rows.add(after);
  }
  return [...rows].flatMap((ts) => {
    const range = settled.findLast(({ from }) => from <= ts);
    const expected = range !== undefined && ts < range.to && range.proof !== "lost" ? 1 : 0;
    const shown = flags.get([names.indexType, names.indexId, ts]);
    if (shown === expected) return [];
    const text = `is_settled is ${shown ?? "missing"} in the view index_ticks, but the ledger says ${expected}`;
    return [createFinding(audited, "is_settled", { from: ts, to: ts + 1 }, text)];
  });
}
