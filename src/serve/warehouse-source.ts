import { defaultChoices } from "../api-server/choices.ts";
import type { Source, SourceState } from "../api-server/source.ts";
import { MAX_PAGE_SIZE } from "../model/streams.ts";
import { formatTimestamp, type Micros } from "../model/time.ts";
import type { Connection } from "../warehouse/sqlite/connection.ts";
import { parseReplayOptions, Replay } from "./live/replay.ts";
import { TickPublisher } from "./live/tick-publisher.ts";
import { findHistorySeries } from "./records/history.ts";
import { lookupReaders } from "./records/lookups.ts";
import { findWindowStart } from "./records/page-coverage.ts";
import { snapshotReaders } from "./records/snapshots.ts";
import type { ServeContext } from "./served-warehouse.ts";

const choices = {
  ...defaultChoices,
  sizeBesideStartAfter: "honoured",
  ids: "opaque",
  exchangeTickerPage: MAX_PAGE_SIZE,
  noData: "empty",
} as const;

/** Where the oldest intraday history begins. */
const WINDOW_HEADER = "x-mds-window";

export function createWarehouseSource(options: ServeContext): Source {
  const { warehouse } = options;
  let window = { version: "", headers: {} };
  const readWindow = (connection: Connection, version: string) => {
    if (version === window.version) return window.headers;
    const start = findWindowStart(connection);
    window = { version, headers: start === undefined ? {} : { [WINDOW_HEADER]: formatTimestamp(start) } };
    return window.headers;
  };
  return {
    choices,
    read(_nowMs, read) {
      const { now, dataVersion } = warehouse;
      return warehouse.snapshot((connection) =>
        read({ ...readState(connection, now), headers: readWindow(connection, dataVersion) }),
      );
    },
    version: () => warehouse.dataVersion,
    follow: (audience) => new TickPublisher({ ...options, audience }),
    openReplay(query) {
      const range = parseReplayOptions(query, () => warehouse.now);
      return range && { from: range.from, open: (session) => new Replay({ ...options, ...range, session }) };
    },
  };
}

/** One state of a warehouse. `now`: by the service's clock. */
export function readState(connection: Connection, now: Micros): SourceState {
  return {
    now,
    findSeries: (stream, filter) => findHistorySeries(connection, stream, filter, now),
    ...lookupReaders(connection),
    ...snapshotReaders(connection, now),
  };
}
