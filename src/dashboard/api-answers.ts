import type { ChartBarsResult } from "../model/answers/chart-bars.ts";
import type { GapSummaryResult, HeatmapResult, SeriesMatch } from "../model/answers/heatmap.ts";
import type * as market from "../model/answers/market.ts";
import type { SearchMatch } from "../model/answers/page-address.ts";
import type { CommitNews } from "../model/answers/ticks.ts";
import type { ServiceCondition } from "../model/status/service-condition.ts";
import type { ServeStatus, ShareStatus } from "../model/status/share-status.ts";
import type { StatusReport, WarehouseStatus } from "../model/status/warehouse-status.ts";
import type { SchemaResult } from "../warehouse/schema/column-doc.ts";

// What the dashboard's API answers. The pages are compiled against these types, so this file imports nothing that needs Node.

export type ViewValue = string | number | null;
type ViewRow = Readonly<Record<string, ViewValue>>;

/** The declared views (page-views.ts): the rows of each of their parts. */
export interface ViewRows {
  pairs: { pairs: market.PairSummary };
  quotes: { quotes: market.Quote; best: market.BestPrices };
  /** Across exchanges, over the last day. */
  spreads: { spreads: market.SpreadPoint };
  "derivative-assets": { assets: market.DerivativeAsset };
  derivatives: {
    futures: market.FutureQuote & ViewRow;
    perpetuals: market.ObservedContract & ViewRow;
    options: market.OptionQuote;
  };
  funding: { funding: ViewRow };
  asset: Record<AssetPart, ViewRow>;
}
export type ViewKind = keyof ViewRows;
type PricePart = "market" | "index" | "hours" | "daily" | "exchanges" | "futures" | "perpetuals";
export type AssetPart = PricePart | "coverage" | "gaps" | "revisions";

/** Rows, and the SQL that reads them in any tool. */
export type ViewPart<Row = ViewRow> = { readonly sql: string; readonly rows: readonly Row[] };

export interface ViewResult<Parts> {
  readonly generated_at: string;
  /** What the view is about; null if there is no such thing, and then it has no parts. */
  readonly subject: ViewRow | null;
  readonly parts: { readonly [Part in keyof Parts]: ViewPart<Parts[Part]> };
}

export interface QueryResults extends ViewResults {
  status: WarehouseStatus;
  coverage: HeatmapResult;
  missing: GapSummaryResult;
  /** Undefined if there is no such index. */
  bars: ChartBarsResult | undefined;
  /** Series whose name contains a text, the best-known first; if there is none, similar names. */
  series: readonly SeriesMatch[];
  /** The pages whose subject contains a text. */
  search: readonly SearchMatch[];
  schema: SchemaResult;
  market: market.RankingResult;
}
type ViewResults = { [K in ViewKind]: ViewResult<ViewRows[K]> };

/** By the path after `/api/`. A query without a result is answered 404. */
export type ApiAnswers = { [K in keyof QueryResults]: NonNullable<QueryResults[K]> } & {
  status: StatusReport;
  daemon: DaemonAnswer;
};

/** `well`: nothing to do; `busy`: work in progress, a failing stream or a missing scope; `ill`: the operator must act. */
export type DaemonState = { readonly tone: "well" | "busy" | "ill"; readonly sentence: string };

/** What the daemon knows; the answer `status` has what the warehouse knows. */
export interface DaemonAnswer extends DaemonState {
  readonly generated_at: string;
  readonly version: string;
  readonly started_at: string;
  readonly problem: string | null;
  readonly service: ServiceCondition;
  readonly shared: ShareStatus | null;
  readonly backfill: BackfillAnswer | null;
  readonly requests_per_second: readonly number[];
  readonly serve: ServeStatus | null;
  readonly errors: readonly ErrorReport[];
}

export interface BackfillAnswer {
  readonly percent: number;
  readonly rows_per_second: number;
  readonly seconds_left: number | null;
}

interface ErrorReport extends Record<"first_at" | "last_at" | "where" | "code" | "message", string> {
  readonly count: number;
}

/** The data of the events at `/api/events`, by the event's name. */
export interface LiveEventData {
  hello: Pick<DaemonAnswer, "version"> & Health;
  commit: CommitNews & Health;
  idle: Health;
}

/** `problem`: why nothing new arrives; null while something may. */
type Health = Pick<DaemonAnswer, "problem">;
