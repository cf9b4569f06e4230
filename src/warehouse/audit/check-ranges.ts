import { computeWindowStart, streamTable } from "../../model/streams.ts";
import { formatTimestamp, MICROS_PER_SECOND, type Micros } from "../../model/time.ts";
import type { SettledRange } from "../../rule/answer.ts";
import { AGED_OUT_REASON } from "../../rule/claim.ts";
import { type AuditContext, type AuditedKey, type AuditFinding, createFinding } from "./audited-key.ts";

/** Finds ranges that overlap, touch without being merged, or belong to a key without a name. */
export function checkOrder(audited: AuditedKey): AuditFinding[] {
  const { settled, targets, names } = audited;
  const findings: AuditFinding[] = [];
  const add = (range: { from: Micros; to: Micros }, text: string) =>
    void findings.push(createFinding(audited, "order", range, text));
  for (const [at, range] of settled.entries()) {
    const previous = settled[at - 1];
    if (names === null) add(range, "the dictionary of series lacks the key: no view shows the range");
    else if (previous && previous.to > range.from) add(range, `overlaps ${describe(previous)}`);
    else if (previous?.to === range.from && isSameClaim(previous, range))
      add(range, `continues ${describe(previous)}, but is not merged with it`);
    if (range.proof !== "empty" && (range.proof === "rows") !== (range.reason === null))
      add(range, `${range.proof} ${range.reason === null ? "without a" : "with the"} reason`);
  }
  for (const [at, target] of targets.entries()) {
    const previous = targets[at - 1];
    if (!previous || (previous.to !== null && previous.to <= target.from)) continue;
    const range = { from: target.from, to: target.to ?? target.from + 1 };
    findings.push(createFinding(audited, "targets", range, "two targets of the series overlap"));
  }
  return findings;
}

function isSameClaim(a: SettledRange, b: SettledRange): boolean {
  return a.proof === b.proof && a.reason === b.reason;
}

function describe({ proof, from, to }: SettledRange): string {
  return `${proof} from ${formatTimestamp(from)} to ${formatTimestamp(to)}`;
}

/** A settled range may end so much after the present: clocks differ, and are read in whole seconds. */
const CLOCK_TOLERANCE_MICROS = 10 * MICROS_PER_SECOND;

/** Finds ranges that were called lost although the service still had them, and what is settled beyond the present. */
export function checkClaims({ now }: AuditContext, audited: AuditedKey): AuditFinding[] {
  const { settled, targets, cadence } = audited;
  const { kind } = streamTable[audited.key.stream];
  const serviceWindow = targets.at(-1)?.serviceWindow ?? streamTable[audited.key.stream].window;
  const windowStart = serviceWindow === null ? undefined : computeWindowStart(serviceWindow, now);
  // A snapshot covers its whole period, which may not be over.
  const end = now + CLOCK_TOLERANCE_MICROS + (kind === "snapshot" ? cadence : 0);
  return settled.flatMap((range) => {
    const isAgedOut = range.proof === "lost" && range.reason === AGED_OUT_REASON;
    if (isAgedOut && range.to > (windowStart ?? Number.NEGATIVE_INFINITY)) {
      const why =
        windowStart === undefined ? "has no window" : `still served ${formatTimestamp(windowStart)}`;
      return [createFinding(audited, "lost_in_reach", range, `lost as aged out, but the service ${why}`)];
    }
    if (range.to <= end) return [];
    const text = `settled until ${formatTimestamp(range.to)}, which is in the future: a clock is or was wrong`;
    return [createFinding(audited, "future", { from: Math.max(range.from, now), to: range.to }, text)];
  });
}
