import type { Micros } from "../model/time.ts";
import { subtract, type TimeRange } from "../model/time-range.ts";
import { readRange, readRowKeys } from "../warehouse/read/forwarded-rows.ts";
import { openReader } from "../warehouse/reader.ts";
import {
  digestTicks,
  type HeldDay,
  listWholeDays,
  readMovedTo,
  type SeriesDay,
} from "../warehouse/rows/moved-rows.ts";
import { type Connection, SMALL_CACHE_KIB } from "../warehouse/sqlite/connection.ts";
import { readJournalPosition } from "../warehouse/tables/journal.ts";
import { rangesOf } from "./ledger-difference.ts";
import { readSchemaVersion, SCHEMA_VERSION } from "./schema/migrate.ts";
import { describePlace, parseServerAddress } from "./server/server-address.ts";
import { SharedSession } from "./server/session.ts";
import type { ShareOptions } from "./share-once.ts";
import { SharedDictionaries } from "./tables/dictionaries.ts";
import { SharedRows } from "./tables/row-store.ts";

/** Days of one answer: they leave the warehouse before more are compared. */
export const MAX_HELD_DAYS = 500;
/** More than any index has in a day: ticks are published every 30 seconds. */
const MAX_TICKS_PER_DAY = 200_000;

export interface HeldDaysRequest {
  /** The days end at this time or before. */
  readonly before: Micros;
  /** Undefined: any day of the SQLite file. */
  readonly among?: readonly HeldDay[];
}

export interface HeldDaysResult {
  /** At most `MAX_HELD_DAYS`, unless the request names the days. */
  readonly held: readonly HeldDay[];
  /** Days that PostgreSQL has proven with other rows. */
  readonly unequal: number;
  /** Ranges that were moved there, and that it does not have. */
  readonly lacking: readonly (TimeRange & { readonly series: number })[];
}

const MIN_TS = Number.MIN_SAFE_INTEGER;

/**
 * Finds the days of index ticks that PostgreSQL has: proven as a whole, and with the same rows as the SQLite file. It needs
 * no lease and writes nothing, so a standby can do it too.
 */
export async function findHeldDays(
  options: Pick<ShareOptions, "warehouse" | "url" | "readPassword" | "clock" | "signal">,
  { before, among }: HeldDaysRequest,
): Promise<HeldDaysResult> {
  const { warehouse, url, readPassword, clock, signal } = options;
  const address = parseServerAddress(url);
  const connection = openReader(warehouse, SMALL_CACHE_KIB);
  let session: SharedSession | undefined;
  try {
    session = await SharedSession.connect({ address, readPassword, holder: "mds-sync retention", clock });
    // A daemon that forwards creates or upgrades it.
    if ((await readSchemaVersion(session)) !== SCHEMA_VERSION) return { held: [], unequal: 0, lacking: [] };
    const dictionaries = new SharedDictionaries(session);
    await dictionaries.load();
    dictionaries.match(connection);
    const rows = new SharedRows(session, dictionaries);
    await rows.loadLedger();
    const ledgerOf = (series: number) => rows.ledgerFor("index_ticks", series);
    const held: HeldDay[] = [];
    let unequal = 0;
    for (const day of among ?? listCandidates(connection, before)) {
      signal.throwIfAborted();
      if (!among && held.length >= MAX_HELD_DAYS) break;
      if (subtract([day], rangesOf(ledgerOf(day.series), "rows")).length > 0) continue;
      const compared = await compareDay(connection, rows, day);
      if (compared === "unequal") unequal++;
      else if (compared) held.push({ ...compared, digest: "digest" in day ? day.digest : compared.digest });
    }
    const lacking = readMovedTo(connection, describePlace(address)).flatMap(({ series, ...range }) =>
      // A month that was moved out of PostgreSQL is not lost.
      subtract([range], rangesOf(ledgerOf(series), "rows", "moved")).map((part) => ({ series, ...part })),
    );
    return { held, unequal, lacking };
  } finally {
    await session?.close();
    connection.close();
  }
}

function listCandidates(connection: Connection, before: Micros): SeriesDay[] {
  const keys = readRowKeys(connection, "index_ticks");
  return listWholeDays(connection, { keys, from: MIN_TS, to: before }).sort((a, b) => a.from - b.from);
}

/** The position is read first: a change after it keeps the day here. */
async function compareDay(
  connection: Connection,
  rows: SharedRows,
  { series, from, to }: SeriesDay,
): Promise<HeldDay | "unequal" | undefined> {
  const { seq } = readJournalPosition(connection);
  const digest = digestTicks(connection, series, { from, to });
  if (digest === undefined) return undefined;
  const key = { stream: "index_ticks", key: series } as const;
  const expected = readRange(connection, key, { from, to }, MAX_TICKS_PER_DAY);
  const found = await rows.readRows("index_ticks", series, { from, to });
  if (expected.to !== to || !found.equals(rows.encode("index_ticks", expected.rows))) return "unequal";
  return { series, from, to, digest, changesUntil: seq };
}
