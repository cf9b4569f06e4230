import { describe, expect, it } from "vitest";
import type { TimeRange } from "../../src/model/time-range.ts";
import type { Claim, PageAnswer, PendingClaim, SeriesRules } from "../../src/rule/answer.ts";
import { claimNotFound, findContradiction, interpret } from "../../src/rule/interpret.ts";
import { page, plainRules } from "../support/rule/pages.ts";
import { type StoredContent, storedSeries } from "../support/rule/stored-series.ts";

/** REST has published everything: only the page and its walk count. */
const published = { publishedTo: Number.POSITIVE_INFINITY };
const LAST = { isLast: true } as const;
const below = { provenFrom: 1500 } as const;

interface Case {
  readonly stored?: StoredContent;
  readonly pending?: readonly PendingClaim[];
  readonly rules?: Partial<SeriesRules>;
}

const read = (answer: PageAnswer, { stored = {}, pending = [], rules = {} }: Case = {}) =>
  interpret(answer, storedSeries({ publication: published, ...stored }), pending, {
    ...plainRules,
    ...rules,
  });

const show = ({ kind, range, says, subject }: Claim) =>
  `${kind} ${range.from}-${range.to} ${says} [${subject}]`;

/** The claims of a page as text: kind, range, what it says, and which rows it is about. */
const claims = (answer: PageAnswer, more: Case = {}) => read(answer, more).claims.map(show);

const hole = (from: number, to: number, subject: readonly number[]): PendingClaim => ({
  ...{ kind: "withdrawn", range: { from, to }, subject },
  ...{ answers: 1, firstAt: 0, lastAt: 0, acceptedAt: null },
});

describe("what the records of a page prove", () => {
  it.each<[what: string, answer: PageAnswer, claims: string[], isComplete: boolean]>([
    ["the range above its oldest record", page([1900, 1700]), ["records 1701-2000 rows []"], false],
    [
      "from the oldest record of the page before",
      page([1499, 1300], below),
      ["records 1301-1500 rows []"],
      false,
    ],
    ["down to the gap, if a record is below it", page([1900, 999]), ["records 1000-2000 rows []"], true],
    ["not down to the gap, if one is at its start", page([1900, 1000]), ["records 1001-2000 rows []"], false],
    ["that nothing is there, if all are below", page([999]), ["records 1000-2000 empty []"], true],
    ["nothing above the gap", page([2100, 2000]), [], false],
    ["nothing if it only repeats a record", page([1499, 1499], below), [], false],
    ["nothing without records", page([]), [], false],
    [
      "down to the gap, if its last record is there",
      page([1900, 1000], LAST),
      ["records 1000-2000 rows []"],
      true,
    ],
    [
      "an end, though no record fits below",
      page([1900, 1009], LAST),
      ["records 1010-2000 rows []", "end 1000-1010 empty [1009]"],
      true,
    ],
    [
      "an end, if one fits",
      page([1900, 1010], LAST),
      ["records 1011-2000 rows []", "end 1000-1011 empty [1010]"],
      true,
    ],
    ["an end below the page before", page([], { ...below, ...LAST }), ["end 1000-1500 empty [1499]"], true],
    ["an end without any record", page([], LAST), ["end 1000-2000 empty []"], true],
    [
      "an end, not a loss, if the gap ends at a row of the page before",
      page([], { ...LAST, isContinued: true }),
      ["end 1000-2000 empty [1999]"],
      true,
    ],
    [
      "nothing of an end, if it is stale",
      page([1900, 1800], { ...LAST, isStale: true }),
      ["records 1801-2000 rows []"],
      true,
    ],
  ])("%s", (_, answer, expected, isComplete) => {
    expect(claims(answer)).toEqual(expected);
    expect(read(answer).isComplete).toBe(isComplete);
  });

  it("is nothing before it is final", () => {
    const young = { madeAt: 1_000_000_000, asOf: 1_000_000_000, gap: { from: 0, to: 2_000_000_000 } };
    const rules = { settleDelay: 500_000_000 };
    // The clock of the service is known to five seconds.
    expect(claims(page([600_000_000, 400_000_000, 100], young), { rules })).toEqual([
      "records 101-505000000 rows []",
    ]);
    expect(claims(page([600_000_000], { ...young, ...LAST }), { rules })).toEqual([
      "end 0-505000000 empty [600000000]",
    ]);
    expect(read(page([600_000_000, -1], young), { rules }).isComplete).toBe(false);
  });
});

