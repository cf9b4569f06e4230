import { describe, expect, it } from "vitest";
import { openWarehouse } from "../../src/library/open-warehouse.ts";
import { formatTimestamp } from "../../src/model/time.ts";
import { runPython } from "../support/clients/run-python.ts";
import { hasModules } from "../support/has-tool.ts";
import { fillSnapshots, MINUTE, SNAPSHOTS_FROM } from "../support/library/snapshot-series.ts";
import { createWarehouse } from "../support/warehouse/filled-warehouse.ts";

const hasPandas = hasModules("pandas", "series of all kinds, and their names, in Python");

const questions = [
  ["Kraken:BTC/USD", null],
  ["kraken:btc/usd", "bid"],
  ["kraken-id:btc-usd-id", "mid"],
  ["Kraken:BTC/USD", "price"],
  ["Kraken:BTCUSD-PERP", null],
  ["Kraken:BTCUSD-PERP", "funding"],
  ["cap:BTC", null],
  ["cap:Bitcoin", "rank"],
  ["BTC", "last"],
  ["BTC", "volume"],
] as const;

const script = `
import json, sys, mds
w = mds.open(sys.argv[1])
first, gap, end, *_ = sys.argv[3:]
answers = []
number = lambda value: None if value != value else float(value)
for name, of in json.loads(sys.argv[2]):
    answer = []
    for state in ({}, {"known_at": w.cite()}):
        ticks = w.ticks(name, of=of, columns=["price", "is_settled"], exact=True, **state)
        bars = w.bars(name, "3m", of=of, **state)
        one = w.asof(gap, name, of=of, **state).iloc[0]
        pieces = [len(piece) for piece in w.iter_ticks(name, of=of, rows=4, **state)]
        answer.append([
            [[str(price), bool(settled)] for price, settled in zip(ticks.price_exact, ticks.is_settled)],
            [[number(b.open), number(b.close), int(b.n_ticks), int(b.expected_ticks), round(b.coverage, 9), bool(b.is_complete)] for b in bars.itertuples()],
            [number(one.price), one.age.total_seconds()], pieces,
            [w.is_whole(name, first, gap, **state), w.is_whole(name, gap, end, **state)],
            [list(map(str, row)) for row in w.missing(name, gap, end, **state)[["from_time", "to_time", "state"]].values],
            len(w.coverage(name, **state)),
        ])
    answers.append(answer)
def refused(work):
    try:
        work()
    except mds.MdsError as error:
        return str(error)
listed = w.series()
moments = [column.dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ").tolist() for column in (listed["first"], listed["last"])]
listed = list(map(list, zip(*(listed[name].tolist() for name in ("index_type", "index_id", "name", "has_ticks", "has_ohlcv")), *moments)))
print(json.dumps([answers, [
    refused(lambda: w.ticks("Krakn:BTC/USD")),
    refused(lambda: w.ticks("btcusd-perp")),
    refused(lambda: w.ticks("cap:BTC", of="bid")),
    refused(lambda: w.bars("Kraken:BTC/USD", "1m", gap, end, require_complete=True)),
], listed]))
`;

it.runIf(hasPandas)("series of every kind are the same in Python, now and at a token", () => {
  const path = createWarehouse(fillSnapshots, { hasAllViews: true });
  const [first, gap, end] = [0, 5, 7].map((n) => formatTimestamp(SNAPSHOTS_FROM + n * MINUTE)) as [
    string,
    string,
    string,
  ];
  const stdout = runPython(script, [path, JSON.stringify(questions), first, gap, end]);
  const [answers, refusals, listed] = JSON.parse(stdout) as [unknown[][], string[], unknown[][]];
  using warehouse = openWarehouse(path);
  expect(listed).toEqual(
    warehouse
      .series()
      .map((one) => [
        ...[one.index_type, one.index_id, one.name, one.has_ticks === 1, one.has_ohlcv === 1],
        ...[one.first, one.last],
      ]),
  );
  for (const [at, [name, of]] of questions.entries()) {
    const figure = of === null ? {} : { of };
    const bars = warehouse.bars(name, { every: "3m", ...figure });
    const [one] = warehouse.asOf(gap, name, figure);
    const isIndex = name === "BTC";
    const expected = [
      warehouse.ticks(name, figure).map((row) => [row.price_exact, row.is_settled === 1]),
      bars.map((bar) => [
        ...[bar.open, bar.close, bar.n_ticks, bar.expected_ticks],
        ...[Math.round(bar.coverage * 1e9) / 1e9, bar.is_complete === 1],
      ]),
      [one?.price, one?.age_seconds],
      [4, 4, 1],
      [true, isIndex],
      isIndex ? [] : [[gap, 6].map((from) => pandasTime(from === 6 ? 6 : 5)).concat("lost")],
      isIndex ? 1 : name.includes("PERP") ? 3 : 2,
    ];
    expect(answers[at], `${name} ${of}`).toEqual([expected, expected]);
  }
  expect(refusals).toEqual([
    "the warehouse has no series Krakn:BTC/USD: did you mean Kraken:BTC/USD?",
    "the warehouse has no series btcusd-perp: did you mean Kraken:BTCUSD-PERP?",
    expect.stringMatching(/^cap:BTC has no figure bid: give one of rank, /),
    expect.stringMatching(/^Kraken:BTC\/USD is not proven from .* \(lost, not observed\); `missing\(\)`/),
  ]);
});

const pandasTime = (n: number) =>
  formatTimestamp(SNAPSHOTS_FROM + n * MINUTE)
    .replace("T", " ")
    .replace(/\.0+Z/, "+00:00");

describe.runIf(hasPandas)("a name in Python", () => {
  it("that two series share tells its choices, and takes them", () => {
    const stdout = runPython(`
from mds.names import Series, find_series
known = [Series(("GWA", "l1", "LUNA")), Series(("GWA", "l2", "LUNA")), Series(("LX", "l3", "LUNA"))]
assets = lambda: {"l1": ("Terra Classic", "inactive"), "l2": ("Terra", "active")}
days = lambda series: {"l1": ("2019-05-07", "2022-05-13"), "l2": ("2022-05-28", "2026-02-28")}.get(series.index_id)
for name in ("LUNA@2022", "GWA:LUNA@2019", "terra", "LX:LUNA", "LUNA", "LUNA@2020"):
    try:
        print(find_series(name, known, None, assets, days).index_id)
    except Exception as error:
        print(error)
`);
    expect(stdout.trimEnd().split("\n")).toEqual([
      "l2",
      "l1",
      "l2",
      "l3",
      "LUNA names 3 series: write LUNA@2019 (Terra Classic, inactive, 2019-05-07 to 2022-05-13) or " +
        "LUNA@2022 (Terra, active, 2022-05-28 to 2026-02-28) or LX:LUNA (no rows)",
      "the warehouse has no series LUNA@2020: did you mean LUNA?",
    ]);
  });
});
