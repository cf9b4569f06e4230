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
import { hasHistory, historyStreams, isDaily } from "../../model/streams.ts";
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
const KEYS_PER_STEP = 500;
const MICROS_PER_HOUR = MICROS_PER_DAY / 24;
const streamOrder = ["index_ticks", "ohlcv", "exchange_ticks", "market_caps", "derivative_ticks"];
const indexTypeOrder = ["LX", "GWA", "MWA"];

/** The ledger keys of one stream and index type, the best rank first. */
interface KeyGroup {
  readonly key: string;
  readonly step: HeatmapStep;
  readonly members: readonly KnownLedgerKey[];
}

type Grids = Readonly<Record<HeatmapStep, TimeGrid>>;

/** The cells of each ledger key, and the average of each group. */
type CellRuns = ReadonlyMap<KnownLedgerKey | KeyGroup, readonly CellRun[]>;

/**
 * Reads the whole ledger: never on the main thread (docs/decisions/threads.md). It yields often, so that other queries need not
 * wait for the end: the caller keeps a read transaction open until then.
 */
export function* readHeatmap(connection: Connection, now: Micros): Generator<void, Heatmap> {
  const keys = readLedgerKeys(connection);
  const present = readPresentTs(connection);
  yield;
  const ranks = readRanks(connection);
  yield;
  const groups = groupKeys(keys, ranks, now);
  yield;
  const ranges = yield* readHistoryRanges(connection, keys, present);
  yield;
  const grids = buildGrids(groups, now, dailyStart(connection, ranges, now));
  const gaps = new GapSums();
  const runs = new Map<KnownLedgerKey | KeyGroup, readonly CellRun[]>();
  for (const group of groups) {
    const total = new CellSums(grids[group.step]);
    for (const [at, key] of group.members.entries()) {
      if (at % KEYS_PER_STEP === 0 || !hasHistory(key.stream)) yield;
      // A snapshot key may have too many ranges to hold them in memory beside those of others.
      const own = hasHistory(key.stream) ? (ranges.get(key) ?? []) : readKeyRanges(connection, key, present);
      const cells = new CellSums(grids[group.step]);
      for (const range of own) {
        cells.add(range, range.state);
        total.add(range, range.state);
      }
      runs.set(key, cells.runs());
      gaps.addAll(key, own);
    }
    runs.set(group, total.runs(group.members.length));
  }
  yield;
  const listed = listChartSeries(groups, ranks, readTitles(connection));
  yield;
  return new Heatmap({ groups, grids, runs, gaps, series: new SeriesSearch(listed) }, now);
}

interface HeatmapParts {
  readonly groups: readonly KeyGroup[];
  readonly grids: Grids;
  readonly runs: CellRuns;
  /** Keys without a gap are not in it. */
  readonly gaps: GapSums;
  readonly series: SeriesSearch;
}

/** The state of the whole ledger at one time. */
export class Heatmap {
  readonly #now: Micros;
  readonly #parts: HeatmapParts;

  constructor(parts: HeatmapParts, now: Micros) {
    this.#now = now;
    this.#parts = parts;
  }

  /** Those that have ticks or daily bars. */
  get series(): SeriesSearch {
    return this.#parts.series;
  }

