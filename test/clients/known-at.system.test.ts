import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { formatTimestamp } from "../../src/model/time.ts";
import { declareTargets } from "../../src/warehouse/coverage/targets.ts";
import type { Transaction } from "../../src/warehouse/tables/transaction.ts";
import { openWriter, type WarehouseWriter } from "../../src/warehouse/writer.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { runBlocks } from "../support/clients/run-python.ts";
import { emptyRecord } from "../support/empty-record.ts";
import { hasModules } from "../support/has-tool.ts";
import {
  applyChange,
  HISTORY_FROM,
  HISTORY_TO,
  PERIOD,
  someHistory,
} from "../support/library/random-history.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { seed } from "../support/seed.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { decimal } from "../support/warehouse/records.ts";
import { writeContracts, writeLookup } from "../support/warehouse/write-lists.ts";

const hasPandas = hasModules("pandas", "earlier states in Python");

const [from, to] = [HISTORY_FROM, HISTORY_TO].map(formatTimestamp) as [string, string];
const inside = formatTimestamp(HISTORY_FROM + 20 * 3_600_000_000);

/** What Python is asked; `K` stands for the options of the state. */
const questions: Record<string, string> = {
  "1h": `w.bars("BTC", "1h", "${from}", "${to}", exact=TrueK)`,
  "4h of a part": `w.bars("BTC", "4h", "${inside}", "${to}"K)`,
  "1d, all": 'w.bars("BTC", "1d"K)',
  "7m": `w.bars("BTC", "7m", "${from}", "${to}", exact=TrueK)`,
  ticks: `w.ticks("BTC", columns=["price", "volume", "tick_volume", "is_settled", "source", "quality"], exact=TrueK)`,
  "ticks of a part": `w.ticks("BTC", "${inside}", "${to}"K)`,
  ohlcv: 'w.ohlcv("BTC", exact=TrueK)',
  "as of": `w.asof(["${from}", "${inside}", "${to}"], ["BTC"]K)`,
  "SQL: bars": 'w.sql("SELECT * FROM bars_1h WHERE name = :name ORDER BY ts", {"name": "BTC"}K)',
  "SQL: ticks": 'w.sql("SELECT * FROM index_ticks ORDER BY ts", {}K)',
  "SQL: coverage": 'w.sql("SELECT * FROM coverage ORDER BY stream, from_ts", {}K)',
  "SQL: assets": 'w.sql("SELECT id, symbol, name, first_seen FROM assets ORDER BY id", {}K)',
  "SQL: contracts": 'w.sql("SELECT id, option_strike_exact, expiration FROM derivative_contracts", {}K)',
  "as of one": `w.asof("${inside}", ["BTC"]K)[["time", "price", "volume"]]`,
  returns: `w.returns("BTC", "2h", "${from}", "${to}"K)`,
  coverage: 'w.coverage("BTC"K)',
  "coverage of days": 'w.coverage("BTC", stream="ohlcv"K)',
  // Of an earlier state it is the present by the service's clock, as its ticks are; the newest state has one of its own.
  now: 'newest = w.asof("now", ["BTC"]K)\n(newest.time + newest.age).iloc[0]',
  "is whole": `[w.is_whole("BTC", "${from}", "${to}"K), w.is_whole("BTC", "${from}", "${inside}"K)]`,
};

function askPython(path: string, knownAt?: readonly string[]): Record<string, unknown>[] {
  const states = knownAt ?? [undefined];
  const blocks = Object.fromEntries(
    states.flatMap((state, at) =>
      Object.entries(questions).map(([title, code]) => [
        `${at} ${title}`,
        // Not a warning: the first states may have no ticks.
        `import warnings\nwarnings.simplefilter("ignore")\n${code.replaceAll("K", state === undefined ? "" : `, known_at="${state}"`)}`,
      ]),
    ),
  );
  const answers = runBlocks(path, blocks);
  return states.map((_, at) =>
    Object.fromEntries(Object.keys(questions).map((title) => [title, answers[`${at} ${title}`]])),
  );
}

