import { integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** The ledger: what is proven, as half-open ranges, disjoint per stream and series. View: `coverage`. */
export const settledRanges = sqliteTable(
  "settled_ranges",
  {
    stream: text("stream").notNull(),
    /** → series.series */
    series: integer("series").notNull(),
    fromTs: integer("from_ts").notNull(),
    /** Exclusive. */
    toTs: integer("to_ts").notNull(),
    /** `rows`: the rows of this range are all here; `empty`: the service has none; `lost`: it no longer says. */
    proof: text("proof").notNull(),
    /** Why it is empty or lost; null for rows. */
    reason: text("reason"),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series, table.fromTs] })],
);

/**
 * What the settings ask for. It lives here so that `gaps` is true also while nothing runs: the view subtracts the
 * ledger from it at the moment of the query.
 */
export const wantedRanges = sqliteTable(
  "wanted_ranges",
  {
    stream: text("stream").notNull(),
    /** → series.series */
    series: integer("series").notNull(),
    fromTs: integer("from_ts").notNull(),
    /** Null: it follows the present. */
    toTs: integer("to_ts"),
    /** The claim ends this many microseconds before now: the service may still add rows to what is younger. */
    settleDelay: integer("settle_delay").notNull(),
    /** The claim moves in steps of this length: a day for daily bars, 1 for ticks. */
    step: integer("step").notNull(),
    /** How long the service keeps history, in microseconds; null: for ever. What is open and older is lost. */
    keptFor: integer("kept_for"),
    /** 1: a latest-only stream without a history to walk: what was not observed is lost. */
    observed: integer("observed").notNull(),
    /** Why open ranges stay open at present (`forbidden` …); null while nothing hinders them. */
    hindrance: text("hindrance"),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series, table.fromTs] })],
);

/**
 * What the live feed has heard without a break until now, one row a subscription: a head inside it only awaits its
 * confirmation. A break deletes the row; a dead process leaves rows that stop moving.
 */
export const liveSpans = sqliteTable(
  "live_spans",
  {
    stream: text("stream").notNull(),
    indexType: text("index_type").notNull(),
    /** Empty: the subscription is to the whole family. */
    indexId: text("index_id").notNull(),
    /** When the service confirmed the subscription. */
    fromTs: integer("from_ts").notNull(),
    /** The newest tick of the family that was heard and stored. */
    toTs: integer("to_ts").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.indexType, table.indexId] })],
);

/** When the youngest settled stretch of a line was last read again for late corrections: once a UTC day is enough. */
export const rereads = sqliteTable(
  "rereads",
  {
    stream: text("stream").notNull(),
    /** → series.series */
    series: integer("series").notNull(),
    /** The UTC day of it, `YYYY-MM-DD`. A line that was never settled before counts as read on its first day. */
    day: text("day").notNull(),
  },
  (table) => [primaryKey({ columns: [table.stream, table.series] })],
);

/** One row a stream: figures that would cost a scan to find out. */
export const streamStates = sqliteTable("stream_states", {
  stream: text("stream").primaryKey().notNull(),
  /** Rows stored, kept in the transaction that stores them. */
  rows: integer("rows").notNull(),
  /** The newest moment of a stored row, rows from the future left out. */
  newestTs: integer("newest_ts"),
  /** The last error in one line, null once the stream works again; and its moment. */
  lastError: text("last_error"),
  lastErrorAt: text("last_error_at"),
  /** JSON array of the scopes that the token lacks for this stream. */
  missingScopes: text("missing_scopes").notNull(),
});

/** One row. */
export const warehouseState = sqliteTable("warehouse_state", {
  one: integer("one").primaryKey().notNull(),
  /** Raised by each process that becomes the writer; a writer with an older one is a zombie and cannot commit. */
  epoch: integer("epoch").notNull(),
  /** The service's clock minus this machine's, in microseconds, when last compared: `gaps` adds it to SQLite's now. */
  clockSkew: integer("clock_skew").notNull(),
  /** Digest of the view definitions in place, so that another version replaces them. */
  views: text("views").notNull(),
});

/** Powers of ten with which the `*_exact` columns turn a REAL into digits by integer arithmetic; never changes. */
export const decimalScales = sqliteTable("decimal_scales", {
  /** The row serves magnitudes from here up to the next row's. */
  low: real("low").primaryKey().notNull(),
  /** 10^scale: a value of the class times this has at most 15 digits before the point. */
  factor: real("factor").notNull(),
  /** 10^min(scale, 16): splits that integer into whole part and fraction. */
  unit: integer("unit").notNull(),
  /** The zeros of the fraction that the unit cannot hold. */
  zeros: text("zeros").notNull(),
});

/** Records that could not be read, as they came; one that comes again is not kept twice. */
export const rejects = sqliteTable(
  "rejects",
  {
    reject: integer("reject").primaryKey(),
    stream: text("stream").notNull(),
    receivedAt: text("received_at").notNull(),
    reason: text("reason").notNull(),
    raw: text("raw").notNull(),
    /** The request that brought it, without secrets; null for the websocket. */
    request: text("request"),
  },
  (table) => [uniqueIndex("rejects_by_raw").on(table.stream, table.raw)],
);

/** Properties that this version does not know. */
export const unknownFields = sqliteTable(
  "unknown_fields",
  {
    /** The stream. */
    where: text("where").notNull(),
    name: text("name").notNull(),
    firstSeen: text("first_seen").notNull(),
    count: integer("count").notNull(),
    sample: text("sample"),
  },
  (table) => [primaryKey({ columns: [table.where, table.name] })],
);

/** Websocket events that this version does not know. */
export const unknownEvents = sqliteTable(
  "unknown_events",
  {
    where: text("where").notNull(),
    name: text("name").notNull(),
    firstSeen: text("first_seen").notNull(),
    count: integer("count").notNull(),
    sample: text("sample"),
  },
  (table) => [primaryKey({ columns: [table.where, table.name] })],
);

/** The last run of each scheduled job: a moment that was missed while nothing ran is made up for at the next start. */
export const jobRuns = sqliteTable("job_runs", {
  job: text("job").primaryKey().notNull(),
  /** The moment of the schedule that it served, in microseconds; the run itself may have come later. */
  moment: integer("moment").notNull(),
  endedAt: text("ended_at").notNull(),
  /** `ok`, `new` (never run so far), or the code of the failure. */
  outcome: text("outcome").notNull(),
});

/** How large the warehouse was, every ten minutes of the last two days: tells when the disk will be full. */
export const sizeSamples = sqliteTable("size_samples", {
  /** By the service's clock, in microseconds. */
  at: integer("at").primaryKey().notNull(),
  /** The file and its WAL. */
  bytes: integer("bytes").notNull(),
});
