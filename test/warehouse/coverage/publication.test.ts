import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../../src/model/time.ts";
import {
  decayLateness,
  extendSettleDelay,
  hasOtherPublished,
  type Lateness,
  learnLateness,
  MAX_LATENESS_MICROS,
  readPublication,
  recordPublication,
} from "../../../src/warehouse/coverage/publication.ts";
import { readGaps } from "../../../src/warehouse/coverage/series-gaps.ts";
import { recordBlockedReason } from "../../../src/warehouse/coverage/targets.ts";
import { recordStreamTiming } from "../../../src/warehouse/rows/stream-stats.ts";
import { DELAY, gapsOf, HOUR, key, openTarget, present } from "../../support/warehouse/gaps.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";
import { settle } from "../../support/warehouse/settle.ts";

describe("the view gaps of a series whose newest records REST lacks", () => {
  const settled = { from: present - 5 * HOUR, to: present - HOUR };
  const askedAt = present - HOUR / 4;
  const publication = { publishedTo: settled.to, askedAt, askedTo: askedAt - DELAY, quietMargin: 0 };

  it("shows what REST was asked about as not published yet, and what it was not asked about as pending", () => {
    const warehouse = openTarget(settled.from);
    warehouse.transaction((t) => {
      settle(t, key, settled, "empty");
      recordPublication(t, key, publication);
    });
    expect(gapsOf(warehouse)).toEqual([
      ["open", "not published yet", -180, -48],
      ["open", "pending", -48, -3],
      ["unconfirmed", "settling", -3, 0],
    ]);
    const [found] = readGaps(warehouse.connection, "index_ticks", present);
    expect(found?.unpublished).toEqual([{ from: settled.to, to: askedAt - DELAY }]);
    expect(found?.missing).toEqual([{ from: askedAt - DELAY, to: present - DELAY }]);
    expect(found?.open).toEqual([{ from: settled.to, to: present - DELAY }]);
    warehouse.transaction((t) => recordBlockedReason(t, key, "forbidden"));
    expect(gapsOf(warehouse)[0]).toEqual(["open", "forbidden", -180, -48]);
  });

  it("shows the margin of a quiet series before it was asked for as settling, and what is older as pending", () => {
    const warehouse = openTarget(settled.from);
    warehouse.transaction((t) => {
      settle(t, key, settled, "empty");
      recordPublication(t, key, { ...publication, publishedTo: 0, quietMargin: HOUR / 2 });
    });
    expect(gapsOf(warehouse)).toEqual([
      ["open", "pending", -180, -135],
      ["unconfirmed", "settling", -135, 0],
    ]);
    // What is too young for a quiet series is requested, too.
    const missing = [{ from: settled.to, to: askedAt - HOUR / 2 }];
    const open = [{ from: settled.to, to: present - DELAY }];
    const found = readGaps(warehouse.connection, "index_ticks", present);
    expect(found).toMatchObject([{ missing, unpublished: [], open }]);
  });

  it("shows what may still get late records as settling, less and less without any", () => {
    const warehouse = openTarget(settled.from);
    warehouse.transaction((t) => {
      settle(t, key, { from: settled.from, to: present - 2 * HOUR }, "empty");
      recordStreamTiming(t, "index_ticks", { lateBy: HOUR, lateAt: present });
    });
    expect(gapsOf(warehouse)[1]).toEqual(["unconfirmed", "settling", -180, 0]);
    warehouse.connection.database.exec(`UPDATE stream_states SET late_at = ${present - 6 * HOUR}`);
    expect(gapsOf(warehouse)[1]).toEqual(["unconfirmed", "settling", -90, 0]);
  });
});

