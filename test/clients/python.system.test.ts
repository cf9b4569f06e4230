import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildWheel } from "../../scripts/release.ts";
import { rowRenderers } from "../../src/cli/output/row-formats.ts";
import { exportWarehouse } from "../../src/export/export-warehouse.ts";
import { withReader } from "../../src/warehouse/reader.ts";
import { parsePreamble, parseQuestions, readCookbook, setPresent } from "../docs/cookbook/page.ts";
import { fillDemoWarehouse } from "../docs/demo-warehouse.ts";
import { type PythonAnswer, pythonClient, runBlocks } from "../support/clients/run-python.ts";
import { python, skipWithout } from "../support/has-tool.ts";
import type { ManualClock } from "../support/manual-clock.ts";
import { usePostgres } from "../support/postgres.ts";
import { PASSWORD } from "../support/postgres-server.ts";
import { shareInto } from "../support/share/share-harness.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Debian's Python has Debian's pandas, and no duckdb: another Python may be given for the tests of exports. */
const modules = ["pandas", "psycopg2", "duckdb", "pyarrow", "setuptools", "wheel", "pip"];
const findModules = `from importlib.util import find_spec; print(*[m for m in "${modules.join(" ")}".split() if find_spec(m)])`;
const foundModules = spawnSync(python, ["-c", findModules], { encoding: "utf8" }).stdout?.split(/\s+/) ?? [];
const isInstalled = (needed: string) => needed.split(", ").every((name) => foundModules.includes(name));
const has = (needed: string, skipped: string) =>
  isInstalled(needed) || skipWithout(`python3 has no ${needed}`, skipped);
const hasPandas = has("pandas", "the Python client");
const server = hasPandas && has("psycopg2", "the shared warehouse in Python") ? usePostgres() : undefined;
/** No test requires what Debian does not have. */
const exportReaders = ["duckdb", "pyarrow"].filter((module) => {
  const canRead = hasPandas && isInstalled(module);
  if (!canRead) process.stderr.write(`python3 has no ${module}, skipped: exports in Python\n`);
  return canRead;
});

const page = readCookbook();
const questions = parseQuestions(page);
const folder = temporaryFolder(afterAll);
let path: string;
let clock: ManualClock;
let installed: string;
let answers: Record<string, PythonAnswer> = {};

const window = '"2026-02-28", "2026-03-01"';
const inWindow = "name = 'ETH' AND time >= '2026-02-28' AND time < '2026-03-01'";
const lengths = ["30s", "10m", "1h", "4h", "1d"];

