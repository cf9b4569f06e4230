import type {
  CellRun,
  GapSummary,
  GapSummaryResult,
  HeatmapGroup,
  HeatmapResult,
  HeatmapRow,
  HeatmapStep,
  SeriesId,
} from "../../model/answers/heatmap.ts";
import { hasHistory, historyStreams, isDaily, type Stream } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_DAY, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { TimeRange } from "../../model/time-range.ts";
import { type KeyRange, readRanges, seriesSpans } from "../coverage/series-gaps.ts";
import { type KnownLedgerKey, readLedgerKeys } from "../coverage/series-queries.ts";
import { readPresentTs } from "../coverage/targets.ts";
import type { Connection } from "../sqlite/connection.ts";
import { buildGrid, buildMonthGrid, CellSums, type TimeGrid } from "./heatmap-grid.ts";
import { type ChartSeries, SeriesSearch } from "./page-search.ts";
import { readCoveredSpan } from "./status.ts";

/** Which ledger keys the result contains, and how many rows of each group. */
interface HeatmapOptions {
  readonly defaultLimit: number;
  readonly byGroup: ReadonlyMap<string, number>;
  /** Only keys whose name or id contains this text. */
  readonly name?: string;
  /** Only keys with gaps. */
  readonly onlyProblems?: boolean;
}

const MAX_DAYS = 200;
const MIN_DAYS = 30;
/**
 * A group with at most this much history gets hourly columns: three of two hundred daily columns would be too narrow.
 */
const MAX_HOURS = 96;
const MIN_HOURS = 24;
const MAX_MONTHS = 180;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const streamOrder = ["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks"];
const indexTypeOrder = ["LX", "GWA", "MWA"];

/** What a heat map is made of, read at one time. */
interface HeatmapParts {
  readonly groups: ReadonlyMap<string, readonly KnownLedgerKey[]>;
  readonly steps: ReadonlyMap<string, HeatmapStep>;
  readonly grids: Readonly<Record<HeatmapStep, TimeGrid>>;
  readonly ranges: ReadonlyMap<KnownLedgerKey, readonly KeyRange[]>;
  readonly snapshotCells: ReadonlyMap<KnownLedgerKey, CellSums>;
  readonly ranks: ReadonlyMap<string, number>;
  /** The names of assets by id. */
  readonly titles: ReadonlyMap<string, string>;
  /** Keys without a gap are not in it. */
  readonly gaps: GapSums;
}

/**
 * Reads the whole ledger: never on the main thread (docs/decisions/threads.md). It yields often, so that other queries need not
 * wait for the end: the caller keeps a read transaction open until then.
 */
export function* readHeatmap(connection: Connection, now: Micros): Generator<void, Heatmap> {
  const gaps = new GapSums();
  const keys = readLedgerKeys(connection);
  const present = readPresentTs(connection);
  yield;
  const groups = Map.groupBy(keys, groupKey);
  const steps = new Map([...groups].map(([key, members]) => [key, stepOf(members, now)]));
  const ranges = yield* readHistoryRanges(connection, keys, gaps, present);
  yield;
  const grids = buildGrids(keys, steps, now, dailyStart(connection, ranges, now));
  const gridOf = (key: KnownLedgerKey) => grids[steps.get(groupKey(key)) ?? "day"];
  const snapshotCells = yield* readSnapshotCells(connection, keys, gridOf, gaps, present);
  yield;
  const ranks = readRanks(connection);
  yield;
  const titles = readTitles(connection);
  const heatmap = new Heatmap({ groups, steps, grids, ranges, snapshotCells, ranks, titles, gaps }, now);
  yield* heatmap.summarise();
  return heatmap;
}

/** The state of the whole ledger at one time. Rows are computed on request only, because there may be thousands. */
export class Heatmap {
  readonly #now: Micros;
  readonly #parts: HeatmapParts;
  readonly #groups: readonly [string, readonly KnownLedgerKey[]][];
  readonly #summaries = new Map<string, { readonly runs: readonly CellRun[]; readonly whole: number }>();
  /** Those that have ticks or daily bars; empty until the last step. */
  series = new SeriesSearch([]);

