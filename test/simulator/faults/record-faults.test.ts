import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FaultClient, type Page } from "../../support/simulator/fault-client.ts";

let client: FaultClient;
let right: Record<string, string>[];
beforeAll(async () => {
  client = await FaultClient.start();
  right = (await client.getPage(client.pagePath(5))).content;
});
afterEach(() => client.simulator.setFaults(""));
afterAll(() => client.simulator.stop());

async function textUnder(fault: string, path = client.pagePath(5)): Promise<string> {
  client.simulator.setFaults(`GET ${path.split("?")[0]} ${fault}`);
  const { text } = await client.get(path);
  expect(client.faultCounts()).toEqual([1]);
  return text;
}

const rowsUnder = async (fault: string, path?: string): Promise<Page["content"]> =>
  JSON.parse(await textUnder(fault, path)).content;

describe("faults of the payload", () => {
  it("unknown-fields adds properties and keeps the rest", async () => {
    const [row] = await rowsUnder("unknown-fields");
    expect(row).toMatchObject(right[0] ?? {});
    expect(Object.keys(row ?? {}).length).toBeGreaterThan(Object.keys(right[0] ?? {}).length);
  });

  it("reordered-fields is the same record with its properties turned around", async () => {
    const [row] = await rowsUnder("reordered-fields");
    expect(row).toEqual(right[0]);
    expect(Object.keys(row ?? {})).toEqual(Object.keys(right[0] ?? {}).reverse());
  });

  it("duplicate-keys is right only for who takes the last one", async () => {
    const text = await textUnder("duplicate-keys");
    expect(JSON.parse(text).content).toEqual(right);
    expect(text.match(/"price"/g)?.length).toBe(10);
  });

  it("proto-key names __proto__ in every record", async () => {
    expect((await textUnder("proto-key")).match(/"__proto__":\{"polluted":true\}/g)?.length).toBe(5);
  });

  it.each(["number", "exponent", "zeros"])(
    "decimals as=%s is the same value in another notation",
    async (as) => {
      const [row] = await rowsUnder(`decimals ${as}`);
      expect(row?.price).not.toBe(right[0]?.price);
      expect(Number(row?.price)).toBe(Number(right[0]?.price));
      expect(typeof row?.price).toBe(as === "number" ? "number" : "string");
      expect(row?.id).toBe(right[0]?.id);
    },
  );

  it("decimals long has thirty digits, tiny is 1e-18", async () => {
    const [long] = await rowsUnder("decimals long");
    expect(long?.price?.replace(".", "")).toMatch(/^\d{30}$/);
    expect((await rowsUnder("decimals tiny"))[0]?.price).toBe("1e-18");
  });

  it.each([
    ['"NaN"', "NaN"],
    ['"Infinity"', "Infinity"],
    ['""', ""],
    ['" "', " "],
    ['"-1"', "-1"],
    ['"0x10"', "0x10"],
    ['"1,234"', "1,234"],
    ["null as=json", null],
    ["-0 as=json", -0],
  ])("set price %s", async (value, seen) => {
    expect((await rowsUnder(`set price ${value}`))[0]?.price).toEqual(seen);
  });

  it("set gives a property a value that nobody has heard of", async () => {
    expect((await rowsUnder("set status PAUSED", "/asset"))[0]?.status).toBe("PAUSED");
    expect((await rowsUnder("set indexType NX"))[0]?.indexType).toBe("NX");
  });

  it.each(["timestamp", "id", "indexId"])("drop leaves %s out", async (field) => {
    const rows = await rowsUnder(`drop ${field}`);
    expect(rows.some((row) => field in row)).toBe(false);
  });

  it("drop takes a property of the envelope where it stands there", async () => {
    expect(Object.keys(JSON.parse(await textUnder("drop nextId")))).toEqual(["content"]);
  });

  it.each([
    ["us", "2026-03-01T12:00:00.000000Z"],
    ["ns", "2026-03-01T12:00:00.000000000Z"],
    ["no-zone", "2026-03-01T12:00:00.000"],
    ["offset", "2026-03-01T14:00:00.000+02:00"],
    ["leap", "2026-03-01T12:00:60Z"],
    ["midnight-24", "2026-03-01T24:00:00Z"],
    ["epoch", 1772366400000],
    ["1970", "1970-01-01T00:00:00Z"],
    ["2099", "2099-01-01T00:00:00Z"],
  ])("timestamps as=%s", async (as, seen) => {
    expect((await rowsUnder(`timestamps ${as} rows=first`))[0]?.timestamp).toBe(seen);
  });

  it("upside-down has high below low", async () => {
    const path = `/ohlcv?indexType=GWA&indexId=${client.firstAssetId}&size=5&timestamp=2026-03-01T00:00:00Z`;
    const [bar] = await rowsUnder("upside-down", path);
    expect(Number(bar?.high)).toBeLessThan(Number(bar?.low));
  });

  it.each([
    ["all", 5],
    ["first", 1],
    ["last", 1],
  ])("rows=%s says how many rows are struck", async (rows, struck) => {
    const priceless = (await rowsUnder(`drop price rows=${rows}`)).filter((row) => !("price" in row));
    expect(priceless.length).toBe(struck);
  });

  it("rows=0.2 strikes about a fifth of the rows", async () => {
    const rows = await rowsUnder("drop price rows=0.2", client.pagePath(500));
    const priceless = rows.filter((row) => !("price" in row)).length;
    expect(priceless).toBeGreaterThan(60);
    expect(priceless).toBeLessThan(140);
  });

  it("big-body repeats the rows until the body is as big as told", async () => {
    const text = await textUnder("big-body mb=8", "/asset");
    expect(text.length).toBeGreaterThan(8 * 2 ** 20);
    expect(JSON.parse(text).content.length).toBeGreaterThan(10_000);
  });

  it("deep-nesting adds a property as deep as told", async () => {
    expect(await textUnder("deep-nesting depth=5000")).toContain("[".repeat(5000));
  });

  it("keeps every digit of numbers that it does not mean to change", async () => {
    const other = await FaultClient.start({ quirks: { decimals: "number" } });
    const before = (await other.get(other.pagePath(3))).text;
    other.simulator.setFaults("GET * content-type\nGET * duplicate-row first");
    const after = (await other.get(other.pagePath(3))).text;
    const price = /"price":([\d.]+)/.exec(before)?.[1] ?? "";
    expect(price.length).toBeGreaterThan(5);
    expect(after).toContain(`"price":${price}`);
    await other.simulator.stop();
  });
});
