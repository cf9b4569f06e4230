import type { Clock } from "../../runtime/clock.ts";
import type { TextOutput } from "../../telemetry/nonblocking-stderr.ts";
import { withReader } from "../../warehouse/reader.ts";
import { isTerminal } from "../output/progress-bar.ts";
import { formatNumber } from "../output/text.ts";

/** Output that is not a terminal cannot be redrawn, so it gets a new line less often. */
const LINE_INTERVAL_MS = 10_000;
const REDRAW_INTERVAL_MS = 1_000;
const SCREEN_WIDTH = 80;
/** Assets with well-known prices. */
const SHOWN_ASSETS = ["BTC", "ETH", "SOL", "XRP"];

/** Writes what the demo shows besides the progress of its backfill. */
export class DemoScreen {
  readonly #path: string;
  readonly #clock: Pick<Clock, "monotonic" | "now">;
  readonly #stderr: TextOutput;
  readonly #isTerminal: boolean;
  #isFilled = false;
  #hasDrawnLine = false;
  #tickCount = 0;
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(options: {
    path: string;
    clock: Pick<Clock, "monotonic" | "now">;
    stderr: TextOutput;
  }) {
    this.#path = options.path;
    this.#clock = options.clock;
    this.#stderr = options.stderr;
    this.#isTerminal = isTerminal(options.stderr);
  }

  showIntroduction(): void {
    this.#writeLine("demo: the data comes from a built-in simulator; nothing leaves this machine");
  }

  /** Called when the backfill is done. */
  showExampleQueries(): void {
    const yesterday = new Date(this.#clock.now() - 86_400_000).toISOString().slice(0, 10);
    const query = (sql: string) => `  npx mds-sync query "${sql}"`;
    for (const line of [
      "",
      "try, in another terminal:",
      `  export MDS_WAREHOUSE=${this.#path}`,
      query("SELECT name, time, price_exact FROM latest_index_ticks"),
      query(`SELECT name, close FROM ohlcv WHERE day = '${yesterday}'`),
      query("SELECT time, close FROM bars_1h WHERE name='BTC' LIMIT 5"),
      "",
    ])
      this.#writeLine(line);
    this.#isFilled = true;
  }

  /** Called when live ticks are committed. Shows nothing while the backfill draws its progress. */
  showLiveTicks(ticks: number): void {
    this.#tickCount += ticks;
    const intervalMs = this.#isTerminal ? REDRAW_INTERVAL_MS : LINE_INTERVAL_MS;
    if (!this.#isFilled || this.#tickCount === 0 || this.#clock.monotonic() - this.#shownAt < intervalMs)
      return;
    this.#shownAt = this.#clock.monotonic();
    const line = `live: ${formatNumber(this.#tickCount)} ticks on disk${this.#formatPrices()}`.slice(
      0,
      SCREEN_WIDTH - 1,
    );
    this.#stderr.write(this.#isTerminal ? `\r\u001b[2K${line}\r` : `${line}\n`);
    this.#hasDrawnLine = this.#isTerminal;
  }

  /** Ends the redrawn line, so that the next output starts on its own line. */
  end(): void {
    if (this.#hasDrawnLine) this.#writeLine("");
    this.#hasDrawnLine = false;
  }

  #writeLine(line: string): void {
    this.#stderr.write(`${line}\n`);
  }

  #formatPrices(): string {
    const sql = `SELECT name, price FROM latest_index_ticks WHERE index_type = 'GWA' AND name IN (${SHOWN_ASSETS.map(() => "?").join()})`;
    const rows = withReader(this.#path, (reader) => reader.statement(sql).all(SHOWN_ASSETS)) as {
      name: string;
      price: number | null;
    }[];
    const known = rows.toSorted((a, b) => SHOWN_ASSETS.indexOf(a.name) - SHOWN_ASSETS.indexOf(b.name));
    return known.map(({ name, price }) => `, ${name} ${formatPrice(price)}`).join("");
  }
}

function formatPrice(price: number | null): string {
  const digits = price !== null && Math.abs(price) < 10 ? 4 : 2;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return price === null ? "–" : price.toLocaleString("en-US", format);
}