/** What the tests below ask, all in one process. */
const blocks: Record<string, string> = {
  ...Object.fromEntries(
    lengths.map((every) => [
      `bars ${every}`,
      `w.bars(["BTC", "ETH"], "${every}", ${window}, exact=True).swaplevel(axis=1)`,
    ]),
  ),
  "bars with a grid": `w.bars("ETH", "1h", ${window}, grid=True)`,
  "bars as arrays":
    'w.bars("ETH", "1h", pd.Timestamp("2026-02-28", tz="Asia/Tokyo"), 1772236800000000)[["close"]]',
  "types of bars": `[str(t) for t in w.bars("ETH", "1h", ${window}).dtypes] + [str(w.bars("ETH", "1h").index.dtype)]`,
  "no bars": 'w.bars(["BTC", "ETH"], "10m", "2001-01-01", "2001-01-02")',
  "no ticks": `import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    w.bars("USDT", "1d")
str(seen[0].message)`,
  "require whole BTC": `len(w.bars("BTC", "1h", ${window}, require_complete=True))`,
  "require whole ETH": `w.bars(["BTC", "ETH"], "1h", ${window}, require_complete=True)`,
  ticks:
    'w.ticks("ETH", "2026-02-28 06:00", "2026-02-28 09:00", columns=["price", "volume", "is_settled", "quality"], exact=True)',
  "ticks side by side": 'w.ticks(["GWA:BTC", "eth"], "2026-02-28 06:29", "2026-02-28 06:31")["price"]',
  "ticks of a few seconds": 'len(w.ticks("BTC", "2026-02-28T12:00:10+00:00", "2026-02-28 12:00:40.5"))',
  "as of": 'w.asof("2026-02-28 07:15", ["BTC", "ETH"])[["time", "price", "volume"]]',
  "as of, recent": 'w.asof("2026-02-28 07:15", ["BTC", "ETH"], max_age="5m")[["price"]]',
  "as of times": 'w.asof(["2026-02-28 07:15", "2026-02-28 08:00"], ["BTC", "ETH"])',
  "log returns": `np.expm1(w.returns("ETH", "1h", ${window}, log=True))`,
  returns: `w.returns("ETH", "1h", ${window})`,
  "is whole": `w.is_whole(["BTC", "ETH"], ${window})`,
  "is whole, one": `[w.is_whole("BTC", ${window}), w.is_whole("ETH", ${window}), w.is_whole("ETH", "2026-02-28 08:00", "2026-03-01")]`,
  gaps: 'w.gaps("ETH", "2026-02-28 07:00", "2026-03-01")',
  coverage: `w.coverage("ETH", ${window})`,
  "an exchange's quotes":
    'w.ticks("Kraken:BTC/USD", columns=["price", "volume", "is_settled"], exact=True, of="mid")',
  "funding of a contract":
    'w.asof("2026-03-01 13:00", ["Deribit:BTCUSD-PERP", "OKX:BTCUSD-PERP"], of="funding")[["price"]]',
  "market caps": 'w.bars(["cap:BTC", "cap:Ethereum"], "30m")["close"]',
  "a ticker's proof": 'w.missing("Kraken:BTC/USD", "2026-03-01 12:00", "2026-03-01 12:10")',
  "a citation": `w.cite("bars", "BTC", "1h", ${window}).partition(" state=")[0]`,
  "a check": 'w.check(w.cite("ticks", ["BTC", "Kraken:BTC/USD"], "2026-03-01", "2026-03-01 12:00:00.1"))',
  "a check that fails":
    'w.check(w.cite("ticks", "BTC", "2026-03-01", "2026-03-01 12:00").replace("sha256=", "sha256=0"))["equal"]',
  "never selected": 'w.missing("ETH", "2026-02-26", "2026-02-27")',
  // The shared warehouse has no rows of an index before its wanted range.
  "all series":
    'w.series().set_index("name").assign(first=lambda f: f["first"].where(f["index_type"] != "GWA"))',
  series: 'w.series("GWA")[["name", "last"]].dropna()',
  writes: 'w.sql("DELETE FROM index_tick_rows")',
  misspelt: 'w.bars("ETHH", "1h")',
  "full name":
    'w.is_whole("bitcoin", "2026-02-28", "2026-03-01") == w.is_whole("GWA:BTC", "2026-02-28", "2026-03-01")',
  unknown: 'w.bars("no such series", "1h")',
  "bad time": 'w.bars("BTC", "1h", "yesterday")',
  "bad length": 'w.bars("BTC", "1 month")',
  parameters: `w.sql("SELECT ':t' AS text, count(*) AS n FROM index_ticks WHERE name = :name AND ts >= :t -- :no", {"name": "BTC", "t": pd.Timestamp("2026-03-01 12:00Z")})`,
  "no warehouse": 'mds.open("/no/such/file.sqlite")',
  "no export": `mds.open(${JSON.stringify(folder)})`,
  "another file": `mds.open(${JSON.stringify(import.meta.filename)})`,
  "no driver":
    "import sys; sys.modules.update(psycopg=None, psycopg2=None)\nmds.open('postgres://nobody@localhost/none')",
};

