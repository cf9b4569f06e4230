type Defect = readonly [name: string, right: string, wrong: string];

/** Mistakes in the rule, by file: a text that the file has once, and what it becomes. */
export const defects: Readonly<Record<string, readonly Defect[]>> = {
  "src/rule/apply.ts": [
    ["empty range not reopened", 'settled.proof === "empty" && hasRow(settled)', "false"],
    ["previews taken for served", "if (!rows.every(({ isPreview }) => isPreview))", "if (rows.length > 0)"],
  ],
  "src/rule/confirm.ts": [
    ["different ends counted as equal", "return areEqual(before.subject, subject);", "return true;"],
    [
      "end accepted as far as one answer",
      "to: subject.length === 0 ? to : Math.min(before.to, to) };",
      "to };",
    ],
    [
      "older record counted as repetition",
      "standing = pending.filter((claim) => !dropped.has(claim))",
      "standing = pending",
    ],
  ],
  "src/rule/interpret.ts": [
    [
      "old end kept below new record",
      "const ends = isStale ? [] : stored.endsAbove(lowest);",
      "const ends: readonly TimeRange[] = [];",
    ],
    ["oldest moment proven", "Math.max(gap.from, lowest + 1)", "Math.max(gap.from, lowest)"],
  ],
  "src/rule/live-period.ts": [
    [
      "empty period not corrected",
      "period.settledWithRows !== period.hasRows",
      "period.settledWithRows === undefined",
    ],
    ["late tick counts for no period", "at < begun && !known;", "at < begun;"],
    ["lost batch ignored", "return { ...feed, exchanges: new Map() };", "return feed;"],
    [
      "missing ticks not retracted",
      "begin = Math.floor(from / cadence)",
      "begin = (Math.floor(to / cadence) + 1)",
    ],
    ["period before subscription counted", "before.at >= since && before.markets", "before.markets"],
    [
      "period over before its end",
      "i < periods.length - 1 && at + cadence <= present",
      "i < periods.length - 1",
    ],
    ["period whole with first tick", "before.markets.isSubsetOf(markets)", "markets.size > 0"],
    ["reconnect continues period", "known?.since === since ? known", "known ? known"],
    ["row in empty period ignored", "if (isRow && (isLate || at < since)) unproven.add(at);", ""],
    [
      "silence begins after arrival",
      "begin = Math.floor(from / cadence)",
      "begin = (Math.floor(from / cadence) + 1)",
    ],
    ["subscription period taken for whole", "if (at < since || at > present)", "if (at > present)"],
  ],
  "src/rule/provable-until.ts": [
    [
      "record of page before forgotten",
      "return isContinued ? provenFrom",
      "return isContinued && provenFrom < gap.to ? provenFrom",
    ],
    ["running day taken for final", "!(showsRunningDay || stored.servesRunningDay)", "!showsRunningDay"],
    [
      "settle delay dropped",
      "DATE_HEADER_SLACK_MICROS), settleDelay, step)",
      "DATE_HEADER_SLACK_MICROS), 0, step)",
    ],
    ["silence taken for published", "return { until, publication,", "return { until: gap.to, publication,"],
  ],
  "src/rule/repetition.ts": [
    ["end accepted at once", "  end: row(2,", "  end: row(1,"],
    ["foreign rows ignored", '"foreign records": row(3,', '"foreign records": row(1,'],
    ["moved end accepted at once", '"end moved": row(ANSWERS,', '"end moved": row(1,'],
    ["not found accepted at once", '"not found": row(2,', '"not found": row(1,'],
    [
      "short list repeated at once",
      '"shorter snapshot": row(2, 20 * SECOND,',
      '"shorter snapshot": row(2, 0,',
    ],
    ["withdrawal accepted at once", "withdrawn: row(ANSWERS,", "withdrawn: row(1,"],
  ],
  "src/rule/snapshot.ts": [
    ["different short lists counted as equal", "Math.floor(Math.log2(listed))", "0"],
    [
      "empty list accepted after restart",
      "state.counts[part] ?? (isEmpty && stored.hadRows ? 1 : 0)",
      "state.counts[part] ?? 0",
    ],
    [
      "list of next period counts",
      "if (period.from > latestPresent(now)) return { changes: [], state };",
      "",
    ],
    [
      "list stands after its poll",
      "Math.min(floor(askedAt ?? ts) + cadence, at + floor(reach))",
      "at + floor(reach)",
    ],
    ["missed refresh covered", "ts > last.ts && ts - last.ts <= reach", "ts > last.ts"],
    ["refresh learned from one stale list", "MIN_PERIODS = 2", "MIN_PERIODS = 1"],
    ["short list accepted at once", "(part: string) => state.counts[part] ?? (isEmpty", "() => (isEmpty"],
    [
      "stale list stands for ever",
      "Math.min(floor(askedAt ?? ts) + cadence, at + floor(reach))",
      "floor(askedAt ?? ts) + cadence",
    ],
    [
      "unreadable list accepted",
      'if (readable.length < parts.length) return { problem: "unreadable", changes: [], state: after };',
      "",
    ],
  ],
  "src/service/pagination/request-page.ts": [
    [
      "twins of restart skipped",
      "return ceilToMillisecond(rowTs + 1)",
      "return floorToMillisecond(rowTs - 1)",
    ],
  ],
};
