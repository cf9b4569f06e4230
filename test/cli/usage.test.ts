import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { USER_TIME_FORMS } from "../../src/model/time.ts";
import { runInProcess } from "../support/cli/run-command.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const times =
  "YYYY-MM-DD, a time such as '2026-03-01 12:00' (UTC) or 2026-03-01T07:00:00.5-05:00, now, or a relative time such as -7d or -90m";

/** What is wrong with a command line, and what to do: found before a warehouse or a service is needed. */
const answers: readonly (readonly [args: string | readonly string[], line: string])[] = [
  [[], "no command given: see mds-sync --help"],
  ["setings", "unknown command 'setings': did you mean settings?"],
  ["settings --confg x", "unknown option '--confg': did you mean --config?"],
  ["settings --config", "option '--config <file>' argument missing: see mds-sync --help"],
  [
    "settings extra",
    "too many arguments for 'settings'. Expected 0 arguments but got 1: extra: see mds-sync --help",
  ],
  ["simulate --port x", "--port cannot be x: give a whole number from 0 to 65535"],
  ["simulate --size huge", "--size cannot be huge: give demo or real"],
  ["backfill --stream ohlvc", "--stream cannot be ohlvc: did you mean ohlcv?"],
  ["backfill --from yesterday", `--from cannot be yesterday: give ${times}`],
  ["backfill --log-level loud", "--log-level cannot be loud: give one of debug, info, warn, error, silent"],
  ["gaps --stream intrady", "--stream cannot be intrady: did you mean intraday?"],
  ["gaps --stream ohlc", "--stream cannot be ohlc: did you mean ohlcv?"],
  ["gaps --from yesterday", `--from cannot be yesterday: give ${USER_TIME_FORMS}`],
  ["gaps --to 2026-03-01T25:00:00", `--to cannot be 2026-03-01T25:00:00: give ${USER_TIME_FORMS}`],
  [
    "gaps --from 2026-03-02 --to 2026-03-02",
    "--from 2026-03-02 is not before --to 2026-03-02: a range is [from, to)",
  ],
  ["verify --repair", "--repair needs --ledger: without it verify always repairs"],
  ["verify --ledger --all", "option '--ledger' cannot be used with option '--all': see mds-sync --help"],
  ["bars BTC", "required option '--every <length>' not specified: see mds-sync --help"],
  ["bars BTC --every 7x", "a bar cannot be 7x long: give a length such as 30s, 10m, 1h, 1d or 1w"],
  ["bars BTC --every 1h --columns clos", "--columns cannot be clos: did you mean close?"],
  ["bars BTC --every 1h --source x", "--source cannot be x: give ticks or ohlcv"],
  ["bars BTC --every 1h --format parquet", "--format parquet needs a file: name it with --out FILE"],
  ["ticks BTC --format xml", "--format cannot be xml: give table, csv, json, ndjson or parquet"],
  [
    "ticks BTC --tz Berlin",
    "there is no time zone Berlin: give a name such as Europe/Berlin or America/New_York",
  ],
  ["asof now BTC --fromat csv", "unknown option '--fromat': see mds-sync asof --help"],
  ["query --schema bars_1hr", "there is no relation bars_1hr: did you mean bars_1h?"],
  ["query --param a=1", "--param needs SQL: leave out --param, or give SQL"],
  ["query SQL --schema gaps", "--schema cannot be combined with SQL: leave out one of them"],
  ["query SQL --format xml", "--format cannot be xml: give table, csv, json or ndjson"],
  ["query SQL --json --format csv", "--json and --format csv contradict each other: leave out one of them"],
  ["query SQL --param a", "--param cannot be a: give NAME=VALUE"],
  ["query SQL --param a=@soon", `--param cannot be a=@soon: after @ give ${USER_TIME_FORMS}`],
];

describe("mds-sync", () => {
  it.each(answers)("answers %j in one line and exits 2", async (args, line) => {
    const env = { MDS_WAREHOUSE: join(temporaryFolder(), "none.sqlite") };
    const ended = await runInProcess(typeof args === "string" ? args.split(" ") : args, { env });
    expect(ended).toEqual({ stdout: "", stderr: `mds-sync: ${line}\n`, status: 2 });
  });
});