describe("the publication of a series", () => {
  const lower = (publishedTo: number, askedTo = 0) => ({ publishedTo, askedAt: 0, askedTo, quietMargin: 0 });

  it("follows the newest head page; lower pages only raise it", () => {
    const warehouse = openTarget(present - HOUR);
    const head = { publishedTo: 100, askedAt: 200, askedTo: 150, quietMargin: 0 };
    const read = () => readPublication(warehouse.connection, key);
    expect(read()).toBeUndefined();
    warehouse.transaction((t) => recordPublication(t, key, lower(50)));
    expect(read()).toEqual({ publishedTo: 50, askedAt: 0, askedTo: 0, quietMargin: 0 });
    warehouse.transaction((t) => recordPublication(t, key, head));
    warehouse.transaction((t) => recordPublication(t, key, lower(90)));
    expect(read()).toEqual(head);
    warehouse.transaction((t) => recordPublication(t, key, lower(110)));
    expect(read()?.publishedTo).toBe(110);
    warehouse.transaction((t) => recordPublication(t, key, { ...head, askedAt: 210, quietMargin: 7 }));
    expect(read()).toEqual({ ...head, askedAt: 210, quietMargin: 7 });
    warehouse.transaction((t) => recordPublication(t, key, lower(0, 160)));
    expect(read()).toEqual({ ...head, askedAt: 210, askedTo: 160, quietMargin: 7 });
    expect(readPublication(warehouse.connection, { ...key, series: 2 })).toBeUndefined();
  });

  it("shows that REST as a whole does not lag, if it is of another series of the same kind", () => {
    const warehouse = openTestWarehouse();
    warehouse.transaction((t) => {
      const keyOf = (indexType: string, id: string) =>
        ({ stream: "index_ticks", series: t.dictionary.getSeriesKey(indexType, id) }) as const;
      const [own, other, foreign] = [keyOf("GWA", "btc"), keyOf("GWA", "eth"), keyOf("LX", "btc")];
      const has = (to: number) => hasOtherPublished(t, own, "GWA", to);
      for (const each of [own, foreign, { ...other, stream: "ohlcv" as const }])
        recordPublication(t, each, lower(900));
      recordPublication(t, other, lower(100));
      expect([has(100), has(101)]).toEqual([true, false]);
    });
  });
});

describe("the lateness of a stream", () => {
  it("is believed at once up to ten minutes; more at most doubles once a period, up to what was seen", () => {
    let known: Lateness | undefined;
    const limits = { settleDelay: DELAY, cadence: 30 * MICROS_PER_SECOND };
    const see = (lateBy: number, lateAt: number) => {
      known = learnLateness(known, { lateBy, lateAt }, limits) ?? known;
      return known?.lateBy;
    };
    expect(see(DELAY, present)).toBeUndefined();
    expect(see(HOUR, present)).toBe(2 * DELAY);
    expect(see(HOUR, present + limits.cadence - 1)).toBe(2 * DELAY);
    const period = limits.cadence;
    expect(see(HOUR, present + period)).toBe(4 * DELAY - (2 * period) / 12);
    expect(see(5 * DELAY, present + period)).toBe(5 * DELAY);
    expect(see(3 * DELAY, present + 3 * period)).toBe(5 * DELAY);
    expect(see(10 * DELAY, present + 3 * period)).toBe(10 * DELAY);
    expect(see(10 * DELAY + 1, present + 3 * period)).toBe(10 * DELAY);
  });

  it("falls from two hours to nothing within a day", () => {
    const late = { lateBy: MAX_LATENESS_MICROS, lateAt: present };
    expect(decayLateness(late, present - HOUR)).toBe(2 * HOUR);
    expect(decayLateness(late, present + 12 * HOUR)).toBe(HOUR);
    expect(decayLateness(late, present + 24 * HOUR)).toBe(0);
    expect(decayLateness(late, present + 48 * HOUR)).toBe(0);
    expect(decayLateness(late, present + 13)).toBe(2 * HOUR - 1);
    // The settle delay stands until records appear later than that.
    const delayOf = (settleDelay: number, lateness?: typeof late) =>
      extendSettleDelay({ settleDelay }, lateness, present);
    const delays = [delayOf(DELAY), delayOf(DELAY, late), delayOf(3 * HOUR, late)];
    expect(delays).toEqual([DELAY, 2 * HOUR, 3 * HOUR]);
  });
});
