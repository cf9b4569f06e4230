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
import { totalDuration } from "../../model/time-range.ts";
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
  const gaps = new Map<KnownLedgerKey, readonly GapSummary[]>();
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
      const sums = sumGaps(key, own);
      if (sums.length > 0) gaps.set(key, sums);
    }
    runs.set(group, total.runs(group.members.length));
  }
  yield;
  const names = connection.tuples<readonly [id: string, name: string]>(
    "SELECT id, coalesce(name, '') FROM assets",
  );
  const listed = listChartSeries(groups, ranks, new Map(names));
  yield;
  return createHeatmap({ groups, grids, runs, gaps, series: new SeriesSearch(listed) }, now);
}

interface HeatmapParts {
  readonly groups: readonly KeyGroup[];
  readonly grids: Grids;
  /** The cells of each ledger key, and the average of each group. */
  readonly runs: ReadonlyMap<KnownLedgerKey | KeyGroup, readonly CellRun[]>;
  /** Keys without a gap are not in it. */
  readonly gaps: ReadonlyMap<KnownLedgerKey, readonly GapSummary[]>;
  /** Those that have ticks or daily bars. */
  readonly series: SeriesSearch;
}

export type Heatmap = ReturnType<typeof createHeatmap>;

/** The state of the whole ledger at one time. */
function createHeatmap({ groups, grids, runs, gaps, series }: HeatmapParts, now: Micros) {
  const generated_at = formatTimestamp(now);
  const describe = (group: KeyGroup, selected: readonly KnownLedgerKey[], limit: number): HeatmapGroup => {
    const { key, step, members } = group;
    const [{ stream, index_type }] = members as [KnownLedgerKey];
    const sorted = selected.toSorted((a, b) => Number(gaps.has(b)) - Number(gaps.has(a)));
    const rows = sorted.slice(0, limit).map((member): HeatmapRow => {
      const slug = index_type === null ? null : series.slugOf(toSeriesId(member));
      return { index_id: member.index_id, name: member.name, slug, runs: runs.get(member) ?? [] };
    });
    return {
      ...{ key, stream, index_type, step, rows },
      lines: members.length,
      whole: members.filter((member) => !gaps.has(member)).length,
      summary: runs.get(group) ?? [],
      matches: selected.length,
    };
  };
  return {
    series,

    toResult({ defaultLimit, byGroup, name = "", onlyProblems = false }: HeatmapOptions): HeatmapResult {
      const needle = name.trim().toLowerCase();
      const isSelected = (key: KnownLedgerKey) =>
        (!onlyProblems || gaps.has(key)) &&
        (needle === "" || [key.name, key.index_id].some((text) => text?.toLowerCase().includes(needle)));
      return {
        generated_at,
        columns: { hour: grids.hour.labels, day: grids.day.labels, month: grids.month.labels },
        // Problems first; `whole` groups keep their order after them.
        groups: groups
          .map((group) =>
            describe(group, group.members.filter(isSelected), byGroup.get(group.key) ?? defaultLimit),
          )
          .filter(({ matches }) => matches > 0)
          .sort((a, b) => Number(a.whole === a.lines) - Number(b.whole === b.lines)),
      };
    },

    /** At most `limit` summaries, and the total counts. */
    summarizeGaps(limit: number): GapSummaryResult {
      const { open = [], lost = [] } = Object.groupBy([...gaps.values()].flat(), ({ state }) => state);
      const longestFirst = (a: GapSummary, b: GapSummary) => b.seconds - a.seconds;
      return {
        generated_at,
        ...{ open: open.length, lost: lost.length },
        parts: [...open.sort(longestFirst), ...lost.sort(longestFirst)].slice(0, limit),
        lines: groups.reduce((sum, { members }) => sum + members.length, 0),
      };
    },
  };
}

function groupKeys(keys: readonly KnownLedgerKey[], ranks: ReadonlyMap<string, number>, now: Micros) {
  const ordered = sortByRank(keys, ranks).sort((a, b) => groupOrder(a) - groupOrder(b));
  const groups = Map.groupBy(ordered, ({ stream, index_type }) => `${stream}:${index_type ?? ""}`);
  return [...groups].map(([key, members]) => ({ key, step: stepOf(members, now), members }));
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
    .flatMap(([, own]) => own.find(({ state }) => state !== "covered")?.from ?? []);
  return Math.min(now, readCoveredSpan(connection, "ohlcv")?.from ?? now, ...gaps);
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

function* readHistoryRanges(connection: Connection, keys: readonly KnownLedgerKey[], present: Micros) {
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

/** The best rank first, then by name. */
function sortByRank(keys: readonly KnownLedgerKey[], ranks: ReadonlyMap<string, number>): KnownLedgerKey[] {
  const rankOf = ({ index_id }: KnownLedgerKey) => ranks.get(index_id ?? "") ?? Number.MAX_SAFE_INTEGER;
  return keys.toSorted((a, b) => rankOf(a) - rankOf(b) || ((a.name ?? "") < (b.name ?? "") ? -1 : 1));
}

function groupOrder(key: KnownLedgerKey): number {
  return placeIn(streamOrder, key.stream) * 10 + typeOrder(key);
}

function typeOrder({ index_type }: KnownLedgerKey): number {
  return placeIn(indexTypeOrder, index_type ?? "");
}

/** What is not in the order comes last. */
function placeIn(order: readonly string[], value: string): number {
  return [...order, value].indexOf(value);
}

type SummedGap = KeyRange & Pick<GapSummary, "state">;

/** The gaps of a key by state and reason; `ranges`: ascending. What is `unconfirmed` is not for it. */
function sumGaps({ stream, index_type, index_id, name }: KnownLedgerKey, ranges: readonly KeyRange[]) {
  const gaps = ranges.filter((range): range is SummedGap => range.state === "open" || range.state === "lost");
  const byReason = Map.groupBy(gaps, ({ state, reason }) => `${state} ${reason}`);
  return [...byReason.values()].map((own): GapSummary => {
    const [{ state, reason, from }, to] = [own[0] as SummedGap, own.at(-1)?.to ?? 0];
    const lostAt = own.find((gap) => gap.lostAt !== null)?.lostAt ?? null;
    return {
      ...{ stream, index_type, index_id, name, state, reason: reason ?? "unknown" },
      ranges: own.length,
      seconds: Math.round(totalDuration(own) / MICROS_PER_SECOND),
      from_time: formatTimestamp(from),
      to_time: formatTimestamp(to),
      lost_at: lostAt === null ? null : formatTimestamp(lostAt),
    };
  });
}