beforeAll(async () => {
  if (!hasPandas) return;
  ({ path, clock } = await fillDemoWarehouse(folder));
  installed = installClient();
  // Without its first lines, which import and open what the blocks have.
  const preamble = parsePreamble(page).replaceAll(/^(import|w =).*\n/gm, "");
  for (const { title, python } of questions) blocks[title] = setPresent(`${preamble}${python}`, clock.now());
  answers = ask(path);
});

const ask = (source: string, without?: string) =>
  runBlocks(source, blocks, { client: installed, ...(without !== undefined && { without }) });

/** Installs the wheel, offline, as a user would; returns its folder. */
function installClient(): string {
  if (!has("setuptools, wheel, pip", "the installation of the Python client")) return pythonClient;
  const wheel = buildWheel(folder);
  const target = join(folder, "installed");
  const offline = "--no-index --no-deps --disable-pip-version-check";
  const args = `-m pip install ${offline} --quiet --no-compile --root-user-action=ignore --target`.split(" ");
  const { status, stderr } = spawnSync(python, [...args, target, wheel], { encoding: "utf8" });
  if (status !== 0) throw new Error(stderr);
  return target;
}

const answerOf = (title: string): PythonAnswer => answers[title] ?? { error: "not asked" };
const objects = ({ columns = [], rows = [], error }: PythonAnswer) => {
  expect(error).toBeUndefined();
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
};

/** What SQL gives, in the warehouse itself. */
const query = <Row>(sql: string) => withReader(path, ({ database }) => database.prepare<[], Row>(sql).all());

const text = (ms: number) => new Date(ms).toISOString().replace(/Z$/, "000Z");

describe.runIf(hasPandas)("the cookbook in Python", () => {
  it.each(questions)("$title", ({ title, answer }) => {
    const { columns = [], rows = [], error } = answerOf(title);
    expect(error).toBeUndefined();
    expect([...rowRenderers.table(columns, rows)].join("")).toBe(answer);
  });
});

