import { describe, expect, it } from "vitest";
import { formatDay, formatTimestamp, type Micros } from "../../../src/model/time.ts";
import { storeClaim } from "../../../src/warehouse/coverage/pending-claims.ts";
import { expectNarrow, unwrap } from "../../support/cli/expect-output.ts";
import { runInProcess } from "../../support/cli/run-command.ts";
import { addLookups, standardContent } from "../../support/cli/standard-content.ts";
import {
  createWarehouse,
  DAY,
  fill,
  HOUR,
  midnight,
  nowTs,
} from "../../support/warehouse/filled-warehouse.ts";
import { queryFile } from "../../support/warehouse/warehouse-file.ts";

const gaps = (path: string, ...args: string[]) => runInProcess(["gaps", "--warehouse", path, ...args]);
const day = (n: number) => formatDay(midnight + n * DAY);
const format = (ts: Micros) => formatTimestamp(ts);

interface Row {
  stream: string;
  name: string | null;
  from_time: string;
  to_time: string;
  state: string;
  reason: string;
  lost_at: string | null;
}
const shown = ["stream", "name", "from_time", "to_time", "state", "reason"] as const;
const summarize = (stdout: string) =>
  (JSON.parse(stdout) as Row[]).map((row) => shown.map((column) => row[column]));

