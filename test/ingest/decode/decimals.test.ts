import { describe, expect, it } from "vitest";
import { decodePage } from "../../../src/ingest/decode/decode-page.ts";

const page = (...elements: string[]) => `{"content":[${elements.join(",")}]}`;
const head = '"timestamp":"2026-03-01T12:00:00Z"';
const indexTick = (fields: string) =>
  decodePage("index_ticks", page(`{"indexId":"btc","indexType":"GWA",${head},${fields}}`)).records[0];

describe("D3: decimals, as strings or as numbers", () => {
  it.each([
    ["67012.5", { real: 67012.5, exact: null }],
    ["123456789012345678901234567890.12", { exact: "123456789012345678901234567890.12" }],
    ["0.123456789012345678", { exact: "0.123456789012345678" }],
    ["1e-18", { real: 1e-18, exact: "0.000000000000000001" }],
    ["1E+5", { real: 100000, exact: null }],
    ["0.10000000000000000555", { real: 0.1, exact: "0.10000000000000000555" }],
    ["9007199254740993", { exact: "9007199254740993" }],
  ])("%s preserves every digit", (digits, figure) => {
    const tick = indexTick(`"price":${digits},"volume":"${digits}"`);
    expect(tick).toMatchObject({ price: figure, volume: figure, quality: null });
  });

  it("preserves the digits of each record if some are JSON numbers", () => {
    const tick = (price: string) => `{"indexId":"btc","indexType":"GWA",${head},"price": ${price} }`;
    const content = page(tick('"1.25"'), tick("0.12345678901234567"), tick('"3"'), tick("4.00"));
    const { records } = decodePage("index_ticks", content);
    const prices = records.map(({ price }) => price?.exact ?? price?.real);
    expect(prices).toEqual([1.25, "0.12345678901234567", 3, 4]);
  });
});

describe("D4: invalid decimals", () => {
  it.each([
    ['"NaN"', "is not a decimal"],
    ['"Infinity"', "is not a decimal"],
    ['""', "is not a decimal"],
    ['" "', "is not a decimal"],
    ["null", "is not a decimal"],
    ['"-1"', "is negative"],
    ["-1", "is negative"],
    ['"0x10"', "is not a decimal"],
    ['"1,234"', "is not a decimal"],
    ["-0", "is negative"],
    ["-0.0", "is negative"],
    ['"-0"', "is negative"],
    ["true", "is not a decimal"],
    ["{}", "is not a decimal"],
    ["[1.0]", "is not a decimal"],
    ["1e400", "is not a decimal"],
    ["1e9999", "is not a decimal"],
  ])("%s becomes null, with its text in quality", (json, problem) => {
    const expected = { price: { real: 1 }, volume: null, quality: `volume ${problem}: ${json}` };
    expect(indexTick(`"price":"1","volume":${json}`)).toMatchObject(expected);
  });

  it("names every invalid field in quality", () => {
    expect(indexTick('"price":"","volume":"NaN"')?.quality).toBe(
      'price is not a decimal: ""; volume is not a decimal: "NaN"',
    );
  });

  it("reports a missing price, but not a missing optional field", () => {
    expect(indexTick('"volume":"1"')).toMatchObject({ price: null, quality: "price is missing" });
    expect(indexTick('"price":"1","tickVolume":null')).toMatchObject({ tickVolume: null, quality: null });
  });

  it("flags negative values of fields that cannot be negative", () => {
    const negative = (names: string[]) => names.map((name) => `"${name}":"-1"`).join(",");
    const exchangeFigures = ["last", "bid", "ask", "volume"];
    const exchangePage = page(`{"exchangeId":"e","marketId":"m",${head},${negative(exchangeFigures)}}`);
    const [tick] = decodePage("exchange_ticks", exchangePage).records;
    expect(tick).toMatchObject({ last: null, bid: null, ask: null, volume: null });
    expect(tick?.quality?.split("; ")).toHaveLength(4);
    const capFigures = ["price", "volume", "marketCap", "totalMarketCap", "freeFloatSupply", "totalSupply"];
    const [cap] = decodePage("market_caps", page(`{"assetId":"a",${head},${negative(capFigures)}}`)).records;
    expect(cap?.quality?.split("; ")).toHaveLength(6);
    const contractPage = page(`{"id":"c",${negative(["contractValue", "optionStrike"])}}`);
    const type = { derivativeType: "options" };
    const [contract] = decodePage("derivative_contracts", contractPage, type).records;
    expect(contract?.quality?.split("; ")).toHaveLength(2);
  });

  it("accepts negative rates and changes", () => {
    const type = { derivativeType: "perpetuals" };
    const content = page(`{"contractId":"c",${head},"price":"1","fundingRate":-0.000125}`);
    const [tick] = decodePage("derivative_ticks", content, type).records;
    expect(tick).toMatchObject({ fundingRate: { real: -0.000125 }, ...type, quality: null });
  });
});

