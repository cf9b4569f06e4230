import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { defaultChoices } from "../../src/api-server/choices.ts";
import { respondToPath } from "../../src/api-server/endpoints.ts";
import { serviceScopes } from "../../src/model/streams.ts";
import { readState } from "../../src/serve/warehouse-source.ts";
import { openReader } from "../../src/warehouse/reader.ts";
import type { Figure } from "./figures.ts";
import { cpuMs, fillWithTicks, TICKS_PER_SERIES, TO } from "./tick-warehouse.ts";

const scopes: ReadonlySet<string> = new Set(serviceScopes);
const choices = {
  ...{ ...defaultChoices, sizeBesideStartAfter: "honoured" as const, ids: "opaque" as const },
  noData: "empty" as const,
};

/** Pages of the service's API from a warehouse. */
export async function benchServe(): Promise<readonly Figure[]> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "mds-bench-serve-"));
  const path = join(folder.path, "mds.sqlite");
  fillWithTicks(path, 1);
  return [
    {
      ...{ name: "rows in pages of 2,000, a core", atLeast: 100_000 },
      ...{ measured: measurePages(path), digits: 0, unit: "/s" },
    },
  ];
}

function measurePages(path: string): number {
  const reader = openReader(path);
  const [indexId] = reader.statement<string>("SELECT index_id FROM series WHERE series = 1").pluck().all();
  const query = new URLSearchParams({ indexType: "GWA", indexId: indexId ?? "", size: "2000" });
  query.set("timestamp", new Date(TO / 1000).toISOString());
  const startedAt = cpuMs();
  let rows = 0;
  for (let nextId: string | undefined = ""; nextId !== undefined && rows < TICKS_PER_SERIES; rows += 2000) {
    const { body } = reader.database.transaction(() =>
      respondToPath("/index-ticker", { state: readState(reader, TO), query, scopes, choices }),
    )();
    nextId = /"nextId":"([^"]+)"/.exec(body.slice(-60))?.[1];
    if (nextId !== undefined) query.set("startAfter", nextId);
    Buffer.from(body);
  }
  const seconds = (cpuMs() - startedAt) / 1000;
  reader.close();
  return rows / seconds;
}