describe("mds-sync gaps", () => {
  it("lists every gap under its series on 80 columns, and the next to leave the window", async () => {
    const { stdout, stderr, status } = await gaps(createWarehouse(standardContent));
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expectNarrow(stdout);
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
    expect(stdout).toMatch(/^3 ranges open \(the longest .*\), 2 ranges lost \(the longest 100d\)\.$/m);
    expect(stdout).toMatch(/^The next gap to leave the service's window is index_ticks GWA ETH from$/m);
    expect(stdout).toMatch(/^In addition, 4 heads not confirmed yet \(settling\)\.$/m);
  });

  it("prints the rows of the view as JSON, filtered by stream and series", async () => {
    const path = createWarehouse(standardContent);
    const view = queryFile(path, "SELECT * FROM gaps WHERE name = 'ETH' AND state = 'lost'");
    const [eth, byKey, byId] = await Promise.all([
      gaps(path, "--json", "--series", "ether"),
      gaps(path, "--json", "--stream", "exchangeTickers", "--stream", "marketCap"),
      gaps(path, "--json", "--series", "GWA:BTC", "--stream", "ohlcv"),
    ]);
    const [lost] = JSON.parse(eth.stdout) as Row[];
    expect(Object.keys(lost ?? {})).toEqual(Object.keys(view[0] ?? {}));
    expect(summarize(eth.stdout).map(([stream, name, , , state]) => [stream, name, state])).toEqual([
      ["index_ticks", "ETH", "lost"],
      ["index_ticks", "ETH", "open"],
      ["index_ticks", "ETH", "unconfirmed"],
    ]);
    expect(new Set(summarize(byKey.stdout).map(([stream]) => stream))).toEqual(new Set(["exchange_ticks"]));
    expect(summarize(byId.stdout).map(([stream, , , , , reason]) => [stream, reason])).toEqual([
      ["ohlcv", "settling"],
    ]);
  });

  it("reports that nothing is missing, and that nothing is synced", async () => {
    const complete = createWarehouse((transaction) => {
      addLookups(transaction);
      fill(transaction, {
        series: [{ stream: "ohlcv", from: midnight - DAY, settled: [[midnight - DAY, midnight]] }],
      });
    });
    const [none, stranger, empty] = await Promise.all([
      gaps(complete),
      gaps(complete, "--series", "UNI", "--stream", "intraday"),
      gaps(createWarehouse()),
    ]);
    expect(none.stdout).toBe("Nothing is missing: 1 head not confirmed yet (settling).\n");
    expect(stranger.stdout).toBe(
      "index_ticks GWA UNI (uni-1) is not synced: the settings do not select it.\n" +
        "index_ticks GWA UNI (uni-2) is not synced: the settings do not select it.\n",
    );
    expect(stranger.stderr).toBe(
      "mds-sync: warning: --series UNI matches several series: all of them are used\n",
    );
    expect(empty.stdout).toBe("No stream with a history is synced yet.\n");
  });

  it.each([
    [["--series", "Bitcon"], "the warehouse has no series Bitcon: did you mean Bitcoin?"],
    [["--stream", "lookups", "--from", "2026-03-02"], "a lookup such as assets has no history"],
  ])("answers %j in one line and exits 2", async (args, line) => {
    const { stdout, stderr, status } = await gaps(createWarehouse(addLookups), ...args);
    expect({ stdout, status }).toEqual({ stdout: "", status: 2 });
    expect(stderr).toMatch(/^[^\n]*\n$/);
    expect(stderr.startsWith(`mds-sync: ${line}`)).toBe(true);
  });
});

describe("a window", () => {
  const btc = ["--series", "BTC", "--stream", "index_ticks"];

  it("is complete if every second of it is covered", async () => {
    const path = createWarehouse(standardContent);
    const [complete, json, since] = await Promise.all([
      gaps(path, ...btc, "--from", day(-10), "--to", day(-5)),
      gaps(path, "--json", ...btc, "--from", day(-4), "--to", format(nowTs - HOUR)),
      gaps(path, "--stream", "ohlcv", "--from", day(-30)),
    ]);
    expect(complete).toEqual({
      stdout: `Complete: every second of index_ticks GWA BTC in [${day(-10)} 00:00:00,\n${day(-5)} 00:00:00) is covered.\n`,
      stderr: "",
      status: 0,
    });
    expect(json).toEqual({ stdout: "[]\n", stderr: "", status: 0 });
    expect(since).toMatchObject({ stderr: "", status: 0 });
  });

  it("is not complete if a gap overlaps it; the gap is clipped to the window", async () => {
    const path = createWarehouse(standardContent);
    const noon = format(midnight - 4.5 * DAY);
    const [clipped, lost, text] = await Promise.all([
      gaps(path, "--json", ...btc, "--from", day(-8), "--to", noon),
      gaps(path, "--json", "--series", "eth", "--from", day(-250), "--to", day(-249)),
      gaps(path, ...btc, "--from", day(-8), "--to", noon),
    ]);
    expect(clipped.status).toBe(4);
    expect(summarize(clipped.stdout)).toEqual([
      ["index_ticks", "BTC", format(midnight - 5 * DAY), noon, "open", "pending"],
    ]);
    expect((JSON.parse(clipped.stdout) as Row[])[0]?.lost_at).toBe(format(midnight + 195 * DAY));
    expect(lost.status).toBe(4);
    expect(summarize(lost.stdout)).toEqual([
      ["index_ticks", "ETH", format(midnight - 250 * DAY), format(midnight - 249 * DAY), "lost", "aged out"],
    ]);
    expect(text.stdout).toContain("Not complete: 1 range open (12h) in [");
    const local = await gaps(path, ...btc, "--tz", "Asia/Kolkata", "--from", day(-8), "--to", noon);
    expect(local.stdout).toMatch(/ \d{4}-\d\d-\d\d 05:30:00 {2}\d{4}-\d\d-\d\d 17:30:00 {2}12h/);
    expect(text.stderr).toBe(
      "mds-sync: the range is not complete: `mds-sync backfill` fetches what is open\n",
    );
    expect(text.status).toBe(4);
  });

  it("is open in the future, and where the head awaits confirmation", async () => {
    const path = createWarehouse(standardContent);
    const window = ["--from", day(-3), "--to", day(2)];
    const { stdout, status } = await gaps(path, "--json", "--stream", "ohlcv", ...window);
    expect(status).toBe(4);
    const [head, future] = summarize(stdout);
    expect(head).toEqual(["ohlcv", "BTC", format(midnight), future?.[2], "unconfirmed", "settling"]);
    expect(future?.slice(3)).toEqual([format(midnight + 2 * DAY), "open", "in the future"]);
  });

  it("is not proven where only confirmations are missing, and says when they come", async () => {
    const path = createWarehouse((transaction) => {
      addLookups(transaction);
      fill(transaction, { series: [{ from: nowTs - 10 * DAY, settled: [[nowTs - 5 * DAY, nowTs]] }] });
      const series = transaction.dictionary.getSeriesKey("GWA", "btc-id");
      const key = { stream: "index_ticks", series } as const;
      const range = { from: nowTs - 9 * DAY, to: nowTs - 5 * DAY };
      const counts = { subject: [], answers: 1, firstAt: nowTs, lastAt: nowTs, acceptedAt: null };
      storeClaim(transaction, key, { kind: "end", range, ...counts }, 0);
    });
    const { stdout, stderr, status } = await gaps(path, "--from", day(-7), "--to", day(-6));
    expect(status).toBe(4);
    const due = format(Math.ceil((nowTs + 600e6) / 60e6) * 60e6).slice(11, 16);
    const text = unwrap(stdout);
    expect(text).toContain(
      "Not proven yet, though all that the service has shown is stored: 1 range unconfirmed (1d) in [",
    );
    expect(text).toMatch(
      new RegExp(
        `1 series: start of history not confirmed yet; the next run after (\\S+ )?${due} UTC asks again`,
      ),
    );
    expect(stderr).toContain("the service must repeat that it has nothing there");
    // The rest of it is covered, and nothing is open.
    expect((await gaps(path, "--from", day(-4), "--to", day(-3))).status).toBe(0);
    const shown = JSON.parse((await runInProcess(["status", "--warehouse", path, "--json"])).stdout);
    expect(shown.confirmations).toMatchObject({ starts: 1, not_found: 0, due_at: format(nowTs + 600e6) });
    expect(shown.streams[5]).toMatchObject({ stream: "index_ticks", open: 0, lost: 0 });
  });

  it("is not complete without any ledger entry: never selected, before the start of the series, or an empty warehouse", async () => {
    const path = createWarehouse(standardContent);
    const window = ["--json", "--from", day(-20), "--to", day(-8)];
    const [before, never, observed, stream, empty, unbegun] = await Promise.all([
      gaps(path, ...btc, ...window),
      gaps(path, "--series", "BTC/USD", "--stream", "ohlcv", ...window),
      gaps(path, "--series", "Kraken", ...window),
      gaps(path, "--stream", "market_caps", ...window),
      gaps(createWarehouse(), ...window),
      gaps(path, "--to", "2014-01-01", "--stream", "ohlcv"),
    ]);
    const [from, to] = [format(midnight - 20 * DAY), format(midnight - 8 * DAY)];
    expect(summarize(before.stdout)).toEqual([
      ["index_ticks", "BTC", from, format(midnight - 10 * DAY), "open", "not selected"],
    ]);
    expect(summarize(never.stdout)).toEqual([["ohlcv", "BTC/USD", from, to, "open", "not selected"]]);
    expect(summarize(observed.stdout)).toEqual([
      ["exchange_ticks", "Kraken", from, to, "lost", "not followed"],
    ]);
    expect(summarize(stream.stdout)).toEqual([["market_caps", null, from, to, "lost", "not followed"]]);
    expect(unbegun.stdout).toContain("Nothing is known about ohlcv GWA BTC in all before 2014-01-01");
    for (const { status } of [before, never, observed, stream, empty, unbegun]) expect(status).toBe(4);
  });

  it("ignores a deselected series after its deselection, unless --series names it", async () => {
    const path = createWarehouse((transaction) => {
      standardContent(transaction);
      transaction.statement("UPDATE targets SET to_ts = ? WHERE stream = 'ohlcv'").run([midnight - 20 * DAY]);
      transaction.statement("DELETE FROM settled_ranges WHERE stream = 'ohlcv'").run([]);
      const from = midnight - 9 * DAY;
      const series = { stream: "ohlcv", indexId: "eth-id", from, settled: [[from, midnight]] } as const;
      fill(transaction, { series: [series] });
    });
    const window = ["--stream", "ohlcv", "--from", day(-8), "--to", day(-7)];
    const [unnamed, named] = await Promise.all([
      gaps(path, ...window),
      gaps(path, "--series", "BTC", ...window),
    ]);
    expect(unnamed.status).toBe(0);
    expect(unnamed.stdout).toContain("Complete: every second of ohlcv GWA ETH");
    expect(named.status).toBe(4);
  });
});
