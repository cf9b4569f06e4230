import { BarAggregate, type BarFigures, toTickFigures } from "../../model/answers/bar-aggregate.ts";
import { MICROS_PER_DAY, MICROS_PER_MS, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Clock } from "../../runtime/clock.ts";
import { type ForwardedRow, forwardedColumns } from "../../warehouse/read/forwarded-rows.ts";
import { formatDigits } from "../../warehouse/rows/kept-bars.ts";
import { parseRowDetails } from "../../warehouse/tables/row-tables.ts";
import { barDecimals } from "../../warehouse/views/bar-views.ts";
import { keptLengths } from "../schema/bar-views.ts";
import type { Lease } from "../server/lease.ts";
import type { SharedDictionaries } from "./dictionaries.ts";

/*
 * Bars in PostgreSQL, kept beside the ticks that they are computed from: schema/bar-views.ts. A transaction that changes
 * ticks computes the bars whose ticks it contains all, and marks the others.
 */

const MAX_BARS_PER_TRANSACTION = 1_000;
/** After an upgrade every bar is stale: rows are forwarded in between. */
const MAX_COMPUTE_MS = 10_000;

interface BarKey {
  /** The key of PostgreSQL. */
  readonly series: number;
  readonly length: Micros;
  readonly ts: Micros;
}

/** Without figures: it is stale. */
interface KeptBar extends BarKey {
  readonly figures?: BarFigures | undefined;
}

interface Tick {
  readonly ts: Micros;
  readonly price: number | null;
  readonly volume: number | null;
  readonly details: string | null;
}

const figureColumns = [...barDecimals.map(({ name }) => name), "n_ticks", "n_doubtful", "details"];

/** The content of a range of a series in the SQLite file. */
interface TickRange {
  readonly unit: { readonly key: number; readonly range: TimeRange; readonly kind: string };
  readonly rows: readonly ForwardedRow[];
}

const places = ["price", "volume", "details"].map((name) => forwardedColumns("index_ticks").indexOf(name));

function toTick(row: ForwardedRow): Tick {
  const [price, volume, details] = places.map((place) => row[place]);
  return { ts: row[1], price, volume, details } as Tick;
}

/** The bars of these ticks, which are in order of time; with figures if the bar lies in `complete`. */
function findBars(series: number, ticks: readonly Tick[], complete: TimeRange | undefined): KeptBar[] {
  return keptLengths.flatMap((length) => {
    const bars: KeptBar[] = [];
    const bar = new BarAggregate();
    let ts = Number.NaN;
    const end = () => {
      if (Number.isNaN(ts)) return;
      const isComplete = complete !== undefined && complete.from <= ts && complete.to >= ts + length;
      const figures = bar.finish();
      bars.push({ series, length, ts, figures: isComplete ? figures : undefined });
    };
    for (const tick of ticks) {
      if (!(tick.ts < ts + length)) {
        end();
        ts = Math.floor(tick.ts / length) * length;
      }
      if (tick.price === null) continue;
      if (tick.details === null) bar.addPlainTick(tick.price, tick.volume);
      else bar.add(toTickFigures(tick.price, tick.volume, parseRowDetails(tick.details)));
    }
    end();
    return bars;
  });
}

/** Marks the bars that a range touches. */
export function markStaleSql(series: number, { from, to }: TimeRange): string {
  return `UPDATE mds.kept_bars SET n_ticks = NULL WHERE series = ${series} AND n_ticks IS NOT NULL
    AND ts > ${from - MICROS_PER_DAY} AND ts + length > ${from} AND ts < ${to}`;
}

const keyOf = ({ series, length, ts }: BarKey) => `${series}, ${length}, ${ts}`;

export class KeptBars {
  readonly #lease: Lease;
  readonly #dictionaries: SharedDictionaries;

  constructor(lease: Lease, dictionaries: SharedDictionaries) {
    this.#lease = lease;
    this.#dictionaries = dictionaries;
  }

  /** SQL that keeps or marks the bars of ranges, after their ticks. */
  writeSql(ranges: readonly TickRange[]): string[] {
    const bars = ranges.flatMap(({ unit: { key, range, kind }, rows }) => {
      const series = this.#dictionaries.keyOf("series", key);
      return findBars(series, rows.map(toTick), kind === "replace" ? range : undefined);
    });
    return this.#storeSql(bars);
  }

  #storeSql(bars: readonly KeptBar[]): string[] {
    if (bars.length === 0) return [];
    // PostgreSQL refuses a statement that writes a row twice.
    const unique = [...new Map(bars.map((bar) => [keyOf(bar), bar])).values()];
    const values = unique.map((bar) => {
      const { open, high, low, close, volume, ticks, doubtful } = bar.figures ?? {};
      const digits = bar.figures && formatDigits(bar.figures);
      const figures = [open, high, low, close, volume, ticks, doubtful].map((value) => value ?? "NULL");
      return `(${keyOf(bar)}, ${figures.join(", ")}, ${this.#lease.session.literal(digits ?? null)})`;
    });
    return [
      `INSERT INTO mds.kept_bars (series, length, ts, ${figureColumns.join(", ")}) VALUES ${values.join(", ")}
      ON CONFLICT (series, length, ts) DO UPDATE SET ${figureColumns.map((name) => `${name} = excluded.${name}`).join(", ")}
      WHERE kept_bars.n_ticks IS NOT NULL OR excluded.n_ticks IS NOT NULL`,
    ];
  }

  /** Computes stale bars that are over: another would be stale again with the next tick. */
  async compute(clock: Pick<Clock, "now" | "monotonic">): Promise<void> {
    const startedAt = clock.monotonic();
    const now = Math.floor(clock.now() * MICROS_PER_MS);
    for (let count = MAX_BARS_PER_TRANSACTION; count === MAX_BARS_PER_TRANSACTION; ) {
      const stale = await this.#lease.session.query<BarKey>(
        `SELECT series, length::double precision AS length, ts::double precision AS ts FROM mds.kept_bars
        WHERE n_ticks IS NULL AND ts + length <= ${now} ORDER BY series, ts LIMIT ${MAX_BARS_PER_TRANSACTION}`,
      );
      count = stale.length;
      if (count === 0 || clock.monotonic() - startedAt > MAX_COMPUTE_MS) return;
      await this.#lease.transaction(() => this.#compute(stale));
    }
  }

  async #compute(stale: readonly BarKey[]): Promise<void> {
    const { session } = this.#lease;
    const keys = new Set(stale.map(keyOf));
    const found: KeptBar[] = [];
    const dayOf = ({ series, ts }: BarKey) => `${series} ${Math.floor(ts / MICROS_PER_DAY)}`;
    for (const group of Map.groupBy(stale, dayOf).values()) {
      const series = group[0]?.series ?? 0;
      const from = Math.min(...group.map(({ ts }) => ts));
      const to = Math.max(...group.map(({ ts, length }) => ts + length));
      const ticks = await session.query<Tick>(
        `SELECT ts::double precision AS ts, price, volume, details::text AS details FROM mds.index_tick_rows
        WHERE series = ${series} AND ts >= ${from} AND ts < ${to} AND price IS NOT NULL ORDER BY ts`,
      );
      found.push(...findBars(series, ticks, { from, to }).filter((bar) => keys.has(keyOf(bar))));
    }
    const gone = `DELETE FROM mds.kept_bars WHERE (series, length, ts) IN (${[...keys].map((key) => `(${key})`).join(", ")})`;
    await session.query([gone, ...this.#storeSql(found)].join("; "));
  }
}
