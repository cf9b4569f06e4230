import { join } from "node:path";
import { afterAll } from "vitest";
import type { Micros } from "../../../src/model/time.ts";
import type { ServeServer } from "../../../src/serve/serve-server.ts";
import { openWriter, type WarehouseWriter } from "../../../src/warehouse/writer.ts";
import { ManualClock } from "../manual-clock.ts";
import { WebSocketClient } from "../simulator/websocket-client.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { copyEmptyWarehouse } from "../warehouse/empty-warehouse.ts";
import { fill, STEP } from "../warehouse/filled-warehouse.ts";
import { tick } from "../warehouse/records.ts";
import { writeTicks } from "../warehouse/write-records.ts";
import { serveWarehouse } from "./filled-server.ts";

/** A warehouse with a writer of its own, and a server that reads it: both on a manual clock at noon, until the file's tests end. */
export class TickServer {
  readonly clock = new ManualClock("2026-03-01T12:00:00Z");
  readonly folder = temporaryFolder(afterAll);
  readonly path = join(this.folder, "mds.sqlite");
  readonly warehouse: WarehouseWriter;
  readonly clients: WebSocketClient[] = [];
  server: ServeServer | undefined;

  constructor() {
    copyEmptyWarehouse(this.path);
    this.warehouse = openWriter(this.path, { clock: this.clock });
    afterAll(async () => {
      for (const client of this.clients) client.socket.terminate();
      await this.server?.close();
      this.warehouse.close();
    });
  }

  async start(): Promise<ServeServer> {
    this.server = await serveWarehouse(this.path, this.clock);
    return this.server;
  }

  /** Stores a tick of each index at each timestamp. */
  writeTicks(
    indexIds: readonly string[],
    timestamps: readonly Micros[],
    indexType = "GWA",
    extra: string | null = null,
  ): void {
    this.warehouse.transaction((transaction) => {
      for (const indexId of indexIds) {
        const records = timestamps.map((ts) =>
          tick(ts, `${(ts / STEP) % 100_000}`, { indexType, indexId, extra }),
        );
        writeTicks(transaction, records);
      }
    });
  }

  /** Covers the range of an index, or says that it aged out. */
  cover(indexId: string, from: Micros, to: Micros, proof: "settled" | "lost" = "settled"): void {
    this.warehouse.transaction((transaction) =>
      fill(transaction, { series: [{ indexId, rows: [], [proof]: [[from, to]] }] }),
    );
  }

  /** The settings select these indices from `from` on. */
  select(indexIds: readonly string[], from: Micros): void {
    const series = indexIds.map((indexId) => ({ indexId, from, rules: { serviceWindow: null } }));
    this.warehouse.transaction((transaction) => fill(transaction, { series }));
  }

  async connect(query = ""): Promise<WebSocketClient> {
    const client = new WebSocketClient(`${this.server?.wsUrl}${query}`);
    this.clients.push(client);
    await client.waitFor("CONNECTED");
    return client;
  }

  async subscribe(client: WebSocketClient, body: Readonly<Record<string, unknown>>): Promise<void> {
    const before = client.messagesOf("SUBSCRIBED_INDEX_TICKER").length;
    client.send({ event: "SUBSCRIBE_INDEX_TICKER", ...body });
    await client.waitFor("SUBSCRIBED_INDEX_TICKER", before + 1);
  }

  /** Everything that was sent before has arrived. */
  async settle(client: WebSocketClient): Promise<void> {
    const pongs = client.messagesOf("PONG").length;
    client.send({ event: "PING" });
    await client.waitFor("PONG", pongs + 1);
  }
}
