import type { Clock } from "../../runtime/clock.ts";
import type { Talk } from "../../telemetry/nonblocking-stderr.ts";
import { lookOn } from "../../warehouse/reader.ts";
import { isTerminal } from "../output/progress-bar.ts";

/** Where nothing can be drawn over, a line now and then is enough. */
const LINE_EVERY_MS = 10_000;
const DRAW_EVERY_MS = 1_000;
const WIDTH = 80;
/** What a person knows the price of. */
const SHOWN = ["BTC", "ETH", "SOL", "XRP"];

/** What a person sees of the demo beside the progress of its backfill. */
export class DemoScreen {
  readonly #path: string;
  readonly #clock: Pick<Clock, "monotonic" | "now">;
  readonly #stderr: Talk;
  readonly #isTerminal: boolean;
  #isFilled = false;
  #isDrawn = false;
  #ticks = 0;
  #shownAt = Number.NEGATIVE_INFINITY;

  constructor(options: {
    path: string;
    clock: Pick<Clock, "monotonic" | "now">;
    stderr: Talk;
  }) {
    this.#path = options.path;
    this.#clock = options.clock;
    this.#stderr = options.stderr;
    this.#isTerminal = isTerminal(options.stderr);
  }

  greet(): void {
    this.#say("demo: a built-in simulator plays the service; nothing leaves this machine");
  }

  /** What is missing has been filled: time to look at it. */
  invite(): void {
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
      this.#say(line);
    this.#isFilled = true;
  }

  /** Ticks that came live are on disk. Nothing is shown of them while the backfill's progress is drawn. */
  live(ticks: number): void {
    this.#ticks += ticks;
    const every = this.#isTerminal ? DRAW_EVERY_MS : LINE_EVERY_MS;
    if (!this.#isFilled || this.#ticks === 0 || this.#clock.monotonic() - this.#shownAt < every) return;
    this.#shownAt = this.#clock.monotonic();
    const line = `live: ${this.#ticks.toLocaleString("en-US")} ticks on disk${this.#prices()}`.slice(
      0,
      WIDTH - 1,
    );
    this.#stderr.write(this.#isTerminal ? `\r\u001b[2K${line}\r` : `${line}\n`);
    this.#isDrawn = this.#isTerminal;
  }

  /** Leaves the line that is drawn over, so that what follows has its own. */
  end(): void {
    if (this.#isDrawn) this.#say("");
    this.#isDrawn = false;
  }

  #say(line: string): void {
    this.#stderr.write(`${line}\n`);
  }

  #prices(): string {
    const sql = `SELECT name, price FROM latest_index_ticks WHERE index_type = 'GWA' AND name IN (${SHOWN.map(() => "?").join()})`;
    const rows = lookOn(this.#path, (reader) => reader.statement(sql).all(SHOWN)) as {
      name: string;
      price: number | null;
    }[];
    const known = rows.toSorted((a, b) => SHOWN.indexOf(a.name) - SHOWN.indexOf(b.name));
    return known.map(({ name, price }) => `, ${name} ${priceText(price)}`).join("");
  }
}

function priceText(price: number | null): string {
  const digits = price !== null && Math.abs(price) < 10 ? 4 : 2;
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return price === null ? "–" : price.toLocaleString("en-US", format);
}
