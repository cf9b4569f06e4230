import { formatInstant, MICROS_PER_SECOND, type Micros } from "../model/instant.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { Connection } from "./connection.ts";
import {
  type CellRun,
  type CellState,
  CellSums,
  dayGrid,
  monthGrid,
  type TimeGrid,
} from "./coverage-grid.ts";

/** One series, or one subscription of a latest-only stream, in the heat map. */
export interface CoverageRow {
  readonly index_id: string | null;
  readonly name: string | null;
  readonly runs: readonly CellRun[];
}

/** The lines of one stream and index family. */
export interface CoverageGroup {
  /** `index_ticks:GWA`; `market_caps:` without a family. */
  readonly key: string;
  readonly stream: string;
  readonly index_type: string | null;
  readonly step: "day" | "month";
  /** How many lines there are, and how many of them lack nothing. */
  readonly lines: number;
  readonly whole: number;
  /** All of them together. */
  readonly summary: readonly CellRun[];
  /** The best known first. */
  readonly rows: readonly CoverageRow[];
}

/** Rows of each group that are worth their bytes, unless somebody asks for more. */
export interface RowsShown {
  readonly usual: number;
  readonly byGroup: ReadonlyMap<string, number>;
}

/** What one line lacks for one reason. */
export interface MissingPart {
  readonly stream: string;
  readonly index_type: string | null;
  readonly index_id: string | null;
  readonly name: string | null;
  readonly state: "open" | "lost";
  readonly reason: string;
  readonly ranges: number;
  readonly seconds: number;
  readonly from_time: string;
  readonly to_time: string;
  /** When the first of it leaves the service's window. */
  readonly lost_at: string | null;
}

/** The heat map and what is missing, as they are served. */
export interface CoveragePicture {
  readonly generated_at: string;
  /** The labels of the columns, by step. */
  readonly columns: { readonly day: readonly string[]; readonly month: readonly string[] };
  readonly groups: readonly CoverageGroup[];
}

/** Open before lost, the longest first. A head that only awaits its confirmation is left out. */
export interface MissingPicture {
  readonly generated_at: string;
  /** How many parts there are of each, however many are shown. */
  readonly open: number;
  readonly lost: number;
  readonly parts: readonly MissingPart[];
}

/** One index whose ticks are followed or stored. */
export interface SeriesFound {
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
}

interface LineRow {
  readonly stream: string;
  readonly series: number;
  readonly index_type: string;
  readonly index_id: string;
  readonly name: string;
}

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

const DAYS_SHOWN = 200;
const MOST_MONTHS = 180;
const streamOrder = ["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks"];
const familyOrder = ["LX", "GWA", "MWA"];

const linesSql = `SELECT l.stream, l.series, s.index_type, s.index_id, s.name
FROM (SELECT stream, series FROM wanted_ranges UNION SELECT stream, series FROM settled_ranges) l
  JOIN series s ON s.series = l.series`;

const coveredSql = `SELECT stream, series, from_ts AS "from", to_ts AS "to" FROM settled_ranges WHERE proof <> 'lost'`;

const gapsSql = `SELECT stream, index_type, index_id, name, from_ts AS "from", to_ts AS "to", state, reason, lost_at FROM gaps`;

/**
 * The whole ledger as people look at it, at one moment. Reads all of it, once: not for the thread that has the network
 * to mind. Rows are drawn when they are shown, since nobody looks at thousands.
 */
export class LedgerPicture {
  readonly #at: Micros;
  readonly #groups: readonly [string, readonly LineRow[]][];
  readonly #pieces: ReadonlyMap<string, readonly Piece[]>;
  readonly #grids: { readonly day: TimeGrid; readonly month: TimeGrid };
  readonly #summaries: ReadonlyMap<string, { readonly runs: readonly CellRun[]; readonly whole: number }>;
  readonly #missing: readonly MissingPart[];

  constructor(connection: Connection, now: Micros) {
    const all = <Row>(sql: string) => connection.statement(sql).all() as Row[];
    const { ranks, lines, covered, gaps } = connection.database.transaction(() => ({
      ranks: readRanks(connection),
      lines: all<LineRow>(linesSql),
      covered: all<RangeRow>(coveredSql),
      gaps: all<GapRow>(gapsSql),
    }))();
    lines.sort((a, b) => rankOf(ranks, a) - rankOf(ranks, b) || (a.name < b.name ? -1 : 1));
    const oldestBar = [covered, gaps]
      .flatMap((ranges) => ranges.filter(({ stream }) => stream === "ohlcv"))
      .reduce((oldest, { from }) => Math.min(oldest, from), now);
    this.#at = now;
    this.#grids = { day: dayGrid(now, DAYS_SHOWN), month: monthGrid(oldestBar, now, MOST_MONTHS) };
    this.#pieces = piecesByLine(lines, covered, gaps);
    this.#groups = [...Map.groupBy(lines, ({ stream, index_type }) => `${stream}:${index_type}`)].sort(
      ([, [a]], [, [b]]) => placeOf(a) - placeOf(b),
    );
    this.#summaries = new Map(this.#groups.map(([key, members]) => [key, this.#summarise(members)]));
    this.#missing = missingParts(gaps);
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
      columns: { day: this.#grids.day.labels, month: this.#grids.month.labels },
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
    const cells = new CellSums(this.#grids[stepOf(stream)]);
    const rows = members.slice(0, shown).map((member): CoverageRow => {
      cells.clear();
      for (const piece of this.#piecesOf(member)) cells.add(piece, piece.state);
      return { index_id: member.index_id || null, name: member.name || null, runs: cells.runs() };
    });
    const lines = members.length;
    return {
      key,
      stream,
      index_type: index_type || null,
      step: stepOf(stream),
      lines,
      whole,
      summary: runs,
      rows,
    };
  }

  #summarise(members: readonly LineRow[]) {
    const cells = new CellSums(this.#grids[stepOf(members[0]?.stream ?? "")]);
    let whole = 0;
    for (const member of members) {
      const pieces = this.#piecesOf(member);
      for (const piece of pieces) cells.add(piece, piece.state);
      if (pieces.every(({ state }) => state === "covered" || state === "settling")) whole++;
    }
    return { runs: cells.runs(members.length), whole };
  }

  #piecesOf(line: LineRow): readonly Piece[] {
    return this.#pieces.get(lineKey(line)) ?? [];
  }
}

function stepOf(stream: string): "day" | "month" {
  return stream === "ohlcv" ? "month" : "day";
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
  return [...parts.values()]
    .map((list): MissingPart => {
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
    })
    .sort((a, b) => (a.state === b.state ? b.seconds - a.seconds : a.state === "open" ? -1 : 1));
}

/** Only the last part is the service's own text, so that no two lines share a key. */
function lineKey(line: { stream: string; index_type: string | null; index_id: string | null }): string {
  return `${line.stream}\n${line.index_type ?? ""}\n${line.index_id ?? ""}`;
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
