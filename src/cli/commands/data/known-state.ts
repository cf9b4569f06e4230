import { resolveKnownAt } from "../../../library/reading/read-plan.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";
import { citeState, showKnownAt } from "../../../warehouse/tables/known-at.ts";
import type { CommandContext } from "../../support/context.ts";

/** Flags of every command that can read an earlier state. */
export interface KnownAtFlags {
  readonly knownAt?: string;
  readonly cite?: boolean;
}

/** Shows the state that the flags name. Call it in the transaction that reads. */
export function showState(
  connection: Connection,
  { knownAt, cite }: KnownAtFlags,
  { stderr }: Pick<CommandContext, "stderr">,
): void {
  if (knownAt !== undefined) showKnownAt(connection, resolveKnownAt(connection, knownAt));
  if (cite) stderr.write(`mds-sync: cite: ${citeState(connection)}\n`);
}
