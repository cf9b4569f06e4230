import type { Confirmations } from "../../model/status/confirmations.ts";
import { END_REASON, type GapRow, NOT_FOUND_REASON } from "../../model/status/gap-state.ts";
import { formatTimestamp } from "../../model/time.ts";
import type { PendingClaim } from "../../rule/claim.ts";
import { type ConfirmationRules, isIncident, nextAskAt } from "../../rule/confirm.ts";
import { type NamedLedgerKey, namedKeyText } from "../coverage/ledger-keys.ts";
import type { Connection } from "../sqlite/connection.ts";

/**
 * How many of the gaps are claims that the service must repeat, and when it is asked about the last of them. `keys`: of which the
 * gaps are; undefined: all. Heads do not count.
 */
export function readConfirmations(
  connection: Connection,
  gaps: readonly Pick<GapRow, "reason">[],
  rules: ConfirmationRules | undefined,
  keys?: ReadonlySet<string>,
): Confirmations {
  const count = (reason: string) => gaps.filter((gap) => gap.reason === reason).length;
  const [starts, not_found] = [count(END_REASON), count(NOT_FOUND_REASON)];
  if (!rules || starts + not_found === 0) return { starts, not_found, due_at: null };
  const sql = `SELECT m.stream, s.index_type, s.index_id, m.kind, m.last_at AS lastAt
    FROM pending_claims m JOIN series s ON s.series = m.series WHERE m.accepted_at IS NULL`;
  const due = connection
    .rows<NamedLedgerKey & Pick<PendingClaim, "kind" | "lastAt">>(sql)
    .filter((claim) => !isIncident(claim.kind) && (keys?.has(namedKeyText(claim)) ?? true))
    .map((claim) => nextAskAt(claim, rules));
  return { starts, not_found, due_at: due.length === 0 ? null : formatTimestamp(Math.max(...due)) };
}