describe("a page that contradicts its walk", () => {
  it.each<[what: string, answer: PageAnswer, contradiction: string | undefined]>([
    ["records of other series", page([1900], { foreign: 1, ...LAST }), "foreign_rows"],
    ["oldest first", page([1700, 1800, 1900]), "disordered"],
    ["a stray timestamp", page([1900, 1100, 1800], LAST), "disordered"],
    ["equal timestamps", page([1900, 1900, 1800]), undefined],
    ["a record in the proven range", page([1950, 1400], below), "newer_than_proven"],
    ["the first one of the proven range", page([1500, 1400], below), "newer_than_proven"],
    ["a record above the gap", page([2000, 1400], below), undefined],
    ["one of the proven range below it", page([2000, 1600, 1400], below), "newer_than_proven"],
    ["one that repeats after a restart", page([1600, 1400], { ...below, anchor: 1600 }), undefined],
    ["one above the restart", page([1601, 1400], { ...below, anchor: 1600 }), "newer_than_proven"],
    [
      "one between a low restart and the proven range",
      page([1450, 1400], { ...below, anchor: 1300 }),
      undefined,
    ],
  ])("%s: %s", (_, answer, contradiction) => {
    expect(findContradiction(answer)).toBe(contradiction);
  });
});

describe("H4: stored rows that a page lacks", () => {
  const tens = Array.from({ length: 40 }, (_, i) => 1990 - 10 * i);
  const short = [1900, 1800, 1700, 999];

  it.each<[what: string, timestamps: readonly number[], stored: StoredContent, claims: string[]]>([
    [
      "are gone, if they are two",
      short,
      { rows: [1850, 1750] },
      ["gone 1000-2000 rows [1750,1850]", "records 1000-2000 rows []"],
    ],
    [
      "must be gone in every answer, if they are three",
      short,
      { rows: [1850, 1750, 1740] },
      ["withdrawn 1740-1900 rows [1740,1750,1850]", "records 1700-1740 rows []", "records 1900-2000 rows []"],
    ],
    [
      "are gone, if they are a tenth",
      [...tens, 999],
      { rows: [1995, 1994, 1993, 1992] },
      ["gone 1000-2000 rows [1992,1993,1994,1995]", "records 1000-2000 rows []"],
    ],
    [
      "must be gone in every answer, if they are more: the page counts between its records",
      [...tens, 999],
      { rows: [1301, 1302, 1303, 1304, 1305] },
      ["withdrawn 1301-1600 empty [1301,1302,1303,1304,1305]", "records 1600-2000 rows []"],
    ],
    [
      "are gone as previews, however many they are",
      short,
      { previews: [1850, 1750, 1740] },
      ["gone 1000-2000 rows [1740,1750,1850]", "records 1000-2000 rows []"],
    ],
    [
      "are gone as previews, also beside many others",
      [1900, 999],
      { rows: [1100, 1110, 1120], previews: [1950] },
      [
        "gone 1000-2000 rows [1950]",
        "withdrawn 1100-1900 empty [1100,1110,1120]",
        "records 1900-2000 rows []",
      ],
    ],
    [
      "may lie outside of what it proves",
      [1900, 1800],
      { rows: [1900, 1750, 2000, 999] },
      ["records 1801-2000 rows []"],
    ],
  ])("%s", (_, timestamps, stored, expected) => {
    expect(claims(page(timestamps), { stored })).toEqual(expected);
  });

  it("are not missing, if the page before had them, or the page is stale", () => {
    expect(claims(page([1300, 999], below), { stored: { rows: [1499] } })).toEqual([
      "records 1000-1500 rows []",
    ]);
    const stored = { rows: [1100, 1110, 1120] };
    expect(claims(page([1900, 999], { isStale: true }), { stored })).toEqual(["records 1000-2000 rows []"]);
  });

  it("are judged hole by hole, and those beside it anew", () => {
    const stored = { rows: [1110, 1120, 1130, 1710, 1720, 1730] };
    const pending = [hole(1110, 1200, [1110, 1120, 1130])];
    expect(claims(page([1800, 1200, 999]), { stored, pending })).toEqual([
      "withdrawn 1110-1200 empty [1110,1120,1130]",
      "withdrawn 1710-1800 empty [1710,1720,1730]",
      "records 1200-1710 rows []",
      "records 1800-2000 rows []",
    ]);
    // H5: its range is open, so rows that the websocket has shown first look like previews.
    expect(claims(page([1800, 1200, 999]), { stored: { previews: [1110, 1120, 1130] }, pending })[0]).toBe(
      "withdrawn 1110-1200 empty [1110,1120,1130]",
    );
    // Two rows of a known hole are no small loss.
    expect(claims(page([1800, 1200, 999]), { stored: { rows: [1110] }, pending })[0]).toBe(
      "withdrawn 1110-1200 empty [1110]",
    );
  });
});