  constructor(parts: HeatmapParts, now: Micros) {
    this.#now = now;
    this.#parts = parts;
    this.#groups = [...parts.groups]
      .sort(([, [a]], [, [b]]) => groupOrder(a) - groupOrder(b))
      .map(([key, members]) => [key, sortByRank(members, parts.ranks)]);
  }

  /** The last steps: sums each group, and lists the series to search. */
  *summarise(): Generator<void> {
    for (const [key, members] of this.#groups) {
      yield;
      this.#summaries.set(key, this.#sumGroup(key, members));
    }
    yield;
    const listed = this.#chartSeries();
    yield;
    this.series = new SeriesSearch(listed);
  }

  /** By index type, then by rank, as a ranking has them. */
  #chartSeries(): ChartSeries[] {
    const keys = [...this.#members("index_ticks"), ...this.#members("ohlcv")];
    const bySeries = Map.groupBy(keys, (key) => key.series);
    const unique = [...bySeries.values()].flatMap(([key]) => key ?? []);
    return sortByRank(unique, this.#parts.ranks)
      .sort((a, b) => typeOrder(a) - typeOrder(b))
      .map((key) => ({
        ...toSeriesId(key),
        name: key.name ?? "",
        title: this.#parts.titles.get(key.index_id ?? "") ?? "",
        has_ticks: bySeries.get(key.series)?.some(({ stream }) => stream === "index_ticks") ?? false,
      }));
  }

  #members(stream: Stream): KnownLedgerKey[] {
    return this.#groups.filter(([key]) => key.startsWith(`${stream}:`)).flatMap(([, members]) => members);
  }

