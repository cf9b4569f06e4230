import type { Command } from "commander";
import { resolveKnownAt } from "../../../library/reading/read-plan.ts";
import { findTimeZone } from "../../../library/reading/time-zone.ts";
import type { Connection } from "../../../warehouse/sqlite/connection.ts";
import { citeState, showKnownAt } from "../../../warehouse/tables/known-at.ts";
import type { CommandContext } from "../../support/context.ts";

/** Flags of every command that can read an earlier state. */
export interface KnownAtFlags {
  readonly knownAt?: string | undefined;
  readonly cite?: boolean;
  /** The zone of `knownAt`. */
  readonly tz?: string | undefined;
}

/** `what`: what --cite writes. */
export function addKnownAtFlags(
  command: Command,
  what = "a token to stderr with which --known-at reproduces the answer",
): Command {
  return command
    .option(
      "--known-at <time>",
      "the answer as it was known then, without later changes; or a token of --cite",
    )
    .option("--cite", `write ${what}`);
}

/** Shows the state that the flags name. Call it in the transaction that reads. */
export function showState(
  connection: Connection,
  { knownAt, cite, tz }: KnownAtFlags,
  { stderr }: Pick<CommandContext, "stderr">,
): void {
  if (knownAt !== undefined) showKnownAt(connection, resolveKnownAt(connection, knownAt, findTimeZone(tz)));
  if (cite) stderr.write(`mds-sync: cite: ${citeState(connection)}\n`);
}
