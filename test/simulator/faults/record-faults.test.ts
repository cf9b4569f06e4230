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

async function textWithFault(fault: string, path = client.pagePath(5)): Promise<string> {
  client.simulator.setFaults(`GET ${path.split("?")[0]} ${fault}`);
  const { text } = await client.get(path);
  expect(client.faultCounts()).toEqual([1]);
  return text;
}

const rowsWithFault = async (fault: string, path?: string): Promise<Page["content"]> =>
  JSON.parse(await textWithFault(fault, path)).content;

describe("faults of the payload", () => {
  it("unknown-fields adds properties and keeps the rest", async () => {
    const [row] = await rowsWithFault("unknown-fields");
    expect(row).toMatchObject(right[0] ?? {});
    expect(Object.keys(row ?? {}).length).toBeGreaterThan(Object.keys(right[0] ?? {}).length);
  });

  it("reordered-fields reverses the properties of the same record", async () => {
    const [row] = await rowsWithFault("reordered-fields");
    expect(row).toEqual(right[0]);
    expect(Object.keys(row ?? {})).toEqual(Object.keys(right[0] ?? {}).reverse());
  });

  it("duplicate-keys has the correct value last", async () => {
    const text = await textWithFault("duplicate-keys");
    expect(JSON.parse(text).content).toEqual(right);
    expect(text.match(/"price"/g)?.length).toBe(10);
  });

  it("proto-key adds __proto__ to every record", async () => {
    expect((await textWithFault("proto-key")).match(/"__proto__":\{"polluted":true\}/g)?.length).toBe(5);
  });

  it.each(["number", "exponent", "zeros"])(
    "decimals as=%s is the same value in another notation",
    async (as) => {
      const [row] = await rowsWithFault(`decimals ${as}`);
      expect(row?.price).not.toBe(right[0]?.price);
      expect(Number(row?.price)).toBe(Number(right[0]?.price));
      expect(typeof row?.price).toBe(as === "number" ? "number" : "string");
      expect(row?.id).toBe(right[0]?.id);
    },
  );

  it("decimals long has thirty digits, tiny is 1e-18", async () => {
    const [long] = await rowsWithFault("decimals long");
    expect(long?.price?.replace(".", "")).toMatch(/^\d{30}$/);
    expect((await rowsWithFault("decimals tiny"))[0]?.price).toBe("1e-18");
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
    expect((await rowsWithFault(`set price ${value}`))[0]?.price).toEqual(seen);
  });

  it("set gives a property an unknown value", async () => {
    expect((await rowsWithFault("set status PAUSED", "/asset"))[0]?.status).toBe("PAUSED");
    expect((await rowsWithFault("set indexType NX"))[0]?.indexType).toBe("NX");
  });

  it.each(["timestamp", "id", "indexId"])("drop removes %s", async (field) => {
    const rows = await rowsWithFault(`drop ${field}`);
    expect(rows.some((row) => field in row)).toBe(false);
  });

  it("drop removes a property of the envelope", async () => {
    expect(Object.keys(JSON.parse(await textWithFault("drop nextId")))).toEqual(["content"]);
  });

  it.each([
    ["us", "2026-03-01T12:00:00.000000Z"],
    ["ns", "2026-03-01T12:00:00.000000000Z"],
    ["no-zone", "2026-03-01T12:00:00.000"],
    ["offset", "2026-03-01T14:00:00.000+02:00"],
    ["leap", "2026-03-01T12:00:60Z"],
    ["midnight-24", "2026-03-01T24:00:00Z"],
    ["zero-offset", "2026-03-01T12:00:00.000+00:00"],
    ["epoch", 1772366400000],
    ["epoch-text", "1772366400000"],
    ["1970", "1970-01-01T00:00:00Z"],
    ["2099", "2099-01-01T00:00:00Z"],
  ])("timestamps as=%s", async (as, seen) => {
    expect((await rowsWithFault(`timestamps ${as} rows=first`))[0]?.timestamp).toBe(seen);
  });

  it.each([
    ["137ms", "2026-03-01T12:00:00.137Z"],
    ["-137ms", "2026-03-01T11:59:59.863Z"],
    ["1h", "2026-03-01T13:00:00.000Z"],
  ])("shift-timestamps by=%s", async (by, seen) => {
    const rows = await rowsWithFault(`shift-timestamps ${by} rows=first`);
    expect([rows[0]?.timestamp, rows[1]?.timestamp]).toEqual([seen, right[1]?.timestamp]);
  });

  it("upside-down has high below low", async () => {
    const path = `/ohlcv?indexType=GWA&indexId=${client.firstAssetId}&size=5&timestamp=2026-03-01T00:00:00Z`;
    const [bar] = await rowsWithFault("upside-down", path);
    expect(Number(bar?.high)).toBeLessThan(Number(bar?.low));
  });

  it.each([
    ["all", 5],
    ["first", 1],
    ["last", 1],
  ])("rows=%s selects the rows to change", async (rows, expected) => {
    const withoutPrice = (await rowsWithFault(`drop price rows=${rows}`)).filter((row) => !("price" in row));
    expect(withoutPrice.length).toBe(expected);
  });

  it("rows=0.2 changes about a fifth of the rows", async () => {
    const rows = await rowsWithFault("drop price rows=0.2", client.pagePath(500));
    const withoutPrice = rows.filter((row) => !("price" in row)).length;
    expect(withoutPrice).toBeGreaterThan(60);
    expect(withoutPrice).toBeLessThan(140);
  });

  it("big-body repeats the rows until the body has the size", async () => {
    const text = await textWithFault("big-body mb=8", "/asset");
    expect(text.length).toBeGreaterThan(8 * 2 ** 20);
    expect(JSON.parse(text).content.length).toBeGreaterThan(10_000);
  });

  it("deep-nesting adds a property with that depth", async () => {
    expect(await textWithFault("deep-nesting depth=5000")).toContain("[".repeat(5000));
  });

  it("deep-nesting stays as it is if another fault cannot read it", async () => {
    const other = await FaultClient.start();
    other.simulator.setFaults("GET * deep-nesting\nGET * duplicate-row first");
    expect((await other.get(other.pagePath(3))).text).toContain("[".repeat(100_000));
  });

  it("preserves the digits of unchanged numbers", async () => {
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