describe("H14: the claim that nothing is older", () => {
  const last = (timestamps: readonly number[], more: Case = {}) => {
    const { claims, endsAt } = read(page(timestamps, LAST), more);
    const end = claims.find(({ because }) => because === "nothing older");
    return [end && show(end), end?.lostTo, endsAt];
  };

  it.each<[what: string, timestamps: readonly number[], more: Case, expected: ReturnType<typeof last>]>([
    [
      "reaches down to the target",
      [1500],
      { stored: { targetStart: 700 } },
      ["end 700-1501 empty [1500]", undefined, undefined],
    ],
    [
      "reaches down to the floor",
      [1500],
      { stored: { targetStart: 700 }, rules: { floor: 800 } },
      ["end 800-1501 empty [1500]", undefined, undefined],
    ],
    [
      "never begins within the gap",
      [1500],
      { rules: { floor: 1200 } },
      ["end 1000-1501 empty [1500]", undefined, undefined],
    ],
    [
      "contradicts older rows",
      [1500],
      { stored: { rows: [500] } },
      ["end moved 1000-1501 empty [1500]", 1500, 1500],
    ],
    [
      "does not contradict previews",
      [1500],
      { stored: { previews: [500] } },
      ["end 1000-1501 empty [1500]", undefined, undefined],
    ],
    [
      "contradicts the oldest row of the window",
      [1500],
      { stored: { rows: [500] }, rules: { windowStart: 500 } },
      ["end moved 1000-1501 empty [1500]", 1500, 1500],
    ],
    [
      "does not contradict rows that left the window",
      [1500],
      { stored: { rows: [500] }, rules: { windowStart: 501 } },
      ["end 1000-1501 empty [1500]", undefined, undefined],
    ],
    [
      "makes lost what left the window within the gap",
      [1500],
      { stored: { rows: [1200] }, rules: { windowStart: 1300 } },
      ["end 1000-1501 empty [1500]", 1500, undefined],
    ],
    [
      "leaves the rows of a hole to the hole",
      [1500],
      { stored: { rows: [500] }, pending: [hole(400, 600, [500])] },
      ["end 1000-1501 empty [1500]", undefined, undefined],
    ],
    [
      "contradicts rows beside a hole",
      [1500],
      { stored: { rows: [300, 500] }, pending: [hole(400, 600, [500])] },
      ["end moved 1000-1501 empty [1500]", 1500, 1500],
    ],
    [
      "is not made, if no record fits below one that leaves the window",
      [1009],
      { stored: { rows: [500] }, rules: { windowStart: 1010 } },
      [undefined, undefined, undefined],
    ],
    [
      "is made, if it stays in the window",
      [1009],
      { stored: {}, rules: { windowStart: 1009 } },
      ["end 1000-1010 empty [1009]", undefined, undefined],
    ],
    [
      "says nothing, if all is settled",
      [1500],
      { stored: { rows: [500], ledger: [{ from: 900, to: 1600, proof: "rows", reason: null }] } },
      [undefined, undefined, 1500],
    ],
    [
      "of a page without records is lost up to the newest row",
      [],
      { stored: { rows: [500] } },
      ["end moved 1000-2000 empty []", 501, 2000],
    ],
    [
      "of a page without records is lost, if there are newer rows",
      [],
      { stored: { rows: [500, 2000] } },
      ["end moved 1000-2000 empty []", 2000, 2000],
    ],
  ])("%s", (_, timestamps, more, expected) => {
    expect(last(timestamps, more)).toEqual(expected);
  });

  it("is known, if it continues one that was accepted and has no record", () => {
    const settled = (reason: string, to = 1000) => ({
      stored: { ledger: [{ from: 500, to, proof: "empty" as const, reason }] },
    });
    expect(claims(page([], LAST), settled("nothing older"))).toEqual(["still absent 1000-2000 empty []"]);
    expect(claims(page([], LAST), settled("no records"))).toEqual(["end 1000-2000 empty []"]);
    expect(claims(page([], LAST), settled("nothing older", 999))).toEqual(["end 1000-2000 empty []"]);
    expect(claims(page([1500], LAST), settled("nothing older"))).toContain("end 1000-1501 empty [1500]");
  });
});

