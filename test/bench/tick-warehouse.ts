import { MICROS_PER_DAY } from "../../src/model/time.ts";
import { systemClock } from "../../src/runtime/clock.ts";
import { computeStaleBars, hoursOf, markStale } from "../../src/warehouse/rows/kept-bars.ts";
import { addRowCount } from "../../src/warehouse/rows/stream-stats.ts";
import { openWriter } from "../../src/warehouse/writer.ts";

const CADENCE = 30_000_000;
/** The ticks of a series in the service's window of 200 days. */
export const TICKS_PER_SERIES = 576_000;
const HOURS_PER_SERIES = 200 * 24;
const FROM = 1_756_684_800_000_000;
export const TO = FROM + TICKS_PER_SERIES * CADENCE;

/** The CPU time of this process: on a busy machine the wall clock would tell more about the others. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** The name of a series, counted from 1. */
export const seriesName = (series: number) => `S${String(series).padStart(3, "0")}`;

/**
 * Fills a warehouse with 200 days of each series: random walks of prices and volumes with realistic digits. Inserts in key
 * order and bypasses the writer, which is fastest. The ledger has a target for each series, and all of it is covered; the
 * hourly bars are kept.
 */
export function fillWithTicks(path: string, seriesCount: number): void {
  const warehouse = openWriter(path, { clock: systemClock });
  try {
    const { database } = warehouse.connection;
    // The file is temporary: it need not survive a crash.
    database.pragma("synchronous = OFF");
    const series = database.prepare("INSERT INTO series (index_type, index_id, name) VALUES ('GWA', ?, ?)");
    const ticks = database.prepare(
      `WITH RECURSIVE n(i, price, volume, chance) AS (
        SELECT 0, @price, 1000000.0, @series UNION ALL
        SELECT i + 1, price * (1 + (chance % 2001 - 1000) / 2500000.0), volume * (1 + (chance / 7 % 2001 - 1000) / 1000000.0),
          (chance * 1103515245 + 12345) & 2147483647 FROM n WHERE i < ${TICKS_PER_SERIES - 1})
      INSERT INTO index_tick_rows (series, ts, price, volume, source)
      SELECT @series, ${FROM} + i * ${CADENCE}, round(price, @digits), round(volume, 4), 0 FROM n`,
    );
    const settled = database.prepare(
      "INSERT INTO settled_ranges VALUES ('index_ticks', ?, ?, ?, 'rows', NULL, NULL)",
    );
    const wanted = database.prepare(
      `INSERT INTO targets VALUES ('index_ticks', ?, ?, NULL, ${2 * CADENCE}, 1, ${200 * MICROS_PER_DAY}, 0, NULL, ${CADENCE})`,
    );
    for (let key = 1; key <= seriesCount; key++) {
      const magnitude = (key % 9) - 3;
      database.transaction(() => {
        series.run(`7c4a1f0e-0000-4000-8000-${String(key).padStart(12, "0")}`, seriesName(key));
        ticks.run({ series: key, price: 6.7 * 10 ** magnitude, digits: Math.max(2, 5 - magnitude) });
        settled.run(key, FROM, TO);
        wanted.run(key, FROM);
      })();
      warehouse.transaction((transaction) => {
        for (const hour of hoursOf({ from: FROM, to: TO }).reverse()) markStale(transaction, key, hour);
        computeStaleBars(transaction, HOURS_PER_SERIES);
        addRowCount(transaction, "index_ticks", TICKS_PER_SERIES, TO - CADENCE);
      });
    }
  } finally {
    warehouse.close();
  }
}