describe.runIf(hasPandas)("the Python client", () => {
  it.each(["1h", "4h", "1d"])("has the same bars of %s as SQL", (every) => {
    const expected = query<Record<string, unknown>>(
      `SELECT time, open, open_exact, high, high_exact, low, low_exact, close, close_exact, volume_24h, volume_24h_exact, n_ticks,
        expected_ticks, coverage, is_complete, quality FROM bars_${every} WHERE ${inWindow} ORDER BY ts`,
    );
    const found = objects(answerOf(`bars ${every}`)).filter((row) => row["ETH/n_ticks"] !== 0);
    const own = (row: Record<string, unknown>, name: string) => row[name === "time" ? name : `ETH/${name}`];
    const names = Object.keys(expected[0] ?? {});
    const shown = found.map((row) => Object.fromEntries(names.map((name) => [name, own(row, name)])));
    expect(shown).toEqual(expected);
  });

  it("has a row for every bar of a grid, and typed columns", () => {
    const rows = objects(answerOf("bars with a grid"));
    expect(rows).toHaveLength(24);
    const time = text(Date.parse("2026-02-28T07:00Z"));
    expect(rows[7]).toMatchObject({ time, close: null, n_ticks: 0, is_complete: 0 });
    expect(answerOf("types of bars").value).toEqual([
      ...Array(5).fill("float64"),
      ...["int64", "int64", "float64", "bool"],
      expect.stringMatching(/^(object|str)$/),
      expect.stringMatching(/^datetime64\[(ns|us), UTC\]$/),
    ]);
    expect(answerOf("no bars")).toMatchObject({ rows: [] });
    expect(answerOf("no ticks").value).toBe("GWA:USDT has no ticks; ohlcv() reads the service's daily bars");
    // 2026-02-28 00:00 in Tokyo is 15:00 UTC of the day before; the end is 00:00 UTC.
    expect(answerOf("bars as arrays").rows).toHaveLength(9);
  });

  it("refuses bars that are not whole if it shall", () => {
    expect(answerOf("require whole BTC").value).toBe(24);
    expect(answerOf("require whole ETH").error).toMatch(
      /^Incomplete: ETH is not proven from 2026-02-28 06:30:00\+00:00 to 2026-02-28 08:00:00\+00:00 \(open, pending\)/,
    );
  });

  it("has the ticks of SQL, exactly, in the window and not beyond it", () => {
    const expected = query<object>(
      `SELECT time, price, volume, is_settled, quality, price_exact, volume_exact FROM index_ticks
        WHERE name = 'ETH' AND time >= '2026-02-28T06' AND time < '2026-02-28T09' ORDER BY ts`,
    ).map(Object.values);
    expect(expected.length).toBeGreaterThan(100);
    const { columns, rows } = answerOf("ticks");
    const names = "time price volume is_settled quality price_exact volume_exact";
    expect(columns).toEqual(names.split(" "));
    expect(rows).toEqual(expected);
    const beside = objects(answerOf("ticks side by side"));
    const has = beside.map(({ time, BTC, ETH }) => [String(time).slice(14, 19), BTC !== null, ETH !== null]);
    expect(has).toEqual([
      ["29:00", true, true],
      ["29:30", true, true],
      ["30:00", true, false],
      ["30:30", true, false],
    ]);
    expect(answerOf("ticks of a few seconds").value).toBe(1);
  });

  it("knows what each series was worth at a time", () => {
    const asOf = (name: string, time: string) =>
      query<{ time: string; price: number; volume: number }>(
        `SELECT time, price, volume FROM index_ticks WHERE index_type = 'GWA' AND name = '${name}' AND time <= '${time}' ORDER BY ts DESC LIMIT 1`,
      )[0];
    const found = ["BTC", "ETH"].map((name) => asOf(name, "2026-02-28T07:15:00.000000Z"));
    expect(answerOf("as of").rows).toEqual([
      ["BTC", ...Object.values(found[0] ?? {})],
      ["ETH", ...Object.values(found[1] ?? {})],
    ]);
    expect(answerOf("as of, recent").rows).toEqual([
      ["BTC", found[0]?.price],
      ["ETH", null],
    ]);
    expect(answerOf("as of times").rows).toEqual(
      ["2026-02-28T07:15:00.000000Z", "2026-02-28T08:00:00.000000Z"].map((time) => [
        time,
        ...["BTC", "ETH"].map((name) => asOf(name, time)?.price),
      ]),
    );
  });

  it("has the returns of returns_1h, simple and logarithmic", () => {
    const expected = query<object>(
      `SELECT time, simple_return FROM returns_1h WHERE ${inWindow} ORDER BY ts`,
    );
    const found = (answerOf("returns").rows ?? []).filter(([time]) => !String(time).includes("T07"));
    expect(found).toEqual(expected.map(Object.values));
    const logs = answerOf("log returns").rows ?? [];
    expect(logs).toHaveLength(24);
    for (const [at, [, simple]] of (answerOf("returns").rows ?? []).entries())
      if (simple === null) expect(logs[at]?.[1]).toBeNull();
      else expect(logs[at]?.[1]).toBeCloseTo(Number(simple), 12);
  });

  it("tells what is proven and what is missing", () => {
    expect(answerOf("is whole").rows).toEqual([[1], [0]]);
    expect(answerOf("is whole, one").value).toEqual([1, 0, 1]);
    expect(objects(answerOf("gaps"))).toEqual([
      expect.objectContaining({
        ...{ stream: "index_ticks", name: "ETH", state: "open", reason: "pending" },
        ...{ from_time: "2026-02-28T07:00:00.000000Z", to_time: "2026-02-28T08:00:00.000000Z" },
      }),
    ]);
    expect(
      objects(answerOf("coverage")).map(({ from_time, to_time, proof }) => [from_time, to_time, proof]),
    ).toEqual([
      ["2026-02-28T00:00:00.000000Z", "2026-02-28T06:30:00.000000Z", "rows"],
      ["2026-02-28T08:00:00.000000Z", "2026-03-01T00:00:00.000000Z", "rows"],
    ]);
    expect(objects(answerOf("never selected"))).toEqual([
      expect.objectContaining({ from_time: "2026-02-26T00:00:00.000000Z", reason: "not selected" }),
    ]);
    expect(answerOf("series").rows?.map(([name]) => name)).toEqual(["BTC", "ETH", "SOL"]);
  });

  it("cannot write, and says what is wrong", () => {
    expect(answerOf("writes").error).toMatch(/OperationalError: attempt to write a readonly database/);
    expect(answerOf("misspelt").error).toMatch(
      /^UnknownSeries: the warehouse has no series ETHH: did you mean ETH/,
    );
    expect(answerOf("unknown").error).toMatch(
      /^UnknownSeries: the warehouse has no series no such series: `series\(\)` lists/,
    );
    expect(answerOf("full name").value).toBe(1);
    expect(answerOf("bad time").error).toMatch(/^ValueError: not a time: 'yesterday'; write 2026-03-01/);
    expect(answerOf("bad length").error).toMatch(
      /^ValueError: not a length: '1 month'; write 30s, 10m, 1h or 1d/,
    );
    expect(answerOf("no warehouse").error).toMatch(
      /^OpenError: there is no warehouse \/no\/such\/file\.sqlite/,
    );
    expect(answerOf("no export").error).toMatch(/^OpenError: .* is not an export: it has no manifest\.json/);
    expect(answerOf("another file").error).toMatch(/^OpenError: .* is not a warehouse/);
    expect(answerOf("no driver").error).toMatch(/^OpenError: PostgreSQL needs a driver: pip install psycopg/);
    expect(answerOf("parameters").rows).toEqual([[":t", 121]]);
  });
});

