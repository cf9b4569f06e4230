import { afterAll, beforeAll } from "vitest";
import type { CommitNews } from "../../../src/model/answers/ticks.ts";
import type { Transaction } from "../../../src/warehouse/tables/transaction.ts";
import { fillEverything, ticks } from "../export/sample-data.ts";
import { present } from "../present.ts";
import { DAY, STEP } from "../warehouse/filled-warehouse.ts";
import { writeTicks } from "../warehouse/write-records.ts";
import { serveFilled } from "./dashboard-harness.ts";

/** Rows of all streams, and the last day of three indices. */
function fillPages(transaction: Transaction): void {
  fillEverything(transaction);
  for (const indexId of ["btc-id", "eth-id", "usd-id"])
    writeTicks(transaction, ticks(DAY / STEP, present - DAY, { indexId }));
}

/** Serves the pages to all tests of a file as a daemon does that has nothing to do. */
export function servePages() {
  let served: Awaited<ReturnType<typeof serveFilled>>;
  beforeAll(async () => {
    served = await serveFilled(fillPages, afterAll);
  });
  return {
    address: () => served.address,
    /** Tells the pages, as a commit does, why the daemon is unhealthy. */
    setProblem: (problem: string | undefined) => {
      served.daemon.problem = problem;
      served.notifyCommit([{ streams: [], ticks: [], ranges: [] }]);
    },
    notifyCommit: (news: CommitNews) => served.notifyCommit([news]),
    write: (work: (transaction: Transaction) => void) => served.warehouse.transaction(work),
    query: <Row = Record<string, unknown>>(sql: string) => served.query<Row>(sql),
  };
}
