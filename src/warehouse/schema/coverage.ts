import { sql } from "drizzle-orm";
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";
import type { RowStream, Stream } from "../../model/streams.ts";
import type { ClaimKind, Proof } from "../../rule/answer.ts";
import type { SnapshotState } from "../../rule/snapshot.ts";

const ledgerKey = {
  stream: text("stream").$type<Stream>().notNull(),
  /** → series.series */
  series: integer("series").notNull(),
};

const settledRange = {
  ...ledgerKey,
  from: integer("from_ts").notNull(),
  /** Exclusive. */
  to: integer("to_ts").notNull(),
  proof: text("proof").$type<Proof>().notNull(),
  /** Why the range is empty or lost; null: its rows are stored. */
  reason: text("reason"),
  /** The commit that settled it so (commits.seq); null: one before the warehouse kept its past. */
  since: integer("since"),
};

/** The ledger: settled ranges, half-open and disjoint per ledger key. View: `coverage`. */
export const settledRanges = sqliteTable("settled_ranges", settledRange, (table) => [
  primaryKey({ columns: [table.stream, table.series, table.from] }),
]);
export type SettledRangeRow = Omit<typeof settledRanges.$inferSelect, "since">;

/** What the ledger said earlier. */
export const pastSettledRanges = sqliteTable(
  "past_settled_ranges",
  {
    ...settledRange,
    /** The commit that changed or retracted it. */
    until: integer("until").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series, table.until, table.from] })],
);

/** The commits that changed rows or the ledger: rows and ranges name them, so that a reader can ask for an earlier state. */
export const commits = sqliteTable(
  "commits",
  {
    /** Ascending without a gap. 0: what the warehouse had when it began to keep its past. */
    seq: integer("seq").primaryKey(),
    /** Microseconds since 1970 UTC by this machine's clock. */
    at: integer("at").notNull(),
    /**
     * The moment of the commit before, if `at` does not continue it. Earlier than `at`: a copy was restored, and what was known
     * between them is in another file. Later than `at`: the clock was set back.
     */
    unknownFrom: integer("unknown_from"),
    /** The service's clock minus this machine's at that moment; null: `at` is by the service's, as earlier versions had it. */
    clockSkew: integer("clock_skew"),
  },
  (table) => [index("commit_breaks").on(table.seq).where(sql`unknown_from IS NOT NULL`)],
);

/**
 * The targets: what the settings select. They are stored so that `gaps` is right while no daemon runs: the view
 * subtracts the ledger from them when it is queried.
 */
export const targets = sqliteTable(
  "targets",
  {
    ...ledgerKey,
    from: integer("from_ts").notNull(),
    /** Null: the target grows with time. */
    to: integer("to_ts"),
    /** The target ends this many microseconds before now: the service may still add newer rows. */
    settleDelay: integer("settle_delay").notNull(),
    /** The time between two records, in microseconds. */
    period: integer("period").notNull(),
    /** The end of the target moves in steps of this length: a day for daily bars, 1 for ticks. */
    step: integer("step").notNull(),
    /** How long the service keeps history, in microseconds; null: for ever. An open range that is older is lost. */
    serviceWindow: integer("service_window"),
    /** 1: a snapshot stream, whose periods without a snapshot are lost. */
    isSnapshot: integer("is_snapshot").$type<0 | 1>().notNull(),
    /** Why open ranges cannot be fetched at present (`forbidden` …); null while they can. */
    blockedReason: text("blocked_reason"),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series, table.from] })],
);
export type TargetRow = typeof targets.$inferSelect;

/**
 * The live spans, one row per subscription: a head inside its live span only awaits confirmation. An interruption
 * deletes the row; after a crash the rows remain, but no longer change.
 */
export const liveSpans = sqliteTable(
  "live_spans",
  {
    stream: text("stream").notNull(),
    indexType: text("index_type").notNull(),
    /** Empty: the subscription is to all indices of the type. */
    indexId: text("index_id").notNull(),
    /** When the service confirmed the subscription. */
    from: integer("from_ts").notNull(),
    /** The newest tick of the subscription that was received and stored. */
    to: integer("to_ts").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.indexType, table.indexId] })],
);

