import type { Decimal } from "./decimal.ts";
import type { IndexTick } from "./records.ts";

/**
 * Ticks of one index in columns: a page is a few arrays instead of thousands of objects, and threads pass it on without
 * copying it. The ticks have no `name`, `quality` and `extra`.
 */
export interface TickColumns {
  readonly indexType: string;
  readonly indexId: string;
  readonly ts: Column;
  readonly price: Column;
  /** Undefined: null in every tick. */
  readonly volume: Column | undefined;
  readonly tickVolume: Column | undefined;
  /** By row: the digits of decimals that a double does not hold. */
  readonly exact: ReadonlyMap<number, ExactDigits>;
}

type Column = Float64Array<ArrayBuffer>;
export type DecimalColumn = "price" | "volume" | "tickVolume";
export type ExactDigits = Partial<Record<DecimalColumn, string>>;

/** Whether a tick has a price and a volume that doubles hold exactly, and nothing else. */
export function isPlainTick({ volume, tickVolume, exact }: TickColumns, row: number): boolean {
  return volume !== undefined && tickVolume === undefined && !(exact.size > 0 && exact.has(row));
}

export function tickAt(columns: TickColumns, row: number): IndexTick {
  const { indexType, indexId, ts, exact } = columns;
  const digits = exact.get(row);
  const decimalOf = (name: DecimalColumn): Decimal | null => {
    const real = columns[name]?.[row];
    return real === undefined ? null : { real, exact: digits?.[name] ?? null };
  };
  return {
    indexType,
    indexId,
    ts: ts[row] as number,
    price: decimalOf("price"),
    volume: decimalOf("volume"),
    tickVolume: decimalOf("tickVolume"),
    name: null,
    quality: null,
    extra: null,
  };
}

export function toTicks(columns: TickColumns): IndexTick[] {
  return Array.from(columns.ts, (_, row) => tickAt(columns, row));
}

/** The plain ticks in columns, in the same order; appends the others to `others`. All must be of one index. */
export function collectPlainTicks(ticks: readonly IndexTick[], others: IndexTick[]): TickColumns {
  const { ts, price, volume } = allocateColumns(ticks.length);
  let rows = 0;
  for (const tick of ticks) {
    if (
      tick.price?.exact !== null ||
      tick.volume?.exact !== null ||
      (tick.tickVolume ?? tick.quality ?? tick.extra) !== null
    ) {
      others.push(tick);
      continue;
    }
    ts[rows] = tick.ts;
    price[rows] = tick.price.real;
    volume[rows++] = tick.volume.real;
  }
  const { indexType = "", indexId = "" } = ticks[0] ?? {};
  return {
    indexType,
    indexId,
    ts: ts.subarray(0, rows),
    price: price.subarray(0, rows),
    volume: volume.subarray(0, rows),
    tickVolume: undefined,
    exact: new Map(),
  };
}

/** Columns of the same length in one piece of memory. */
export function allocateColumns(rows: number): Readonly<Record<"ts" | DecimalColumn, Column>> {
  const bytes = rows * Float64Array.BYTES_PER_ELEMENT;
  const memory = new ArrayBuffer(4 * bytes);
  const column = (i: number) => new Float64Array(memory, i * bytes, rows);
  return { ts: column(0), price: column(1), volume: column(2), tickVolume: column(3) };
}