/** Lists that change each time. */
function writeListsOf(transaction: Transaction, version: number): void {
  const options = { isComplete: true };
  const asset = (id: string) => ({ ...emptyRecord("assets"), id, symbol: id, name: `${id}${version}` });
  writeLookup(transaction, "assets", ["btc", ...(version > 0 ? ["eth"] : [])].map(asset), options);
  const contract = {
    ...emptyRecord("derivative_contracts"),
    ...{ id: "c", derivativeType: "options", exchangeId: "x", marketId: "m" },
    ...{ optionStrike: decimal(`${version}.1`), expiration: HISTORY_FROM + version },
  };
  const type = { derivativeType: "options", exchangeId: "x" };
  writeContracts(transaction, [contract], { ...type, ...options });
}

function withoutNow({ now: _, ...answers }: Record<string, unknown> = {}): Record<string, unknown> {
  return answers;
}

function withoutLists(answers: Record<string, unknown>): Record<string, unknown> {
  const { "SQL: assets": _, "SQL: contracts": __, ...others } = withoutNow(answers);
  return others;
}

let folder: string;

interface Seen {
  readonly at: string;
  readonly token: string;
  readonly python: Record<string, unknown>;
}

describe.skipIf(!hasPandas)(`earlier states, in Python (seed ${seed})`, () => {
  const seen: Seen[] = [];
  let path: string;
  beforeAll(async () => {
    folder = temporaryFolder(afterAll);
    path = join(folder, "mds.sqlite");
    const clock = new ManualClock();
    // The service's clock is an hour ahead: moments are by this machine's all the same.
    const serviceNow = () => clock.now() + 3_600_000;
    const writer: WarehouseWriter = openWriter(path, { clock, serviceNow });
    const history = fc.sample(someHistory, { seed, numRuns: 3 }).flat().slice(0, 2);
    writer.transaction((transaction) => {
      const series = transaction.dictionary.getSeriesKey("GWA", "btc");
      transaction.dictionary.nameSeries(series, "BTC");
      const rules = { settleDelay: 0, period: PERIOD, step: 1, serviceWindow: null };
      const target = { key: { stream: "index_ticks" as const, series }, from: HISTORY_FROM, ...rules };
      declareTargets(transaction, "index_ticks", [target], HISTORY_TO);
    });
    for (const changes of history) {
      clock.jump(60_000);
      writer.transaction((transaction) => {
        for (const change of changes) applyChange(transaction, "btc", change);
        writeListsOf(transaction, seen.length);
      });
      clock.jump(1_000);
      const cited = await runInProcess(["ticks", "BTC", "--cite", "--warehouse", path], { cwd: folder });
      seen.push({
        at: formatTimestamp(clock.now() * 1000),
        token: /^mds-sync: cite: .* state=(\S+)$/m.exec(cited.stderr)?.[1] ?? "no token",
        python: withoutNow(askPython(path)[0]),
      });
    }
    writer.close();
  });

  it("Python shows the gaps of then as the program does", async () => {
    const then = seen.at(-1);
    const sql = "SELECT stream, name, from_time, to_time, state, reason FROM gaps ORDER BY stream, from_ts";
    const known = ["--known-at", then?.at ?? "", "--warehouse", path];
    const { stdout } = await runInProcess(["query", sql, ...known, "--json"], { cwd: folder });
    const gaps = JSON.parse(stdout) as Record<string, unknown>[];
    expect(gaps.map(({ reason }) => reason)).toContain("not proven then");
    const block = `w.sql("${sql}", {}, known_at="${then?.at}")`;
    expect(runBlocks(path, { gaps: block }).gaps).toMatchObject({
      rows: gaps.map((gap) => Object.values(gap)),
    });
  });

  it("Python answers each as it was, by its moment and by its token", () => {
    expect(seen.length).toBe(2);
    const moments = seen.map(({ at }) => at);
    for (const states of [moments, seen.map(({ token }) => token)]) {
      const answers = askPython(path, states);
      // Lists are those at the present of the state, which is the real one in a token here.
      const compared = states === moments ? withoutNow : withoutLists;
      expect(answers.map(compared)).toEqual(seen.map(({ python }) => compared(python)));
      const presents = answers.map(({ now }) => (now as { value: string | null }).value);
      // The first states may have no tick.
      expect(presents.at(-1)).not.toBeNull();
      if (states !== moments) continue;
      for (const [i, present] of presents.entries())
        if (present) expect(Date.parse(present) - Date.parse(seen[i]?.at ?? "")).toBe(3_600_000);
    }
  });
});
