import { isDaily, type Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import type { Connection } from "../sqlite/connection.ts";
import {
  buildDayGrid,
  buildHourGrid,
  buildMonthGrid,
  type CellRun,
  type CellState,
  CellSums,
  type TimeGrid,
} from "./heatmap-grid.ts";
import {
  type GapSummary,
  type GapSummaryResult,
  type HeatmapGroup,
  type HeatmapKey,
  type HeatmapResult,
  type HeatmapRow,
  type HeatmapRowLimits,
  type HeatmapStep,
  heatmapKeyText,
  type SeriesMatch,
} from "./heatmap-types.ts";
import { isHistoryStreamSql, readSnapshotCells, type SnapshotCells, toGapSummary } from "../coverage/snapshot-gaps.ts";

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

interface StateRange extends TimeRange {
  readonly state: CellState;
}

const MAX_DAYS = 200;
const MIN_DAYS = 30;
/** A group with less history than this is shown by the hour: three of two hundred daily columns would be too narrow. */
const MAX_HOURS = 96;
const MIN_HOURS = 24;
const MAX_MONTHS = 180;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const streamOrder = ["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks"];
const indexTypeOrder = ["LX", "GWA", "MWA"];

const keysSql = `SELECT l.stream, l.series, s.index_type, s.index_id, s.name, min(l.from_ts) AS firstTs
FROM (SELECT stream, series, from_ts FROM wanted_ranges
  UNION ALL SELECT stream, series, min(from_ts) FROM settled_ranges GROUP BY stream, series) l
  JOIN series s ON s.series = l.series GROUP BY l.stream, l.series`;

const coveredSql = `SELECT stream, series, from_ts AS "from", to_ts AS "to" FROM settled_ranges
  WHERE ${isHistoryStreamSql} AND proof <> 'lost'`;

const gapsSql = `SELECT stream, index_type, index_id, name, from_ts AS "from", to_ts AS "to", state, reason, lost_at FROM gaps
  WHERE ${isHistoryStreamSql}`;

/**
 * The state of the whole ledger at one time. The constructor reads all of it: never call it on the main thread, which
 * serves the network. Rows are computed on request only, because there may be thousands.
 */
export class Heatmap {
  readonly #now: Micros;
  readonly #groups: readonly [string, readonly HeatmapKey[]][];
  readonly #ranges: ReadonlyMap<string, readonly StateRange[]>;
  readonly #snapshotCells: ReadonlyMap<string, SnapshotCells>;
  readonly #grids: Readonly<Record<HeatmapStep, TimeGrid>>;
  readonly #steps: ReadonlyMap<string, HeatmapStep>;
  readonly #summaries: ReadonlyMap<string, { readonly runs: readonly CellRun[]; readonly whole: number }>;
  readonly #gapSummaries: readonly GapSummary[];

  constructor(connection: Connection, now: Micros) {
    const all = <Row>(sql: string) => connection.statement(sql).all() as Row[];
    const read = () => {
      const keys = all<HeatmapKey>(keysSql);
      const groups = Map.groupBy(keys, groupKey);
      const steps = new Map([...groups].map(([key, members]) => [key, stepOf(members, now)]));
      const grids = buildGrids(keys, steps, now);
      return {
        ...{ keys, groups, steps, grids },
        ranks: readRanks(connection),
        covered: all<RangeRow>(coveredSql),
        gaps: all<GapRow>(gapsSql),
        snapshotCells: readSnapshotCells(connection, keys, (key) => grids[steps.get(groupKey(key)) ?? "day"]),
      };
    };
    const { keys, groups, steps, grids, ranks, covered, gaps, snapshotCells } =
      connection.database.transaction(read)();
    for (const members of groups.values()) {
      members.sort((a, b) => rankOf(ranks, a) - rankOf(ranks, b) || (a.name < b.name ? -1 : 1));
    }
    this.#now = now;
    this.#steps = steps;
    this.#grids = grids;
    this.#ranges = rangesByKey(keys, covered, gaps);
    this.#snapshotCells = snapshotCells;
    this.#groups = [...groups].sort(([, [a]], [, [b]]) => groupOrder(a) - groupOrder(b));
    this.#summaries = new Map(this.#groups.map(([key, members]) => [key, this.#summarise(key, members)]));
    this.#gapSummaries = summarizeByReason(gaps)
      .concat([...snapshotCells.values()].flatMap(({ losses }) => [...losses.values()].map(toGapSummary)))
      .sort((a, b) => (a.state === b.state ? b.seconds - a.seconds : a.state === "open" ? -1 : 1));
  }

  /** The selected tick series with the best market cap rank. */
  topSeries(count: number): { index_type: string; index_id: string }[] {
    return this.#groups
      .filter(([key]) => key.startsWith("index_ticks:"))
      .flatMap(([, members]) => members)
      .slice(0, count);
  }

  /** Tick series whose name contains the text: exact matches first, then prefixes, then by rank. */
  findSeries(text: string, limit: number): SeriesMatch[] {
    const needle = text.trim().toLowerCase();
    const matchQuality = ({ name, index_id }: HeatmapKey) => {
      const at = name.toLowerCase().indexOf(needle);
      return at === 0 && name.length === needle.length
        ? 0
        : at === 0
          ? 1
          : at > 0 || index_id === text
            ? 2
            : 3;
    };
    return this.#groups
      .filter(([key]) => key.startsWith("index_ticks:"))
      .flatMap(([, members]) => members.map((member) => ({ member, quality: matchQuality(member) })))
      .filter(({ quality }) => quality < 3)
      .sort((a, b) => a.quality - b.quality)
      .slice(0, limit)
      .map(({ member: { index_type, index_id, name } }) => ({ index_type, index_id, name }));
  }

  toResult({ defaultLimit, byGroup }: HeatmapRowLimits): HeatmapResult {
    return {
      generated_at: formatTimestamp(this.#now),
      columns: {
        hour: this.#grids.hour.labels,
        day: this.#grids.day.labels,
        month: this.#grids.month.labels,
      },
      groups: this.#groups.map(([key, members]) =>
        this.#group(key, members, byGroup.get(key) ?? defaultLimit),
      ),
    };
  }

  /** At most `limit` summaries, and the total counts. */
  summarizeGaps(limit: number): GapSummaryResult {
    const totals = { open: 0, lost: 0 };
    for (const { state } of this.#gapSummaries) totals[state]++;
    return { generated_at: formatTimestamp(this.#now), ...totals, parts: this.#gapSummaries.slice(0, limit) };
  }

  #group(key: string, members: readonly HeatmapKey[], limit: number): HeatmapGroup {
    const [{ stream, index_type }] = members as [HeatmapKey];
    const { runs, whole } = this.#summaries.get(key) ?? { runs: [], whole: 0 };
    const step = this.#steps.get(key) ?? "day";
    const rows = members.slice(0, limit).map((member): HeatmapRow => {
      const cells = new CellSums(this.#grids[step]);
      this.#count(member, cells);
      return { index_id: member.index_id || null, name: member.name || null, runs: cells.runs() };
    });
    const lines = members.length;
    return { key, stream, index_type: index_type || null, step, lines, whole, summary: runs, rows };
  }

  #summarise(key: string, members: readonly HeatmapKey[]) {
    const cells = new CellSums(this.#grids[this.#steps.get(key) ?? "day"]);
    const whole = members.filter((member) => this.#count(member, cells)).length;
    return { runs: cells.runs(members.length), whole };
  }

  /** Adds the ranges of a key to the cells. Returns whether it has no gap. */
  #count(key: HeatmapKey, cells: CellSums): boolean {
    const snapshot = this.#snapshotCells.get(heatmapKeyText(key));
    if (snapshot) {
      cells.addAll(snapshot.cells);
      return snapshot.losses.size === 0;
    }
    const ranges = this.#ranges.get(heatmapKeyText(key)) ?? [];
    for (const range of ranges) cells.add(range, range.state);
    return ranges.every(({ state }) => state === "covered" || state === "settling");
  }
}

function groupKey({ stream, index_type }: HeatmapKey): string {
  return `${stream}:${index_type}`;
}

function stepOf(members: readonly HeatmapKey[], now: Micros): HeatmapStep {
  const [first] = members;
  if (first && isDaily(first.stream as Stream)) return "month";
  return now - earliestTs(members, now) > MAX_HOURS * MICROS_PER_HOUR ? "day" : "hour";
}

function earliestTs(keys: readonly HeatmapKey[], now: Micros): Micros {
  return keys.reduce((earliest, { firstTs }) => Math.min(earliest, firstTs), now);
}

/** One grid per step, long enough for the oldest group that uses it. */
function buildGrids(keys: readonly HeatmapKey[], steps: ReadonlyMap<string, HeatmapStep>, now: Micros) {
  const first = (step: HeatmapStep) =>
    earliestTs(
      keys.filter((key) => steps.get(groupKey(key)) === step),
      now,
    );
  const columns = (step: HeatmapStep, length: Micros, min: number, max: number) =>
    Math.min(max, Math.max(min, Math.floor(now / length) - Math.floor(first(step) / length) + 1));
  return {
    hour: buildHourGrid(now, columns("hour", MICROS_PER_HOUR, MIN_HOURS, MAX_HOURS + 1)),
    day: buildDayGrid(now, columns("day", MICROS_PER_DAY, MIN_DAYS, MAX_DAYS)),
    month: buildMonthGrid(first("month"), now, MAX_MONTHS),
  };
}

function rangesByKey(
  keys: readonly HeatmapKey[],
  covered: readonly RangeRow[],
  gaps: readonly GapRow[],
): Map<string, StateRange[]> {
  const ranges = new Map<string, StateRange[]>(keys.map((key) => [heatmapKeyText(key), []]));
  const keyTexts = new Map(keys.map((key) => [`${key.stream} ${key.series}`, heatmapKeyText(key)]));
  for (const { stream, series, from, to } of covered) {
    ranges.get(keyTexts.get(`${stream} ${series}`) ?? "")?.push({ from, to, state: "covered" });
  }
  for (const gap of gaps) {
    const state = gap.reason === "settling" ? "settling" : gap.state;
    ranges.get(heatmapKeyText(gap))?.push({ from: gap.from, to: gap.to, state });
  }
  return ranges;
}

/** One summary per key, state and reason. Heads that are still `settling` are left out. */
function summarizeByReason(gaps: readonly GapRow[]): GapSummary[] {
  const real = gaps.filter(({ reason }) => reason !== "settling");
  const groups = Map.groupBy(real, (gap) => `${gap.state} ${gap.reason}\n${heatmapKeyText(gap)}`);
  return [...groups.values()].map((list): GapSummary => {
    const [{ stream, index_type, index_id, name, state, reason }] = list as [GapRow];
    const from = list.reduce((min, gap) => Math.min(min, gap.from), Number.POSITIVE_INFINITY);
    const to = list.reduce((max, gap) => Math.max(max, gap.to), 0);
    const micros = list.reduce((sum, gap) => sum + gap.to - gap.from, 0);
    const ends = list.flatMap(({ lost_at }) => lost_at ?? []).sort();
    return {
      ...{ stream, index_type, index_id, name, state, reason },
      ranges: list.length,
      seconds: Math.round(micros / MICROS_PER_SECOND),
      from_time: formatTimestamp(from),
      to_time: formatTimestamp(to),
      lost_at: ends[0] ?? null,
    };
  });
}

/** The newest market cap rank by asset id; a market has the rank of its base asset. */
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

function rankOf(ranks: ReadonlyMap<string, number>, { index_id }: HeatmapKey): number {
  return ranks.get(index_id) ?? Number.MAX_SAFE_INTEGER;
}

function groupOrder(key: HeatmapKey | undefined): number {
  const place = (order: readonly string[], value: string) =>
    order.includes(value) ? order.indexOf(value) : order.length;
  return place(streamOrder, key?.stream ?? "") * 10 + place(indexTypeOrder, key?.index_type ?? "");
}
