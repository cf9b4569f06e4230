import type { PulseResult, PulseTick } from "../../model/answers/ticks.ts";
import { formatTimestamp, type Micros } from "../../model/time.ts";
import { readStreamStates } from "../rows/stream-stats.ts";
import type { Connection } from "../sqlite/connection.ts";
import { canContinue, type JournalPosition, readChanges, readJournalPosition } from "../tables/journal.ts";
import { MAX_AHEAD_MICROS } from "../views/data-views.ts";

const newestSql = `SELECT s.index_type, s.index_id, r.ts, r.price FROM series s CROSS JOIN index_tick_rows r
  WHERE s.series = ? AND r.series = s.series AND r.ts < ? AND r.price IS NOT NULL ORDER BY r.ts DESC LIMIT 1`;

/** Reads what has been committed since it was last asked. */
export class PulseReader {
  readonly #newestTs = new Map<number, Micros>();
  #version: number | undefined;
  #position: JournalPosition | undefined;

  /** Undefined if no other connection has committed. The first one has no ticks: pages have just read their state. */
  read(reader: Connection, now: Micros): PulseResult | undefined {
    const version = Number(reader.database.pragma("data_version", { simple: true }));
    if (version === this.#version) return undefined;
    this.#version = version;
    const rows = Object.fromEntries(readStreamStates(reader).map((state) => [state.stream, state.rows]));
    return { time: formatTimestamp(now), rows, ticks: this.#readMoved(reader, now) };
  }

  /** The newest ticks of the series that the journal names. */
  #readMoved(reader: Connection, now: Micros): PulseTick[] {
    const position = readJournalPosition(reader);
    const before = this.#position;
    this.#position = position;
    if (!before || !canContinue(position, before)) return [];
    const changes = readChanges(reader, { after: before.seq, until: position.seq });
    const keys = new Set(
      changes.filter(({ stream, kind }) => stream === "index_ticks" && kind === "rows").map(({ key }) => key),
    );
    const newest = reader.statement<PulseTick>(newestSql).raw();
    return [...keys].flatMap((key) => {
      const tick = newest.get([key, now + MAX_AHEAD_MICROS]);
      if (!tick || tick[2] <= (this.#newestTs.get(key) ?? 0)) return [];
      this.#newestTs.set(key, tick[2]);
      return [tick];
    });
  }
}
