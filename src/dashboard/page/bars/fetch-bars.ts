import type { BarWidth } from "../../../model/time.ts";
import { fetchJson } from "../shared/page-base.ts";
import type { AskedRange, ReadBars } from "./bar-feed.ts";

/** Asks the daemon for the bars of a series. */
export const fetchBars: ReadBars = ({ index_type, index_id }, width: BarWidth, { from, to }: AskedRange) => {
  const toIso = (seconds: number) => new Date(Math.floor(seconds) * 1000).toISOString();
  return fetchJson("bars", {
    type: index_type,
    id: index_id,
    width,
    from: toIso(from),
    ...(to === undefined ? {} : { to: toIso(to) }),
  });
};
