import { afterEach, describe, expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";
import type { Stream } from "../../../src/model/streams.ts";
import { Fault } from "../../simulator/faults.ts";
import { startSharedRestClient } from "../../support/simulator/rest-client.ts";

const service = await startSharedRestClient();
afterEach(() => service.simulator.setFaults());

const on = "/index-ticker";
const ticks = "/index-ticker?indexType=LX&timestamp=2026-03-01T12:00:00Z&size=50";
const bars = "/ohlcv?indexType=GWA&timestamp=2026-03-01T00:00:00Z&size=50";
const fetchPage = async <S extends Stream>(stream: S, path: string, derivativeType?: string) =>
  decodePage(stream, (await service.get(path)).bytes, { derivativeType });

describe("what the simulator serves", () => {
  const exchange = () => service.simulator.universe.exchanges.find(({ derivatives }) => derivatives)?.id;
  const pages: [Stream, () => string, string?][] = [
    ["assets", () => "/asset"],
    ["markets", () => "/market"],
    ["exchanges", () => "/exchange"],
    ["index_ticks", () => ticks],
    ["ohlcv", () => bars],
    ["exchange_ticks", () => "/exchange-ticker"],
    ["market_caps", () => "/market-cap?percentChange=true"],
    ["derivative_contracts", () => `/derivatives/contract/options?exchangeId=${exchange()}`, "options"],
    ["derivative_ticks", () => `/derivatives/ticker/perpetuals?exchangeId=${exchange()}`, "perpetuals"],
  ];

  it.each(pages)(
    "%s is decoded without quality flags, rejects or unknown fields",
    async (stream, path, derivativeType) => {
      const page = await fetchPage(stream, path(), derivativeType);
      expect(page.records.length).toBeGreaterThan(0);
      expect(page).toMatchObject({ rejects: [], unknownFields: [] });
      expect(page.records.filter(({ quality }) => quality !== null)).toEqual([]);
    },
  );

  it.each([
    ["D1", Fault.reorderedFields({ on })],
    ["D1", Fault.duplicateKeys({ on })],
    ["D3", Fault.decimals("number", { on })],
    ["D3", Fault.decimals("exponent", { on })],
    ["D3", Fault.decimals("zeros", { on })],
    ["D6", Fault.timestamps("us", { on })],
    ["D6", Fault.timestamps("ns", { on })],
    ["H12", Fault.timestamps("zero-offset", { on })],
    ["H12", Fault.timestamps("epoch", { on })],
    ["H12", Fault.timestamps("epoch-text", { on })],
    ["B11", Fault.bom({ on })],
  ])("$0: $1.name makes no difference", async (_, fault) => {
    const plain = await fetchPage("index_ticks", ticks);
    service.simulator.setFaults(fault);
    expect(await fetchPage("index_ticks", ticks)).toEqual(plain);
    expect(service.simulator.faultCounts[0]?.struck).toBe(1);
  });

  it.each([
    ["D1", Fault.unknownFields({ on })],
    ["D1", Fault.protoKey({ on })],
    ["D1", Fault.deepNesting(100_000, { on })],
  ])("$0: $1.name changes no record and is counted", async (_, fault) => {
    const plain = await fetchPage("index_ticks", ticks);
    service.simulator.setFaults(fault);
    const odd = await fetchPage("index_ticks", ticks);
    expect(odd.records.map((record) => ({ ...record, extra: null }))).toEqual(plain.records);
    expect(odd.unknownFields.length).toBeGreaterThan(0);
  });

  it.each(["no-zone", "offset"] as const)(
    "D6: timestamps as %s are rejected, each with its text",
    async (form) => {
      service.simulator.setFaults(Fault.timestamps(form, { on: "/index-ticker" }));
      const { rejects, records, rawCount } = await fetchPage("index_ticks", ticks);
      expect(records).toEqual([]);
      expect(rejects).toHaveLength(rawCount);
      expect(rejects[0]?.reason).toBe("timestamp is not a UTC moment");
    },
  );

  it("D8: bars whose high is below their low are stored with a quality flag", async () => {
    service.simulator.setFaults(Fault.upsideDown({ on: "/ohlcv" }));
    const { records } = await fetchPage("ohlcv", bars);
    const moving = records.filter(({ high, low }) => high?.real !== low?.real);
    expect(moving.length).toBeGreaterThan(0);
    expect(moving.filter(({ quality }) => quality === "high is below low")).toHaveLength(moving.length);
  });
});
