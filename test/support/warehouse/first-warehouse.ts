import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { APPLICATION_ID, migrationsFolder } from "../../../src/warehouse/migrate.ts";

interface JournalEntry {
  idx: number;
  when: number;
  tag: string;
}
export const journal = (folder = migrationsFolder) =>
  JSON.parse(readFileSync(join(folder, "meta/_journal.json"), "utf8")) as { entries: JournalEntry[] };

export const digest = (path: string) => createHash("sha256").update(readFileSync(path)).digest("hex");

/** A file as the first version left it, written in plain SQL without any code of the present version. */
export function createFirstWarehouse(path: string): string {
  const [first] = journal().entries;
  const file = join(migrationsFolder, `${first?.tag}.sql`);
  const database = new Database(path);
  database.pragma("journal_mode = wal");
  database.exec(readFileSync(file, "utf8"));
  database.exec(`CREATE TABLE __drizzle_migrations (id SERIAL PRIMARY KEY, hash text NOT NULL, created_at numeric);
    INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('${digest(file)}', ${first?.when});
    PRAGMA application_id = ${APPLICATION_ID};
    PRAGMA user_version = 1;
    UPDATE warehouse_state SET epoch = 7, views = 'of the first version';
    CREATE VIEW index_ticks AS SELECT ts FROM index_tick_rows;
    INSERT INTO assets (id, symbol, name, first_seen, absences) VALUES ('btc-id', 'BTC', 'Bitcoin', '2026-01-01T00:00:00.000000Z', 0);
    INSERT INTO series VALUES (1, 'GWA', 'btc-id', 'BTC'), (2, '', 'kraken-id', 'Kraken');
    INSERT INTO listings VALUES (1, 'kraken-id', 'btc-usd-id', 'Kraken', 'BTC/USD');
    INSERT INTO contracts (contract, derivative_type, id, exchange_id, market_id, described, first_seen, absences) VALUES (1, 'futures', 'f1', 'kraken-id', 'btc-btc-id', 0, '2026-01-01T00:00:00.000000Z', 0);
    INSERT INTO market_rows (id, base_asset_id, quote_asset_id, first_seen, absences) VALUES ('btc-btc-id', 'btc-id', 'btc-id', '2026-01-01T00:00:00.000000Z', 0);
    INSERT INTO index_tick_rows VALUES (1, 1767225600000000, 60000.5, 12.25, 3, 1, NULL),
      (1, 1767225630000000, 0.1, NULL, NULL, 1, '{"price":"0.10000000000000000001"}');
    INSERT INTO daily_bar_rows (series, day, open, high, low, close, volume) VALUES (1, '2025-12-31', 1, 9, 0.5, 2, 100);
    INSERT INTO exchange_tick_rows VALUES (1, 1767225600000000, 60001, 60000, 60002, 5, 1767225500000000, 1, NULL);
    INSERT INTO market_cap_rows (series, ts, price, market_cap, rank, aside) VALUES (1, 1767225600000000, 60000, 1.2e12, 1,
      '{"extra":"{\\"pricePercentChange\\":{\\"change24h\\":\\"1.5\\"}}"}');
    INSERT INTO derivative_tick_rows (contract, ts, price) VALUES (1, 1767225600000000, 60010);
    INSERT INTO revision_rows VALUES (1, 'index_ticks', 1, 1767225600000000, '{"price":"1"}', NULL, 1767225700000000);
    INSERT INTO rejects VALUES (1, 'index_ticks', '2026-01-01T00:00:00.000000Z', 'no price', '{}', NULL);
    INSERT INTO settled_ranges VALUES ('index_ticks', 1, 1767225600000000, 1767225660000000, 'rows', NULL),
      ('exchange_ticks', 2, 1767225600000000, 1767225630000000, 'rows', NULL);
    INSERT INTO wanted_ranges VALUES ('index_ticks', 1, 1767225600000000, 1767225690000000, 60000000, 1, NULL, 0, NULL),
      ('exchange_ticks', 2, 1767225600000000, NULL, 60000000, 1, NULL, 1, NULL);
    INSERT INTO live_spans VALUES ('index_ticks', 'GWA', 1767225600000000, 1767225660000000);
    INSERT INTO stream_states VALUES ('index_ticks', 2, 1767225630000000, NULL, NULL, '[]');`);
  database.close();
  return path;
}
