import { describe, expect, it } from "vitest";
import { MICROS_PER_SECOND } from "../../src/model/time.ts";
import { observeRefresh, type Refreshes } from "../../src/rule/snapshot.ts";

/** All times in seconds. */
function observer(stream: "market_caps" | "derivative_ticks", cadence: number) {
  let refreshes: Refreshes | undefined;
  return (ts: number, askedAt?: number, answeredAt = askedAt) => {
    const micros = (seconds: number | undefined) =>
      seconds === undefined ? undefined : seconds * MICROS_PER_SECOND;
    const observed = observeRefresh(refreshes, {
      stream,
      ts: ts * MICROS_PER_SECOND,
      askedAt: micros(askedAt),
      answeredAt: micros(answeredAt),
      cadence: cadence * MICROS_PER_SECOND,
    });
    refreshes = observed.refreshes;
    return [observed.range.from / MICROS_PER_SECOND, observed.range.to / MICROS_PER_SECOND];
  };
}

describe("what an observation covers", () => {
  it("is one cadence if the service refreshes as often as it is polled", () => {
    const observe = observer("market_caps", 300);
    expect(observe(600, 601)).toEqual([600, 900]);
    expect(observe(900, 901)).toEqual([600, 1200]);
    expect(observe(907, 1201)).toEqual([900, 1200]);
  });

  it("lasts until the poll that returns it again, and until the next refresh", () => {
    const observe = observer("market_caps", 30);
    expect(observe(600, 601)).toEqual([600, 630]);
    expect(observe(600, 691)).toEqual([600, 720]);
    // Polls that failed in between change nothing: the service had nothing newer.
    expect(observe(900, 902)).toEqual([600, 930]);
  });

  it("does not last longer than the refresh period, whatever a stale answer returns", () => {
    const observe = observer("market_caps", 30);
    observe(600, 601);
    expect(observe(600, 7_000)).toEqual([600, 1050]);
    // A refresh was missed.
    expect(observe(1_200, 1_201)).toEqual([1200, 1230]);
    // One and a half periods apart, none was; longer, one may have been.
    expect(observe(1_650, 1_651)).toEqual([1200, 1680]);
    expect(observe(2_101, 2_102)).toEqual([2100, 2130]);
  });

  it("is learned where nothing is documented: a faster refresh at once, a slower one after a while", () => {
    const observe = observer("derivative_ticks", 10);
    /** Polls every cadence, and returns what the last poll covers. */
    const poll = (period: number, from: number, to: number) => {
      let covered: number[] = [];
      for (let at = from; at < to; at += 10) covered = observe(Math.floor(at / period) * period, at + 1);
      return covered;
    };
    expect(poll(60, 600, 660)).toEqual([600, 610]);
    expect(observe(660, 661)).toEqual([660, 670]);
    // One period may come from a stale answer.
    expect(poll(60, 670, 720)).toEqual([660, 670]);
    expect(poll(60, 720, 780)).toEqual([720, 780]);
    // Polls fail for half a minute.
    expect(observe(780, 811)).toEqual([720, 820]);
    expect(poll(20, 820, 870)).toEqual([840, 870]);
    expect(observe(900, 901)).toEqual([900, 910]);
    poll(60, 910, 1_260);
    expect(observe(1_260, 1_291)).toEqual([1_200, 1_300]);
  });

  it("is one cadence if every poll returns a new one: there may be more in between", () => {
    const observe = observer("derivative_ticks", 60);
    for (let at = 0; at < 600; at += 60) observe(at + 30, at + 59);
    // The service is down for ten minutes, twice.
    expect(observe(1_200, 1_201)).toEqual([1_200, 1_260]);
    expect(observe(1_800, 1_801)).toEqual([1_800, 1_860]);
  });

  it("is one cadence although two polls in quick succession returned the same: that shows no slow refresh", () => {
    const observe = observer("derivative_ticks", 60);
    // The list is refreshed every 30 s.
    observe(600, 601);
    observe(600, 603);
    observe(660, 661);
    // Polls are late: nobody saw the refreshes between.
    expect(observe(750, 779)).toEqual([720, 780]);
    expect(observe(840, 841)).toEqual([840, 900]);
  });

  it("is one cadence although a slow answer has the same: it was written when it was sent, not when it was asked", () => {
    const observe = observer("derivative_ticks", 60);
    // The service froze for a minute and a half, then answered two polls at once.
    observe(690, 601, 691);
    observe(690, 692, 693);
    expect(observe(750, 760)).toEqual([720, 780]);
    expect(observe(840, 841)).toEqual([840, 900]);
  });

  it("ends with its cadence if it is not known when it was requested, or if an older answer comes late", () => {
    const observe = observer("market_caps", 30);
    expect(observe(600)).toEqual([600, 630]);
    expect(observe(300, 310)).toEqual([300, 330]);
    expect(observe(900, 905)).toEqual([600, 930]);
  });

  it("shows a slow refresh if polls a cadence or two apart returned the same, and the next one came soon after", () => {
    /** Whether a list that polls at 600 s and at `second` returned alike is known to be refreshed every 120 s. */
    const isLearned = (second: number, third: number) => {
      const observe = observer("derivative_ticks", 60);
      observe(600, 600);
      observe(600, second);
      observe(720, third);
      observe(720, third + 60);
      observe(840, third + 120);
      return observe(960)[0] === 840;
    };
    expect([653, 654, 720, 721].map((second) => isLearned(second, second + 40))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    // A clock that was set back shows nothing.
    expect([659, 660, 780, 781].map((third) => isLearned(660, third))).toEqual([false, true, true, false]);
  });

  it("shows a faster refresh at once, even if no poll returns the same again", () => {
    const observe = observer("derivative_ticks", 60);
    for (const [ts, askedAt] of [
      [600, 600],
      [600, 660],
      [720, 720],
      [720, 780],
      [840, 840],
      [900, 900],
    ] as const)
      observe(ts, askedAt);
    expect(observe(1_020, 1_020)).toEqual([1_020, 1_080]);
  });
});
