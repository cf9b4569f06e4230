import { boundChecks } from "./bound-check.ts";
import { claimChecks } from "./claim-check.ts";
import { confirmChecks } from "./confirm-check.ts";
import { ledgerChecks } from "./ledger-check.ts";
import { liveChecks } from "./live-check.ts";
import { pageChecks } from "./page-check.ts";
import type { PartCheck } from "./part-check.ts";
import { snapshotChecks } from "./snapshot-check.ts";

/** The checks of single functions of the rule, the quickest first. */
export const partChecks: readonly PartCheck[] = [
  ...ledgerChecks,
  ...liveChecks,
  ...pageChecks,
  ...snapshotChecks,
  ...confirmChecks,
  ...claimChecks,
  ...boundChecks,
];
