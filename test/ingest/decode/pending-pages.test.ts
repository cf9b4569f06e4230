import { expect, it } from "vitest";
import { PendingPages } from "../../../src/ingest/decode/pending-pages.ts";
import { at, btc, makeTicks, tickPage } from "../../support/ingest/pages.ts";

it("frees the memory of a dropped page at once", () => {
  const pages = new PendingPages();
  const ticks = makeTicks(at("10:00:00"), at("12:00:00"));
  const options = { stream: "index_ticks", series: btc, cadence: 30_000_000 } as const;
  const [first, second] = [tickPage(ticks), tickPage(ticks)].map((body) => pages.read(options, body).pageId);
  const dropped = pages.get("index_ticks", first as number).columns;
  const kept = pages.get("index_ticks", second as number).columns;
  pages.drop([first as number]);
  expect(dropped?.ts.buffer.byteLength).toBe(0);
  expect(kept?.ts).toHaveLength(ticks.length);
});