describe("market caps", () => {
  const cap = (fields: string) =>
    decodePage("market_caps", page(`{"assetId":"a",${head},"price":"1","marketCap":"2",${fields}}`));

  it("read the percent changes of each figure into columns of their own", () => {
    const { records, unknownFields } = cap(
      '"marketCapRank":3,"volumeRank":"4","marketCapPercentChange":{"change24h":"-1.5","change7d":2.50,"change30d":null},' +
        '"pricePercentChange":{"change7d":1.0,"change24h":"2"},"volumePercentChange":{"change30d":"3.25"},' +
        '"totalMarketCapPercentChange":{"change24h":"4","change7d":"5","change30d":"0.12345678901234567"}',
    );
    expect(records[0]).toMatchObject({
      rank: 3,
      volumeRank: 4,
      ...{ change24h: { real: -1.5 }, change7d: { real: 2.5 }, change30d: null },
      ...{ priceChange24h: { real: 2 }, priceChange7d: { real: 1 }, priceChange30d: null },
      ...{ volumeChange24h: null, volumeChange7d: null, volumeChange30d: { real: 3.25 } },
      ...{ totalMarketCapChange24h: { real: 4 }, totalMarketCapChange7d: { real: 5 } },
      totalMarketCapChange30d: { exact: "0.12345678901234567" },
      quality: null,
      extra: null,
    });
    expect(unknownFields).toEqual([]);
  });

  it("store a percent change of an unknown period in extra, and flag an invalid one", () => {
    const { records, unknownFields } = cap(
      '"marketCapPercentChange":{"change24h":"n/a","change1y":1.0},"marketCapRank":1.5',
    );
    expect(records[0]).toMatchObject({
      rank: null,
      change24h: null,
      quality: 'marketCapRank is not a rank: 1.5; marketCapPercentChange.change24h is not a decimal: "n/a"',
      extra: '{"marketCapPercentChange":{"change1y":1.0,"change24h":"n/a"}}',
    });
    expect(unknownFields.map(({ name }) => name)).toEqual(["marketCapPercentChange.change1y"]);
    expect(cap('"marketCapPercentChange":"12%"').records[0]?.quality).toBe(
      'marketCapPercentChange is not an object: "12%"',
    );
  });
});

describe("derivatives", () => {
  it("get their type from the request, else from the record, else are rejected", () => {
    const contract = (fields: string, derivativeType?: string) =>
      decodePage("derivative_contracts", page(`{"id":"c"${fields}}`), { derivativeType });
    expect(contract("", "futures").records[0]?.derivativeType).toBe("futures");
    expect(contract(',"derivativeType":"swaps"').records[0]?.derivativeType).toBe("swaps");
    expect(contract("").rejects[0]?.reason).toBe("derivativeType is missing");
  });

  it("flag an unreadable timestamp and store the contract", () => {
    const dates = '"listing":"2026-01-01","expiration":"2026-03-27T08:00:00Z"';
    const type = { derivativeType: "futures" };
    const content = page(`{"id":"c",${dates},"optionStrike":null}`);
    const [contract] = decodePage("derivative_contracts", content, type).records;
    const quality = 'listing is not a UTC moment: "2026-01-01"';
    expect(contract).toMatchObject({ listing: null, optionStrike: null, quality });
    expect(contract?.expiration).not.toBeNull();
  });
});

describe("exchanges", () => {
  it("store their markets and symbols, and the unreadable ones in extra", () => {
    const { records, unknownFields } = decodePage(
      "exchanges",
      page(
        '{"id":"e","name":7.0,"markets":[{"marketId":"m","marketStatus":"ACTIVE","qualified":true,"fee":0.10},{"x":1.0},5],"symbols":[{"assetId":"a","symbol":"XBT"}]}',
      ),
    );
    expect(records[0]).toMatchObject({
      name: "7.0",
      markets: [{ marketId: "m", status: "ACTIVE", qualified: true, extra: '{"fee":0.10}' }],
      symbols: [{ assetId: "a", symbol: "XBT", extra: null }],
      quality: "markets has 2 elements that cannot be read",
      extra: '{"markets":[{"x":1.0},5]}',
    });
    expect(unknownFields.map(({ name }) => name)).toEqual(["markets[].fee", "markets[].x"]);
  });

  it("flag markets and symbols that are not lists", () => {
    const content = page('{"id":"e","markets":{"a":1},"symbols":null,"url":{}}');
    const [exchange] = decodePage("exchanges", content).records;
    const flags = { quality: "url is not text: {}; markets is not a list", extra: '{"markets":{"a":1}}' };
    expect(exchange).toMatchObject({ markets: [], symbols: [], url: null, ...flags });
  });
});