/** What REST has shown of each series, so that `gaps` shows what the service has not published yet. */
export const publications = sqliteTable(
  "publications",
  {
    ...ledgerKey,
    /** The newest record that REST has shown plus one period; 0: none. Coverage above it needs a quiet series. */
    publishedTo: integer("published_to").notNull(),
    /** When the head was last requested, by the service's clock; 0: never. */
    askedAt: integer("asked_at").notNull(),
    /** The request asked for everything up to here. */
    askedTo: integer("asked_to").notNull(),
    /** The series is quiet: its target ends this long before now. 0: it is not. */
    quietMargin: integer("quiet_margin").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series] })],
);
export type PublicationRow = typeof publications.$inferSelect;

/** What the snapshots of each subscription have shown, so that the next one can be compared with it. */
export const snapshotStates = sqliteTable(
  "snapshot_states",
  {
    ...ledgerKey,
    /** JSON: how many records each list had when it last counted, and when the service refreshed it. */
    state: text("state", { mode: "json" }).$type<Omit<SnapshotState, "short">>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series] })],
);

/** The last recheck of each ledger key: once a UTC day its newest covered range is fetched again for late corrections. */
export const rechecks = sqliteTable(
  "rechecks",
  {
    stream: text("stream").notNull(),
    /** → series.series */
    series: integer("series").notNull(),
    /** The UTC day, `YYYY-MM-DD`. A key without settled ranges counts as rechecked on its first day. */
    day: text("day").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series] })],
);

/**
 * Claims of the service that it must repeat before they are accepted: that rows which it served are gone, that nothing is older,
 * that an index does not exist. Until then their ranges are not settled. Accepted ones are reported for a week.
 */
export const pendingClaims = sqliteTable(
  "pending_claims",
  {
    claim: integer("claim").primaryKey(),
    kind: text("kind").$type<ClaimKind>().notNull(),
    /** Or the name of a list, with 0 in place of a series. */
    ...ledgerKey,
    from: integer("from_ts").notNull(),
    /** Exclusive. */
    to: integer("to_ts").notNull(),
    /** How many stored rows the service lacks. */
    rows: integer("rows").notNull(),
    /** JSON array of timestamps: the rows that are gone, or the oldest record above an end. An equal answer has equal ones. */
    subject: text("subject").notNull(),
    /** How many answers made the claim; the first and the last, in microseconds. */
    answers: integer("answers").notNull(),
    firstAt: integer("first_at").notNull(),
    lastAt: integer("last_at").notNull(),
    /** When it was accepted, in microseconds; null: pending. */
    acceptedAt: integer("accepted_at"),
  },
  (table) => [index("pending_claims_by_series").on(table.stream, table.series)],
);
export type PendingClaimRow = typeof pendingClaims.$inferSelect;

/**
 * `rows`: rows were written or deleted, or coverage has changed; the key is that of the rows. `ledger`: the same for the coverage
 * of a snapshot stream, whose ledger has other keys. `retracted`: coverage was taken back, or lost on purpose.
 */
export type ChangeKind = "rows" | "ledger" | "retracted";

/** The journal: every range whose rows or coverage was changed. Readers know up to which entry they have looked. */
export const changes = sqliteTable("changes", {
  /** Ascending; a range that changes again may get a new number. */
  seq: integer("seq").primaryKey(),
  stream: text("stream").$type<RowStream>().notNull(),
  /** rows: `key` is that of the rows; ledger or retracted: that of the ledger. */
  kind: text("kind").$type<ChangeKind>().notNull(),
  key: integer("key").notNull(),
  from: integer("from_ts").notNull(),
  /** Exclusive. */
  to: integer("to_ts").notNull(),
  /** How many neighbouring keys have changed, from `key` on. */
  keys: integer("keys").notNull().default(1),
});

/** One row per stream: values that would otherwise need a scan. */
export const streamStates = sqliteTable("stream_states", {
  stream: text("stream").$type<Stream>().primaryKey().notNull(),
  /** Rows stored; updated in the transaction that stores them. */
  rows: integer("rows").notNull(),
  /** The newest timestamp of a stored row; rows from the future do not count. */
  newestTs: integer("newest_ts"),
  /** The last error in one line, null once the stream works again; and when it happened. */
  lastError: text("last_error"),
  lastErrorAt: text("last_error_at"),
  /** JSON array of the scopes that the token lacks for this stream. */
  missingScopes: text("missing_scopes").notNull(),
  /** How long after their timestamps records appeared, in microseconds, and when that was last seen; 0: never. */
  lateBy: integer("late_by").notNull().default(0),
  lateAt: integer("late_at").notNull().default(0),
  /** How much later the websocket stamps a tick than REST, in microseconds; null: equal, or unknown. */
  liveOffset: integer("live_offset"),
  /** 1: the service serves the bar of a day that has not ended; null: it never did so far. */
  servesRunningDay: integer("serves_running_day"),
});
export type StreamStateRow = typeof streamStates.$inferSelect;