  toResult({ defaultLimit, byGroup, name = "", onlyProblems = false }: HeatmapOptions): HeatmapResult {
    const { groups, grids, gaps } = this.#parts;
    const needle = name.trim().toLowerCase();
    const isSelected = (key: KnownLedgerKey) =>
      (!onlyProblems || gaps.has(key)) &&
      (needle === "" || [key.name, key.index_id].some((text) => text?.toLowerCase().includes(needle)));
    return {
      generated_at: formatTimestamp(this.#now),
      columns: { hour: grids.hour.labels, day: grids.day.labels, month: grids.month.labels },
      // Problems first; `whole` groups keep their order after them.
      groups: groups
        .map((group) =>
          this.#describe(group, group.members.filter(isSelected), byGroup.get(group.key) ?? defaultLimit),
        )
        .filter(({ matches }) => matches > 0)
        .sort((a, b) => Number(a.whole === a.lines) - Number(b.whole === b.lines)),
    };
  }

  /** At most `limit` summaries, and the total counts. */
  summarizeGaps(limit: number): GapSummaryResult {
    const lines = this.#parts.groups.reduce((sum, { members }) => sum + members.length, 0);
    return { ...this.#parts.gaps.summarize(limit, this.#now), lines };
  }

  #describe(group: KeyGroup, selected: readonly KnownLedgerKey[], limit: number): HeatmapGroup {
    const { runs, gaps, series } = this.#parts;
    const { key, step, members } = group;
    const [{ stream, index_type }] = members as [KnownLedgerKey];
    const whole = members.filter((member) => !gaps.has(member)).length;
    const sorted = selected.toSorted((a, b) => Number(gaps.has(b)) - Number(gaps.has(a)));
    const rows = sorted.slice(0, limit).map((member): HeatmapRow => {
      const slug = index_type === null ? null : series.slugOf(toSeriesId(member));
      return { index_id: member.index_id, name: member.name, slug, runs: runs.get(member) ?? [] };
    });
    const summary = runs.get(group) ?? [];
    return {
      key,
      stream,
      index_type,
      step,
      lines: members.length,
      whole,
      summary,
      matches: selected.length,
      rows,
    };
  }
}

function groupKeys(
  keys: readonly KnownLedgerKey[],
  ranks: ReadonlyMap<string, number>,
  now: Micros,
): KeyGroup[] {
  return [...Map.groupBy(keys, groupKey)]
    .sort(([, [a]], [, [b]]) => groupOrder(a) - groupOrder(b))
    .map(([key, members]) => ({ key, step: stepOf(members, now), members: sortByRank(members, ranks) }));
}

/** By index type, then by rank, as a ranking has them. */
function listChartSeries(
  groups: readonly KeyGroup[],
  ranks: ReadonlyMap<string, number>,
  titles: ReadonlyMap<string, string>,
): ChartSeries[] {
  const keys = groups.flatMap(({ members }) => members).filter(({ stream }) => hasHistory(stream));
  const bySeries = Map.groupBy(keys, (key) => key.series);
  const unique = [...bySeries.values()].flatMap(([key]) => key ?? []);
  return sortByRank(unique, ranks)
    .sort((a, b) => typeOrder(a) - typeOrder(b))
    .map((key) => ({
      ...toSeriesId(key),
      name: key.name ?? "",
      title: titles.get(key.index_id ?? "") ?? "",
      has_ticks: bySeries.get(key.series)?.some(({ stream }) => stream === "index_ticks") ?? false,
    }));
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
function dailyStart(connection: Connection, ranges: HistoryRanges, now: Micros): Micros {
  const gaps = [...ranges]
    .filter(([key]) => isDaily(key.stream))
    .flatMap(([, own]) => own.find(({ state }) => state !== "covered") ?? []);
  const covered = readCoveredSpan(connection, "ohlcv");
  return [...gaps, ...(covered ? [covered] : [])].reduce((first, { from }) => Math.min(first, from), now);
}

/** One grid per step, long enough for the oldest group that uses it. */
function buildGrids(groups: readonly KeyGroup[], now: Micros, firstMonth: Micros): Grids {
  const columns = (step: HeatmapStep, length: Micros, min: number, max: number) => {
    const keys = groups.filter((group) => group.step === step).flatMap(({ members }) => members);
    const needed = Math.floor(now / length) - Math.floor(earliestTs(keys, now) / length) + 1;
    return Math.min(max, Math.max(min, needed));
  };
  return {
    hour: buildGrid(now, "hour", columns("hour", MICROS_PER_HOUR, MIN_HOURS, MAX_HOURS + 1)),
    day: buildGrid(now, "day", columns("day", MICROS_PER_DAY, MIN_DAYS, MAX_DAYS)),
    month: buildMonthGrid(firstMonth, now, MAX_MONTHS),
  };
}

type HistoryRanges = ReadonlyMap<KnownLedgerKey, readonly KeyRange[]>;

/** The ranges of each key of a history stream. */
function* readHistoryRanges(
  connection: Connection,
  keys: readonly KnownLedgerKey[],
  present: Micros,
): Generator<void, HistoryRanges> {
  const found = new Map<KnownLedgerKey, readonly KeyRange[]>();
  for (const stream of historyStreams) {
    const own = new Map(keys.filter((key) => key.stream === stream).map((key) => [key.series, key]));
    for (const span of seriesSpans(connection, stream)) {
      const bySeries = readRanges(connection, span, present);
      for (const [series, ranges] of bySeries) {
        const key = own.get(series);
        if (key) found.set(key, ranges);
      }
      if (bySeries.size > 0) yield;
    }
  }
  return found;
}

function readKeyRanges(connection: Connection, { stream, series }: KnownLedgerKey, present: Micros) {
  return readRanges(connection, { stream, first: series, last: series }, present).get(series) ?? [];
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
