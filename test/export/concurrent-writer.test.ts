import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { exportIn, inCatalogue } from "../support/export/read-export.ts";
import { fillEverything, monthStart, openAt } from "../support/export/sample-data.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { DAY, STEP } from "../support/warehouse/filled-warehouse.ts";
import { tick } from "../support/warehouse/records.ts";
import { retract, settle } from "../support/warehouse/settle.ts";
import { writeTicks } from "../support/warehouse/write-records.ts";

it("beside a writer, an export covers only rows that it has, and all time is covered or a gap", async () => {
  const folder = temporaryFolder();
  const warehouse = openAt(folder);
  onTestFinished(() => warehouse.close());
  warehouse.transaction(fillEverything);
  const late = monthStart(3) + 20 * DAY;
  const doubted = { from: monthStart(2), to: monthStart(2) + 10 * STEP };
  let files = 0;
  let busy: unknown;
  await exportIn(folder, {
    onStep(step) {
      // The first file is this month's: its rows are written by now, those below come too late for it.
      if (step === "file stored" && ++files === 1) {
        warehouse.transaction((transaction) => {
          const line = {
            stream: "index_ticks",
            series: transaction.dictionary.getSeriesKey("GWA", "btc-id"),
          } as const;
          writeTicks(transaction, [tick(late, "5")]);
          settle(transaction, line, { from: late, to: late + STEP }, "rows");
          retract(transaction, line, doubted);
        });
      }
      if (step === "catalogue written")
        busy = warehouse.connection.database.pragma("wal_checkpoint(TRUNCATE)", { simple: true });
    },
  });
  const ask = (sql: string) => inCatalogue(join(folder, "export/mds.duckdb"), sql);
  const at = (moment: number) =>
    ask(`SELECT 'coverage' AS said, proof AS how FROM coverage WHERE stream = 'index_ticks' AND name = 'BTC'
        AND from_ts <= ${moment} AND to_ts > ${moment}
      UNION ALL SELECT 'gaps', reason FROM gaps WHERE stream = 'index_ticks' AND name = 'BTC' AND from_ts <= ${moment} AND to_ts > ${moment}`);
  expect(await ask(`SELECT count(*)::INTEGER FROM index_ticks WHERE ts = ${late}`)).toEqual([[0]]);
  expect(await at(late)).toEqual([["gaps", "pending"]]);
  expect(await at(doubted.from)).toEqual([["gaps", "not exported"]]);
  expect(await at(doubted.from - STEP)).toEqual([["coverage", "rows"]]);
  expect(await at(doubted.to)).toEqual([["coverage", "rows"]]);
  // No snapshot outlives its file: the writer's log can be cut back.
  expect(busy).toBe(0);
});
