import { describe, expect, it } from "vitest";
import type { Contract } from "../../src/simulator/market/contracts.ts";
import type { DerivativeTickRecord } from "../simulator/oracle.ts";
import {
  type Query,
  startRestClient,
  startSharedRestClient,
  UNKNOWN_UUID,
} from "../support/simulator/rest-client.ts";
import { comparable } from "../support/simulator/server-under-test.ts";

const client = await startSharedRestClient();
const exchangeId = client.simulator.universe.exchanges.find(({ name }) => name === "Deribit")?.id ?? "";

type DerivativeContractRecord = Contract["record"];

const contracts = async (type: string, query: Query = {}): Promise<DerivativeContractRecord[]> =>
  (await client.get(`/derivatives/contract/${type}`, { exchangeId, ...query })).body.content;
const tickers = async (type: string, query: Query = {}): Promise<DerivativeTickRecord[]> =>
  (await client.get(`/derivatives/ticker/${type}`, { exchangeId, ...query })).body.content;
const types = ["futures", "perpetuals", "options"] as const;

describe("/derivatives/contract", () => {
  it('"derivativeType (required) takes: futures, perpetuals, options"', async () => {
    for (const type of types) expect((await contracts(type)).length).toBeGreaterThan(0);
    const { status, body } = await client.get("/derivatives/contract/swaptions", { exchangeId });
    expect(status).toBe(400);
    expect(body.errors[0].field).toBe("derivativeType");
  });

  it('"exchangeId (uuid, required)"', async () => {
    const { status, body } = await client.get("/derivatives/contract/futures");
    expect(status).toBe(400);
    expect(body.errors[0].field).toBe("exchangeId");
    const unknown = await client.get("/derivatives/contract/futures", { exchangeId: UNKNOWN_UUID });
    expect(unknown.status).toBe(404);
  });

  it('"include (ACTIVE, ALL, EXPIRED; default ACTIVE)"', async () => {
    for (const type of ["futures", "options"]) {
      const active = await contracts(type);
      const expired = await contracts(type, { include: "EXPIRED" });
      const all = await contracts(type, { include: "ALL" });
      expect(await contracts(type, { include: "ACTIVE" })).toEqual(active);
      for (const { expiration } of active) expect(Date.parse(expiration ?? "")).toBeGreaterThan(client.now);
      for (const { expiration } of expired)
        expect(Date.parse(expiration ?? "")).toBeLessThanOrEqual(client.now);
      const ids = (list: DerivativeContractRecord[]) => list.map(({ id }) => id).toSorted();
      expect(ids(all)).toEqual(ids([...active, ...expired]));
      expect(new Set(ids(all)).size).toBe(all.length);
    }
  });

  it("sends type and strike only for options, and listing and expiration except for perpetuals", async () => {
    const [future] = await contracts("futures");
    const [perpetual] = await contracts("perpetuals");
    const [option] = await contracts("options");
    expect(Object.keys(future ?? {})).toEqual(expect.arrayContaining(["listing", "expiration"]));
    expect(future).not.toHaveProperty("optionStrike");
    expect(perpetual).not.toHaveProperty("expiration");
    expect(option).toMatchObject({ optionType: "CALL", optionStrike: expect.stringMatching(/^\d+$/) });
    expect(option?.exchangeName).toMatch(/^BTC-\d+[A-Z]{3}\d\d-\d+-C$/);
  });

  it("selects by marketId", async () => {
    const [first] = await contracts("perpetuals");
    const found = await contracts("perpetuals", { marketId: first?.marketId });
    expect(found).toEqual([first]);
  });

  it('"/derivatives/contract/{derivativeType}/{id}" returns one contract, even an expired one', async () => {
    for (const type of types) {
      const last = (await contracts(type, { include: "ALL" }))[0];
      expect((await client.get(`/derivatives/contract/${type}/${last?.id}`)).body).toEqual(last);
    }
    expect((await client.get(`/derivatives/contract/futures/${UNKNOWN_UUID}`)).status).toBe(404);
  });

  it("lists new contracts and expires old ones over time, with stable ids", async () => {
    const ownClient = await startRestClient();
    const read = async (include: string): Promise<DerivativeContractRecord[]> =>
      (await ownClient.get("/derivatives/contract/options", { exchangeId, include })).body.content;
    const before = await read("ACTIVE");
    await ownClient.clock.advance(7 * 86_400_000);
    await ownClient.signIn();
    const active = new Set((await read("ACTIVE")).map(({ id }) => id));
    const expired = new Map((await read("EXPIRED")).map((contract) => [contract.id, contract]));
    expect(before.filter(({ id }) => active.has(id))).toHaveLength((before.length * 3) / 4);
    for (const contract of before.filter(({ id }) => !active.has(id)))
      expect(expired.get(contract.id)).toEqual(contract);
  });
});

describe("/derivatives/ticker", () => {
  it("sends price, volume, open interest, ask and bid of each active contract", async () => {
    for (const type of types) {
      const found = await tickers(type);
      expect(found.map(({ contractId }) => contractId)).toEqual((await contracts(type)).map(({ id }) => id));
      const expected = client.simulator.oracle.derivativeTicks(type, exchangeId, client.now);
      expect(comparable(found)).toEqual(comparable(expected));
      for (const { bid, price, ask, openInterest, volume } of found) {
        expect(Number(bid)).toBeLessThan(Number(price));
        expect(Number(price)).toBeLessThan(Number(ask));
        expect(Math.min(Number(openInterest), Number(volume))).toBeGreaterThan(0);
      }
      expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
    }
  });

  it("selects by marketId and contractId", async () => {
    const [, second] = await tickers("futures");
    expect(await tickers("futures", { contractId: second?.contractId })).toEqual([second]);
    const ofMarket = await tickers("futures", { marketId: second?.marketId });
    expect(ofMarket.length).toBeGreaterThan(1);
    const answer = await client.get("/derivatives/ticker/futures", { exchangeId, contractId: UNKNOWN_UUID });
    expect(answer.status).toBe(404);
  });

  it("prices futures and perpetuals near their index, and sends a funding rate only for perpetuals", async () => {
    for (const tick of [...(await tickers("futures")), ...(await tickers("perpetuals"))])
      expect(Math.abs(Number(tick.price) / Number(tick.indexPrice) - 1)).toBeLessThan(0.06);
    for (const tick of await tickers("perpetuals")) expect(tick.fundingRate).toMatch(/^-?0\.\d{1,8}$/);
    for (const tick of await tickers("options")) expect(tick).not.toHaveProperty("fundingRate");
  });

  it("returns no tickers for an exchange without derivatives", async () => {
    const spot = client.simulator.universe.exchanges.find(({ derivatives }) => !derivatives)?.id;
    expect(await tickers("futures", { exchangeId: spot })).toEqual([]);
  });
});
