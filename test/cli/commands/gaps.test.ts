import Database from "better-sqlite3";
import { describe, expect, it } from "vitest";
import { dayOf, formatInstant, type Micros } from "../../../src/model/time.ts";
import {
  DAY,
  follow,
  HOUR,
  lookups,
  midnight,
  present,
  usualContent,
  warehouseWith,
} from "../../support/cli/filled-warehouse.ts";
import { run, runHere } from "../../support/cli/run-command.ts";

const gaps = (path: string, ...args: string[]) => runHere(["gaps", "--warehouse", path, ...args]);
const day = (n: number) => dayOf(midnight + n * DAY);
const time = (ts: Micros) => formatInstant(ts);

interface Row {
  stream: string;
  name: string | null;
  from_time: string;
  to_time: string;
  state: string;
  reason: string;
  lost_at: string | null;
}
const short = (stdout: string) =>
  (JSON.parse(stdout) as Row[]).map(({ stream, name, from_time, to_time, state, reason }) => [
    stream,
    name,
    from_time,
    to_time,
    state,
    reason,
  ]);

describe("mds-sync gaps", () => {
  it("lists every missing range under its series on 80 columns, and the next to leave the window", async () => {
    const { stdout, stderr, status } = await run(["gaps", "--warehouse", warehouseWith(usualContent)]);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
    const lines = stdout.split("\n");
    expect(lines.filter((line) => /^\w/.test(line)).slice(0, 3)).toEqual([
      "exchange_ticks Kraken",
      "index_ticks GWA BTC",
      "index_ticks GWA ETH",
    ]);
    expect(stdout).toMatch(
      new RegExp(
        `^ ${day(-5)} 00:00:00 {2}${day(-4)} 00:00:00 +1d {2}open {2}pending, lost in 19[45]d$`,
        "m",
      ),
    );
    expect(stdout).toMatch(new RegExp(`^ ${day(-300)} 00:00:00 .* 100d {2}lost {2}aged out$`, "m"));
    expect(stdout).toMatch(/^3 ranges open \(\S+.*\), 2 ranges lost \(\S+.*\)\.$/m);
    expect(stdout).toMatch(/^The next to leave the service's window is index_ticks GWA ETH from$/m);
    expect(stdout).toMatch(/^Besides, 4 heads that only await their confirmation \(settling\)\.$/m);
  });

  it("gives the rows of the view as JSON, of the streams and series that were asked for", async () => {
    const path = warehouseWith(usualContent);
    const database = new Database(path, { readonly: true });
    const view = database.prepare("SELECT * FROM gaps WHERE name = 'ETH' AND state = 'lost'").all() as Record<
      string,
      unknown
    >[];
    database.close();
    const [eth, byKey, byId] = await Promise.all([
      gaps(path, "--json", "--series", "ether"),
      gaps(path, "--json", "--stream", "exchangeTickers", "--stream", "marketCap"),
      gaps(path, "--json", "--series", "btc-id", "--stream", "ohlcv"),
    ]);
    const [lost] = JSON.parse(eth.stdout) as Row[];
    expect(Object.keys(lost ?? {})).toEqual(Object.keys(view[0] ?? {}));
    expect(short(eth.stdout).map(([stream, name, , , state]) => [stream, name, state])).toEqual([
      ["index_ticks", "ETH", "lost"],
      ["index_ticks", "ETH", "open"],
      ["index_ticks", "ETH", "open"],
    ]);
    expect(new Set(short(byKey.stdout).map(([stream]) => stream))).toEqual(new Set(["exchange_ticks"]));
    expect(short(byId.stdout).map(([stream, , , , , reason]) => [stream, reason])).toEqual([
      ["ohlcv", "settling"],
    ]);
  });

  it("says so when nothing is missing, and when nothing is followed", async () => {
    const whole = warehouseWith((transaction) => {
      lookups(transaction);
      follow(transaction, "ohlcv", "btc-id", { from: midnight - DAY, settled: [[midnight - DAY, midnight]] });
    });
    const [none, stranger, empty] = await Promise.all([
      gaps(whole),
      gaps(whole, "--series", "UNI", "--stream", "intraday"),
      gaps(warehouseWith()),
    ]);
    expect(none.stdout).toBe("Nothing is missing but 1 head that only awaits its confirmation (settling).\n");
    expect(stranger.stdout).toBe(
      "index_ticks GWA UNI (uni-1) is not followed: the settings do not select it.\n" +
        "index_ticks GWA UNI (uni-2) is not followed: the settings do not select it.\n",
    );
    expect(stranger.stderr).toBe(
      "mds-sync: warning: --series UNI is the name of several: all of them are meant\n",
    );
    expect(empty.stdout).toBe("Nothing with a history is followed yet.\n");
  });

  it.each([
    [["--stream", "intrady"], "--stream cannot be intrady: did you mean intraday?"],
    [["--stream", "ohlc"], "--stream cannot be ohlc: did you mean ohlcv?"],
    [["--from", "yesterday"], "--from cannot be yesterday: give YYYY-MM-DD, or a moment in UTC such as"],
    [["--to", "2026-03-01T12:00:00"], "--to cannot be 2026-03-01T12:00:00: give YYYY-MM-DD"],
    [
      ["--from", "2026-03-02", "--to", "2026-03-02"],
      "--from 2026-03-02 is not before --to 2026-03-02: a window is [from, to)",
    ],
    [["--series", "Bitcon"], "the warehouse knows no series Bitcon: did you mean Bitcoin?"],
    [
      ["--stream", "lookups", "--from", "2026-03-02"],
      "a lookup such as assets has no history that could be whole",
    ],
  ])("answers %j in one line and exits 2", async (args, line) => {
    const { stdout, stderr, status } = await gaps(warehouseWith(lookups), ...args);
    expect({ stdout, status }).toEqual({ stdout: "", status: 2 });
    expect(stderr).toMatch(/^[^\n]*\n$/);
    expect(stderr.startsWith(`mds-sync: ${line}`)).toBe(true);
  });
});

describe("a window", () => {
  const btc = ["--series", "BTC", "--stream", "index_ticks"];

  it("is whole when every second of it is covered", async () => {
    const path = warehouseWith(usualContent);
    const [whole, json, since] = await Promise.all([
      gaps(path, ...btc, "--from", day(-10), "--to", day(-5)),
      gaps(path, "--json", ...btc, "--from", day(-4), "--to", time(present - HOUR)),
      gaps(path, "--stream", "ohlcv", "--from", day(-30)),
    ]);
    expect(whole).toEqual({
      stdout: `Whole: every second of index_ticks GWA BTC in [${day(-10)} 00:00:00,\n${day(-5)} 00:00:00) is covered.\n`,
      stderr: "",
      status: 0,
    });
    expect(json).toEqual({ stdout: "[]\n", stderr: "", status: 0 });
    expect(since).toMatchObject({ stderr: "", status: 0 });
  });

  it("is not whole by what is open or lost in it, clipped to it", async () => {
    const path = warehouseWith(usualContent);
    const noon = time(midnight - 4.5 * DAY);
    const [clipped, lost, told] = await Promise.all([
      gaps(path, "--json", ...btc, "--from", day(-8), "--to", noon),
      gaps(path, "--json", "--series", "eth", "--from", day(-250), "--to", day(-249)),
      run(["gaps", "--warehouse", path, ...btc, "--from", day(-8), "--to", noon]),
    ]);
    expect(clipped.status).toBe(4);
    expect(short(clipped.stdout)).toEqual([
      ["index_ticks", "BTC", time(midnight - 5 * DAY), noon, "open", "pending"],
    ]);
    expect((JSON.parse(clipped.stdout) as Row[])[0]?.lost_at).toBe(time(midnight + 195 * DAY));
    expect(lost.status).toBe(4);
    expect(short(lost.stdout)).toEqual([
      ["index_ticks", "ETH", time(midnight - 250 * DAY), time(midnight - 249 * DAY), "lost", "aged out"],
    ]);
    expect(told.stdout).toContain("Not whole: 1 range open (12h) in [");
    expect(told.stderr).toBe("mds-sync: the window is not whole: `mds-sync backfill` fetches what is open\n");
    expect(told.status).toBe(4);
  });

  it("is open in the future and where its head awaits confirmation", async () => {
    const path = warehouseWith(usualContent);
    const { stdout, status } = await gaps(
      path,
      "--json",
      "--stream",
      "ohlcv",
      "--from",
      day(-3),
      "--to",
      day(2),
    );
    expect(status).toBe(4);
    const [head, future] = short(stdout);
    expect(head).toEqual(["ohlcv", "BTC", time(midnight), future?.[2], "open", "settling"]);
    expect(future?.slice(3)).toEqual([time(midnight + 2 * DAY), "open", "in the future"]);
  });

  it("is not whole where nothing is known: never selected, before its beginning, or an empty warehouse", async () => {
    const path = warehouseWith(usualContent);
    const window = ["--json", "--from", day(-20), "--to", day(-8)];
    const [before, never, observed, stream, empty, unbegun] = await Promise.all([
      gaps(path, ...btc, ...window),
      gaps(path, "--series", "BTC/USD", "--stream", "ohlcv", ...window),
      gaps(path, "--series", "Kraken", ...window),
      gaps(path, "--stream", "market_caps", ...window),
      gaps(warehouseWith(), ...window),
      gaps(path, "--to", "2014-01-01", "--stream", "ohlcv"),
    ]);
    const [from, to] = [time(midnight - 20 * DAY), time(midnight - 8 * DAY)];
    expect(short(before.stdout)).toEqual([
      ["index_ticks", "BTC", from, time(midnight - 10 * DAY), "open", "not selected"],
    ]);
    expect(short(never.stdout)).toEqual([["ohlcv", "BTC/USD", from, to, "open", "not selected"]]);
    expect(short(observed.stdout)).toEqual([["exchange_ticks", "Kraken", from, to, "lost", "not followed"]]);
    expect(short(stream.stdout)).toEqual([["market_caps", null, from, to, "lost", "not followed"]]);
    expect(unbegun.stdout).toContain("Nothing is known about ohlcv GWA BTC in all before 2014-01-01");
    for (const { status } of [before, never, observed, stream, empty, unbegun]) expect(status).toBe(4);
  });

  it("speaks of a deselected series only for the time that it was followed, unless it is asked for by name", async () => {
    const path = warehouseWith((transaction) => {
      usualContent(transaction);
      transaction
        .statement("UPDATE wanted_ranges SET to_ts = ? WHERE stream = 'ohlcv'")
        .run([midnight - 20 * DAY]);
      transaction.statement("DELETE FROM settled_ranges WHERE stream = 'ohlcv'").run([]);
      follow(transaction, "ohlcv", "eth-id", {
        from: midnight - 9 * DAY,
        settled: [[midnight - 9 * DAY, midnight]],
      });
    });
    const window = ["--stream", "ohlcv", "--from", day(-8), "--to", day(-7)];
    const [unnamed, named] = await Promise.all([
      gaps(path, ...window),
      gaps(path, "--series", "BTC", ...window),
    ]);
    expect(unnamed.status).toBe(0);
    expect(unnamed.stdout).toContain("Whole: every second of ohlcv GWA ETH");
    expect(named.status).toBe(4);
  });
});