describe("what a page takes back", () => {
  const end = { from: 500, to: 1600, proof: "empty", reason: "nothing older" } as const;

  it.each<[what: string, answer: PageAnswer, more: Case, retracted: readonly TimeRange[]]>([
    ["the end above its oldest record", page([1900, 1599]), { stored: { ledger: [end] } }, [end]],
    ["no end at its oldest record", page([1900, 1600]), { stored: { ledger: [end] } }, []],
    ["no end, if it is stale", page([499], { isStale: true }), { stored: { ledger: [end] } }, []],
    [
      "an empty range that has a record",
      page([1599], { isStale: true }),
      { stored: { ledger: [end] } },
      [end],
    ],
    ["no end, without records", page([]), { stored: { ledger: [end] } }, []],
    [
      "what may get late records",
      page([1900], { isHead: true, asOf: 9000 }),
      { rules: { lateness: 600 } },
      // Five seconds for the header, as for what a page covers.
      [{ from: 5_008_400, to: Number.MAX_SAFE_INTEGER }],
    ],
    [
      "nothing, if the settle delay is as long",
      page([1900], { isHead: true, asOf: 9000 }),
      { rules: { lateness: 600, settleDelay: 600 } },
      [],
    ],
    ["nothing below the head", page([1900], { asOf: 9000 }), { rules: { lateness: 600 } }, []],
    [
      "nothing of bars",
      page([1900], { isHead: true, asOf: 9000 }),
      { rules: { lateness: 600, isDaily: true } },
      [],
    ],
  ])("is %s", (_, answer, more, retracted) => {
    const { young, reopened } = read(answer, more);
    expect([...young, ...reopened]).toEqual(retracted);
  });

  it("is claimed anew by a page that ends deeper", () => {
    expect(claims(page([1900, 1550], LAST), { stored: { ledger: [end] } })).toContain(
      "end 1000-1551 empty [1550]",
    );
  });
});

describe("the answer that an index does not exist", () => {
  const range = { from: 1000, to: 2000 };
  const claim = (stored: StoredContent, rules: Partial<SeriesRules> = {}) => {
    const made = claimNotFound(range, storedSeries(stored), { ...plainRules, ...rules });
    return [show(made), made.because, made.lostTo];
  };

  it.each<
    [what: string, stored: StoredContent, rules: Partial<SeriesRules>, expected: ReturnType<typeof claim>]
  >([
    ["is about the gap", {}, {}, ["not found 1000-2000 empty []", "not found", undefined]],
    [
      "reaches down to the target",
      { targetStart: 700 },
      { floor: 600 },
      ["not found 700-2000 empty []", "not found", undefined],
    ],
    [
      "reaches down to the floor",
      { targetStart: 700 },
      { floor: 800 },
      ["not found 800-2000 empty []", "not found", undefined],
    ],
    [
      "leaves lost what is missing below the newest row",
      { rows: [500, 1800, 2000] },
      {},
      ["not found 1000-2000 empty []", "not found", 1801],
    ],
    [
      "counts whole days of bars",
      { rows: [1200] },
      { step: 100 },
      ["not found 1000-2000 empty []", "not found", 1300],
    ],
    [
      "is known, if it continues one",
      { ledger: [{ from: 0, to: 1000, proof: "empty", reason: "not found" }] },
      {},
      ["still absent 1000-2000 empty []", "not found", undefined],
    ],
    [
      "is not known by another reason",
      { ledger: [{ from: 0, to: 1000, proof: "empty", reason: "nothing older" }] },
      {},
      ["not found 1000-2000 empty []", "not found", undefined],
    ],
  ])("%s", (_, stored, rules, expected) => {
    expect(claim(stored, rules)).toEqual(expected);
  });
});