it.runIf(hasPandas)("tickers in Python have what SQL has", () => {
  const ticks = query(
    "SELECT (bid + ask) / 2 AS price FROM exchange_ticks WHERE exchange = 'Kraken' AND pair = 'BTC/USD'",
  );
  expect(objects(answerOf("an exchange's quotes")).map(({ price }) => ({ price }))).toEqual(ticks);
  expect(answerOf("funding of a contract").rows).toHaveLength(2);
  expect(answerOf("market caps").rows?.length).toBeGreaterThan(0);
  expect(answerOf("a ticker's proof").rows?.length).toBeGreaterThan(0);
  expect(answerOf("a citation").value).toMatch(/^mds1 bars BTC .* rows=24 complete=yes sha256=/);
  expect(answerOf("a check").value).toMatchObject({ equal: true, difference: null });
  expect(answerOf("a check that fails").value).toBe(0);
});

describe.runIf(exportReaders.length > 0)("the Python client on an export", () => {
  it.each(exportReaders)("gives the same answers through %s", async (reader) => {
    const to = join(folder, "export");
    await exportWarehouse({ warehouse: path, to, program: "test", clock });
    expectSameAnswers(ask(to, reader === "pyarrow" ? "duckdb" : undefined));
  });
});

describe.runIf(server)("the Python client on the shared warehouse", () => {
  it("gives the same answers, and cannot write", async () => {
    if (!server) return;
    const database = await server.createDatabase();
    await shareInto(server, database, { path });
    const url = new URL(server.url(database));
    url.password = PASSWORD;
    const found = ask(url.href);
    expectSameAnswers(found);
    expect(found.writes?.error).toMatch(/cannot execute DELETE in a read-only transaction/);
    expect(found.parameters?.rows).toEqual([[":t", 121]]);
  });
});

/** The cookbook's SQL is SQLite's own. */
function expectSameAnswers(found: Record<string, PythonAnswer>): void {
  const others = ["writes", "parameters", ...questions.map(({ title }) => title)];
  for (const [title, answer] of Object.entries(answers))
    if (!others.includes(title)) expect([title, found[title]]).toEqual([title, answer]);
}