/** One row. */
export const warehouseState = sqliteTable("warehouse_state", {
  one: integer("one").primaryKey().notNull(),
  /** Each process that becomes the writer increments it; a writer with an older value cannot commit. */
  epoch: integer("epoch").notNull(),
  /** The service's clock minus this machine's, in microseconds, when last compared: `gaps` adds it to SQLite's now. */
  clockSkew: integer("clock_skew").notNull(),
  /** Digest of the stored view definitions, so that another version replaces them. */
  views: text("views").notNull(),
  /** History requests a second of the last long backfill, for `plan`; null: not measured yet. */
  requestRate: real("request_rate"),
  /** A random number that names the journal (`changes`): another file has another one. */
  changesId: integer("changes_id").notNull().default(0),
  /** The newest entry of the journal that was deleted. */
  changesPruned: integer("changes_pruned").notNull().default(0),
  /** A random number that names the past of the warehouse (`commits`). Copies share it. */
  historyId: integer("history_id").notNull().default(0),
  /** The REST address of the service that the data is from; null: unknown, nothing is stored yet. */
  serviceUrl: text("service_url"),
});
export type WarehouseStateRow = typeof warehouseState.$inferSelect;

/** The ids of everything that the warehouse's service has listed: they distinguish it from another service. */
export const serviceIds = sqliteTable(
  "service_ids",
  {
    /** assets, markets or exchanges */
    stream: text("stream").$type<Stream>().notNull(),
    id: text("id").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.id] })],
);

/** Powers of ten with which the `*_exact` columns turn a REAL into digits by integer arithmetic; constant. */
export const decimalScales = sqliteTable("decimal_scales", {
  /** The row applies to magnitudes from here up to the next row. */
  low: real("low").primaryKey().notNull(),
  /** 10^scale: a value of the row's range times this has at most 15 digits before the point. */
  factor: real("factor").notNull(),
  /** 10^min(scale, 16): splits that integer into whole part and fraction. */
  unit: integer("unit").notNull(),
  /** The leading zeros of the fraction that `unit` cannot represent. */
  zeros: text("zeros").notNull(),
});

/** Records that could not be read, and second records of one moment, as received; the same record is stored once. */
export const rejects = sqliteTable(
  "rejects",
  {
    reject: integer("reject").primaryKey(),
    stream: text("stream").notNull(),
    receivedAt: text("received_at").notNull(),
    reason: text("reason").notNull(),
    raw: text("raw").notNull(),
    /** The request that returned it, without secrets; null for the websocket. */
    request: text("request"),
  },
  (table) => [uniqueIndex("rejects_by_raw").on(table.stream, table.raw)],
);

/** `where`: the stream, or the websocket. */
const unknown = {
  where: text("where").notNull(),
  name: text("name").notNull(),
  firstSeen: text("first_seen").notNull(),
  count: integer("count").notNull(),
  sample: text("sample"),
};

/** Properties that this version does not know. */
export const unknownFields = sqliteTable("unknown_fields", unknown, (table) => [
  primaryKey({ columns: [table.where, table.name] }),
]);

/** Websocket events that this version does not know. */
export const unknownEvents = sqliteTable("unknown_events", unknown, (table) => [
  primaryKey({ columns: [table.where, table.name] }),
]);

/** The last run of each scheduled job, so that the next start can run a job that was missed. */
export const jobRuns = sqliteTable("job_runs", {
  job: text("job").primaryKey().notNull(),
  /** The scheduled time that it ran for, in microseconds; the run itself may have been later. */
  scheduledAt: integer("scheduled_at").notNull(),
  endedAt: text("ended_at").notNull(),
  /** `ok`, `new` (has never run), or the code of the failure. */
  outcome: text("outcome").notNull(),
});
export type JobRunRow = typeof jobRuns.$inferSelect;

/** The size of the warehouse, every ten minutes of the last two days: the basis of the disk forecast. */
export const sizeSamples = sqliteTable("size_samples", {
  /** By the service's clock, in microseconds. */
  at: integer("at").primaryKey().notNull(),
  /** The file and its WAL. */
  bytes: integer("bytes").notNull(),
});
export type SizeSampleRow = typeof sizeSamples.$inferSelect;
