import { isDaily, type Stream } from "../../model/streams.ts";
import { formatInstant, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import {
  type CellRun,
  type CellState,
  CellSums,
  dayGrid,
  hourGrid,
  monthGrid,
  type TimeGrid,
} from "./heatmap-grid.ts";
import {
  type CoverageGroup,
  type CoveragePicture,
  type CoverageRow,
  type LineRow,
  lineKey,
  type MissingPart,
  type MissingPicture,
  type RowsShown,
  type SeriesFound,
  type Step,
} from "./heatmap-types.ts";
import { isWalkedSql, type ObservedCells, partSeen, readObserved } from "./snapshot-gaps.ts";

interface RangeRow extends TimeRange {
  readonly stream: string;
  readonly series: number;
}

interface GapRow {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly from: Micros;
  readonly to: Micros;
  readonly state: "open" | "lost";
  readonly reason: string;
  readonly lost_at: string | null;
}

interface Piece extends TimeRange {
  readonly state: CellState;
}

const MOST_DAYS = 200;
const LEAST_DAYS = 30;
/** A group that is younger is shown by the hour: three days among two hundred would be a thread. */
const MOST_HOURS = 96;
const LEAST_HOURS = 24;
const MOST_MONTHS = 180;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const streamOrder = ["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks"];
const familyOrder = ["LX", "GWA", "MWA"];

const linesSql = `SELECT l.stream, l.series, s.index_type, s.index_id, s.name, min(l.from_ts) AS first
FROM (SELECT stream, series, from_ts FROM wanted_ranges
  UNION ALL SELECT stream, series, min(from_ts) FROM settled_ranges GROUP BY stream, series) l
  JOIN series s ON s.series = l.series GROUP BY l.stream, l.series`;

const coveredSql = `SELECT stream, series, from_ts AS "from", to_ts AS "to" FROM settled_ranges
  WHERE ${isWalkedSql} AND proof <> 'lost'`;

const gapsSql = `SELECT stream, index_type, index_id, name, from_ts AS "from", to_ts AS "to", state, reason, lost_at FROM gaps
  WHERE ${isWalkedSql}`;

/**
 * The whole ledger as people look at it, at one moment. Reads all of it, once: not for the thread that has the network
 * to mind. Rows are drawn when they are shown, since nobody looks at thousands.
 */
export class LedgerPicture {
  readonly #at: Micros;
  readonly #groups: readonly [string, readonly LineRow[]][];
  readonly #pieces: ReadonlyMap<string, readonly Piece[]>;
  readonly #observed: ReadonlyMap<string, ObservedCells>;
  readonly #grids: Readonly<Record<Step, TimeGrid>>;
  readonly #steps: ReadonlyMap<string, Step>;
  readonly #summaries: ReadonlyMap<string, { readonly runs: readonly CellRun[]; readonly whole: number }>;
  readonly #missing: readonly MissingPart[];

  constructor(connection: Connection, now: Micros) {
    const all = <Row>(sql: string) => connection.statement(sql).all() as Row[];
    const read = () => {
      const lines = all<LineRow>(linesSql);
      const groups = Map.groupBy(lines, groupKey);
      const steps = new Map([...groups].map(([key, members]) => [key, stepOf(members, now)]));
      const grids = gridsFor(lines, steps, now);
      return {
        ...{ lines, groups, steps, grids },
        ranks: readRanks(connection),
        covered: all<RangeRow>(coveredSql),
        gaps: all<GapRow>(gapsSql),
        observed: readObserved(connection, lines, (line) => grids[steps.get(groupKey(line)) ?? "day"]),
      };
    };
    const { lines, groups, steps, grids, ranks, covered, gaps, observed } =
      connection.database.transaction(read)();
    for (const members of groups.values()) {
      members.sort((a, b) => rankOf(ranks, a) - rankOf(ranks, b) || (a.name < b.name ? -1 : 1));
    }
    this.#at = now;
    this.#steps = steps;
    this.#grids = grids;
    this.#pieces = piecesByLine(lines, covered, gaps);
    this.#observed = observed;
    this.#groups = [...groups].sort(([, [a]], [, [b]]) => placeOf(a) - placeOf(b));
    this.#summaries = new Map(this.#groups.map(([key, members]) => [key, this.#summarise(key, members)]));
    this.#missing = missingParts(gaps)
      .concat([...observed.values()].flatMap(({ parts }) => [...parts.values()].map(partSeen)))
      .sort((a, b) => (a.state === b.state ? b.seconds - a.seconds : a.state === "open" ? -1 : 1));
  }

  /** The indices that people know best, as far as their ticks are followed. */
  bestKnown(count: number): { index_type: string; index_id: string }[] {
    return this.#groups
      .filter(([key]) => key.startsWith("index_ticks:"))
      .flatMap(([, members]) => members)
      .slice(0, count);
  }

  /** Indices with ticks whose name holds the text: those that begin with it first, then the best known. */
  find(text: string, most: number): SeriesFound[] {
    const sought = text.trim().toLowerCase();
    const place = ({ name, index_id }: LineRow) => {
      const at = name.toLowerCase().indexOf(sought);
      return at === 0 && name.length === sought.length
        ? 0
        : at === 0
          ? 1
          : at > 0 || index_id === text
            ? 2
            : 3;
    };
    return this.#groups
      .filter(([key]) => key.startsWith("index_ticks:"))
      .flatMap(([, members]) => members.map((member) => ({ member, place: place(member) })))
      .filter((found) => found.place < 3)
      .sort((a, b) => a.place - b.place)
      .slice(0, most)
      .map(({ member: { index_type, index_id, name } }) => ({ index_type, index_id, name }));
  }

  show({ usual, byGroup }: RowsShown): CoveragePicture {
    return {
      generated_at: formatInstant(this.#at),
      columns: {
        hour: this.#grids.hour.labels,
        day: this.#grids.day.labels,
        month: this.#grids.month.labels,
      },
      groups: this.#groups.map(([key, members]) => this.#group(key, members, byGroup.get(key) ?? usual)),
    };
  }

  /** At most `most` parts, and how many there are in all. */
  missing(most: number): MissingPicture {
    const sums = { open: 0, lost: 0 };
    for (const { state } of this.#missing) sums[state]++;
    return { generated_at: formatInstant(this.#at), ...sums, parts: this.#missing.slice(0, most) };
  }

  #group(key: string, members: readonly LineRow[], shown: number): CoverageGroup {
    const [{ stream, index_type }] = members as [LineRow];
    const { runs, whole } = this.#summaries.get(key) ?? { runs: [], whole: 0 };
    const step = this.#steps.get(key) ?? "day";
    const rows = members.slice(0, shown).map((member): CoverageRow => {
      const cells = new CellSums(this.#grids[step]);
      this.#count(member, cells);
      return { index_id: member.index_id || null, name: member.name || null, runs: cells.runs() };
    });
    const lines = members.length;
    return { key, stream, index_type: index_type || null, step, lines, whole, summary: runs, rows };
  }

  #summarise(key: string, members: readonly LineRow[]) {
    const cells = new CellSums(this.#grids[this.#steps.get(key) ?? "day"]);
    const whole = members.filter((member) => this.#count(member, cells)).length;
    return { runs: cells.runs(members.length), whole };
  }

  /** Adds a line to the cells; true where it lacks nothing. */
  #count(line: LineRow, cells: CellSums): boolean {
    const observed = this.#observed.get(lineKey(line));
    if (observed) {
      cells.addAll(observed.cells);
      return observed.parts.size === 0;
    }
    const pieces = this.#pieces.get(lineKey(line)) ?? [];
    for (const piece of pieces) cells.add(piece, piece.state);
    return pieces.every(({ state }) => state === "covered" || state === "settling");
  }
}

function groupKey({ stream, index_type }: LineRow): string {
  return `${stream}:${index_type}`;
}

function stepOf(members: readonly LineRow[], now: Micros): Step {
  const [first] = members;
  if (first && isDaily(first.stream as Stream)) return "month";
  return now - firstOf(members, now) > MOST_HOURS * MICROS_PER_HOUR ? "day" : "hour";
}

function firstOf(lines: readonly LineRow[], now: Micros): Micros {
  return lines.reduce((first, line) => Math.min(first, line.first), now);
}

/** One grid for all groups of a step, as long as the oldest of them needs. */
function gridsFor(lines: readonly LineRow[], steps: ReadonlyMap<string, Step>, now: Micros) {
  const first = (step: Step) =>
    firstOf(
      lines.filter((line) => steps.get(groupKey(line)) === step),
      now,
    );
  const columns = (step: Step, length: Micros, least: number, most: number) =>
    Math.min(most, Math.max(least, Math.floor(now / length) - Math.floor(first(step) / length) + 1));
  return {
    hour: hourGrid(now, columns("hour", MICROS_PER_HOUR, LEAST_HOURS, MOST_HOURS + 1)),
    day: dayGrid(now, columns("day", MICROS_PER_DAY, LEAST_DAYS, MOST_DAYS)),
    month: monthGrid(first("month"), now, MOST_MONTHS),
  };
}

function piecesByLine(
  lines: readonly LineRow[],
  covered: readonly RangeRow[],
  gaps: readonly GapRow[],
): Map<string, Piece[]> {
  const pieces = new Map<string, Piece[]>(lines.map((line) => [lineKey(line), []]));
  const keys = new Map(lines.map((line) => [`${line.stream} ${line.series}`, lineKey(line)]));
  for (const { stream, series, from, to } of covered) {
    pieces.get(keys.get(`${stream} ${series}`) ?? "")?.push({ from, to, state: "covered" });
  }
  for (const gap of gaps) {
    const state = gap.reason === "settling" ? "settling" : gap.state;
    pieces.get(lineKey(gap))?.push({ from: gap.from, to: gap.to, state });
  }
  return pieces;
}

function missingParts(gaps: readonly GapRow[]): MissingPart[] {
  const real = gaps.filter(({ reason }) => reason !== "settling");
  const parts = Map.groupBy(real, (gap) => `${gap.state} ${gap.reason}\n${lineKey(gap)}`);
  return [...parts.values()].map((list): MissingPart => {
    const [{ stream, index_type, index_id, name, state, reason }] = list as [GapRow];
    const from = list.reduce((least, gap) => Math.min(least, gap.from), Number.POSITIVE_INFINITY);
    const to = list.reduce((most, gap) => Math.max(most, gap.to), 0);
    const micros = list.reduce((sum, gap) => sum + gap.to - gap.from, 0);
    const ends = list.flatMap(({ lost_at }) => lost_at ?? []).sort();
    return {
      ...{ stream, index_type, index_id, name, state, reason },
      ranges: list.length,
      seconds: Math.round(micros / MICROS_PER_SECOND),
      from_time: formatInstant(from),
      to_time: formatInstant(to),
      lost_at: ends[0] ?? null,
    };
  });
}

/** The newest market cap rank by asset id, and by market id that of the base asset. */
function readRanks(connection: Connection): ReadonlyMap<string, number> {
  const pairs = (sql: string) => connection.statement(sql).raw().all() as [string, unknown][];
  const ranks = new Map(
    pairs("SELECT asset_id, rank FROM latest_market_caps WHERE rank IS NOT NULL") as [string, number][],
  );
  for (const [market, base] of pairs("SELECT id, base_asset_id FROM market_rows")) {
    const rank = ranks.get(String(base));
    if (rank !== undefined) ranks.set(market, rank);
  }
  return ranks;
}

function rankOf(ranks: ReadonlyMap<string, number>, { index_id }: LineRow): number {
  return ranks.get(index_id) ?? Number.MAX_SAFE_INTEGER;
}

function placeOf(line: LineRow | undefined): number {
  const place = (order: readonly string[], value: string) =>
    order.includes(value) ? order.indexOf(value) : order.length;
  return place(streamOrder, line?.stream ?? "") * 10 + place(familyOrder, line?.index_type ?? "");
}