  toResult({ defaultLimit, byGroup, name = "", onlyProblems = false }: HeatmapOptions): HeatmapResult {
    const needle = name.trim().toLowerCase();
    const isSelected = (key: KnownLedgerKey) =>
      (!onlyProblems || this.#parts.gaps.has(key)) &&
      (needle === "" || [key.name, key.index_id].some((text) => text?.toLowerCase().includes(needle)));
    const groups = this.#groups.map(([key, members]) =>
      this.#group(key, members, members.filter(isSelected), byGroup.get(key) ?? defaultLimit),
    );
    return {
      generated_at: formatTimestamp(this.#now),
      columns: {
        hour: this.#parts.grids.hour.labels,
        day: this.#parts.grids.day.labels,
        month: this.#parts.grids.month.labels,
      },
      // Problems first; `whole` groups keep their order after them.
      groups: groups
        .filter(({ matches }) => matches > 0)
        .sort((a, b) => Number(a.whole === a.lines) - Number(b.whole === b.lines)),
    };
  }

  /** At most `limit` summaries, and the total counts. */
  summarizeGaps(limit: number): GapSummaryResult {
    const lines = this.#groups.reduce((sum, [, members]) => sum + members.length, 0);
    return { ...this.#parts.gaps.summarize(limit, this.#now), lines };
  }

  #group(
    key: string,
    members: readonly KnownLedgerKey[],
    selected: readonly KnownLedgerKey[],
    limit: number,
  ): HeatmapGroup {
    const [{ stream, index_type }] = members as [KnownLedgerKey];
    const { runs, whole } = this.#summaries.get(key) ?? { runs: [], whole: 0 };
    const step = this.#parts.steps.get(key) ?? "day";
    const hasGaps = (member: KnownLedgerKey) => Number(this.#parts.gaps.has(member));
    const sorted = selected.toSorted((a, b) => hasGaps(b) - hasGaps(a));
    const rows = sorted.slice(0, limit).map((member): HeatmapRow => {
      const cells = new CellSums(this.#parts.grids[step]);
      this.#addRanges(member, cells);
      const slug = index_type === null ? null : this.series.slugOf(toSeriesId(member));
      return { index_id: member.index_id, name: member.name, slug, runs: cells.runs() };
    });
    const lines = members.length;
    return { key, stream, index_type, step, lines, whole, summary: runs, matches: selected.length, rows };
  }

  #sumGroup(key: string, members: readonly KnownLedgerKey[]) {
    const cells = new CellSums(this.#parts.grids[this.#parts.steps.get(key) ?? "day"]);
    for (const member of members) this.#addRanges(member, cells);
    return {
      runs: cells.runs(members.length),
      whole: members.filter((member) => !this.#parts.gaps.has(member)).length,
    };
  }

  #addRanges(key: KnownLedgerKey, cells: CellSums): void {
    const snapshot = this.#parts.snapshotCells.get(key);
    if (snapshot) cells.addAll(snapshot);
    else for (const range of this.#parts.ranges.get(key) ?? []) cells.add(range, range.state);
  }
}

function toSeriesId({ index_type, index_id }: KnownLedgerKey): SeriesId {
  return { index_type: index_type ?? "", index_id: index_id ?? "" };
}

function groupKey({ stream, index_type }: KnownLedgerKey): string {
  return `${stream}:${index_type ?? ""}`;
}

function stepOf(members: readonly KnownLedgerKey[], now: Micros): HeatmapStep {
  const [first] = members;
  if (first && isDaily(first.stream)) return "month";
  return now - earliestTs(members, now) > MAX_HOURS * MICROS_PER_HOUR ? "day" : "hour";
}

function earliestTs(keys: readonly KnownLedgerKey[], now: Micros): Micros {
  return keys.reduce((earliest, { firstTs }) => Math.min(earliest, firstTs), now);
}

/** Where the history of daily bars begins, by rows or by gaps: before that, the service was proven to have none. */
function dailyStart(
  connection: Connection,
  ranges: ReadonlyMap<KnownLedgerKey, readonly KeyRange[]>,
  now: Micros,
): Micros {
  const gaps = [...ranges]
    .filter(([key]) => isDaily(key.stream))
    .flatMap(([, own]) => own.find(({ state }) => state !== "covered") ?? []);
  const covered = readCoveredSpan(connection, "ohlcv");
  return [...gaps, ...(covered ? [covered] : [])].reduce((first, { from }) => Math.min(first, from), now);
}

/** One grid per step, long enough for the oldest group that uses it. */
function buildGrids(
  keys: readonly KnownLedgerKey[],
  steps: ReadonlyMap<string, HeatmapStep>,
  now: Micros,
  firstMonth: Micros,
) {
  const first = (step: HeatmapStep) =>
    earliestTs(
      keys.filter((key) => steps.get(groupKey(key)) === step),
      now,
    );
  const columns = (step: HeatmapStep, length: Micros, min: number, max: number) =>
    Math.min(max, Math.max(min, Math.floor(now / length) - Math.floor(first(step) / length) + 1));
  return {
    hour: buildGrid(now, "hour", columns("hour", MICROS_PER_HOUR, MIN_HOURS, MAX_HOURS + 1)),
    day: buildGrid(now, "day", columns("day", MICROS_PER_DAY, MIN_DAYS, MAX_DAYS)),
    month: buildMonthGrid(firstMonth, now, MAX_MONTHS),
  };
}

/** The ranges of each key of a history stream; its gaps also go into `gaps`. */
function* readHistoryRanges(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  gaps: GapSums,
  present: Micros,
): Generator<void, Map<KnownLedgerKey, readonly KeyRange[]>> {
  const found = new Map<KnownLedgerKey, readonly KeyRange[]>();
  for (const stream of historyStreams) {
    const own = new Map(keys.filter((key) => key.stream === stream).map((key) => [key.series, key]));
    for (const span of seriesSpans(connection, stream)) {
      const bySeries = readRanges(connection, span, present);
      for (const [series, ranges] of bySeries) {
        const key = own.get(series);
        if (!key) continue;
        found.set(key, ranges);
        gaps.addAll(key, ranges);
      }
      if (bySeries.size > 0) yield;
    }
  }
  return found;
}

/** The cells of each snapshot key, which may have too many ranges to hold in memory; its gaps also go into `gaps`. */
function* readSnapshotCells(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  gridOf: (key: KnownLedgerKey) => TimeGrid,
  gaps: GapSums,
  present: Micros,
): Generator<void, Map<KnownLedgerKey, CellSums>> {
  const found = new Map<KnownLedgerKey, CellSums>();
  for (const key of keys) {
    const { stream, series } = key;
    if (hasHistory(stream)) continue;
    yield;
    const ranges = readRanges(connection, { stream, first: series, last: series }, present).get(series) ?? [];
    const cells = new CellSums(gridOf(key));
    for (const range of ranges) cells.add(range, range.state);
    found.set(key, cells);
    gaps.addAll(key, ranges);
  }
  return found;
}

/** The newest market cap rank by asset id; a market has the rank of its base asset. */
function readRanks(connection: Connection): ReadonlyMap<string, number> {
  const sql = `WITH ranked AS MATERIALIZED (SELECT asset_id, rank FROM latest_market_caps WHERE rank IS NOT NULL)
    SELECT asset_id, rank FROM ranked UNION ALL SELECT m.id, rank FROM ranked JOIN markets m ON m.base_asset_id = asset_id`;
  return new Map(connection.tuples<readonly [id: string, rank: number]>(sql));
}

function readTitles(connection: Connection): ReadonlyMap<string, string> {
  const sql = "SELECT id, coalesce(name, '') FROM assets";
  return new Map(connection.tuples<readonly [id: string, name: string]>(sql));
}

/** The best rank first, then by name. Ranks are looked up once per key: a group may have thousands. */
function sortByRank(keys: readonly KnownLedgerKey[], ranks: ReadonlyMap<string, number>): KnownLedgerKey[] {
  return keys
    .map((key) => ({
      key,
      name: key.name ?? "",
      rank: ranks.get(key.index_id ?? "") ?? Number.MAX_SAFE_INTEGER,
    }))
    .sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1))
    .map(({ key }) => key);
}

function groupOrder(key: KnownLedgerKey | undefined): number {
  return placeIn(streamOrder, key?.stream) * 10 + typeOrder(key);
}

function typeOrder(key: KnownLedgerKey | undefined): number {
  return placeIn(indexTypeOrder, key?.index_type);
}

/** What is not in the order comes last. */
function placeIn(order: readonly string[], value: string | null | undefined): number {
  const place = order.indexOf(value ?? "");
  return place < 0 ? order.length : place;
}

interface GapSum extends TimeRange {
  readonly key: KnownLedgerKey;
  readonly state: GapSummary["state"];
  readonly reason: string;
  readonly ranges: number;
  readonly micros: number;
  readonly lostAt: Micros | null;
}

/** Sums gaps by key, state and reason. What is `unconfirmed` is not for it. */
class GapSums {
  readonly #byKey = new Map<KnownLedgerKey, GapSum[]>();

  addAll(key: KnownLedgerKey, ranges: readonly KeyRange[]): void {
    for (const { state, reason, ...range } of ranges)
      if (state === "open" || state === "lost")
        this.#add({ key, state, reason: reason ?? "unknown", ...range });
  }

  #add(gap: Omit<GapSum, "ranges" | "micros">): void {
    const { key, state, reason, from, to, lostAt } = gap;
    const own = this.#byKey.get(key);
    const at = own?.findIndex((sum) => sum.state === state && sum.reason === reason) ?? -1;
    const sum = own?.[at];
    const merged = {
      ...gap,
      ranges: (sum?.ranges ?? 0) + 1,
      micros: (sum?.micros ?? 0) + to - from,
      from: Math.min(from, sum?.from ?? from),
      to: Math.max(to, sum?.to ?? to),
      lostAt: lostAt === null ? (sum?.lostAt ?? null) : Math.min(lostAt, sum?.lostAt ?? lostAt),
    };
    if (!own) this.#byKey.set(key, [merged]);
    else if (!sum) own.push(merged);
    else own[at] = merged;
  }

  has(key: KnownLedgerKey): boolean {
    return this.#byKey.has(key);
  }

  /** The first `limit` summaries, and how many there are. */
  summarize(limit: number, now: Micros): Omit<GapSummaryResult, "lines"> {
    const sums = [...this.#byKey.values()].flat();
    const totals = { open: 0, lost: 0 };
    for (const { state } of sums) totals[state]++;
    sums.sort((a, b) => (a.state === b.state ? b.micros - a.micros : a.state === "open" ? -1 : 1));
    return { generated_at: formatTimestamp(now), ...totals, parts: sums.slice(0, limit).map(toSummary) };
  }
}

function toSummary({ key, state, reason, ranges, micros, from, to, lostAt }: GapSum): GapSummary {
  const { stream, index_type, index_id, name } = key;
  return {
    ...{ stream, index_type, index_id, name, state, reason, ranges },
    seconds: Math.round(micros / MICROS_PER_SECOND),
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    lost_at: lostAt === null ? null : formatTimestamp(lostAt),
  };
}
