import { MICROS_PER_DAY } from "../../src/model/time.ts";
import { NOTHING_OLDER } from "../../src/rule/answer.ts";
import { isIn } from "./memory-ledger.ts";
import type { MemorySeries } from "./memory-series.ts";
import { planGaps, servedMoments } from "./steps.ts";
import { latenessAt, rulesAt, SETTLE_SLOTS, slotNow, type World, windowStartAt } from "./world.ts";

/**
 * A covered range must have every record that the service serves, now or later; a lost one has none that it serves. What the service may
 * have withdrawn is not covered.
 */
export function findFalseClaim(series: MemorySeries, world: World, now: number): string | undefined {
  if (series.complaint !== undefined) return series.complaint;
  const inDoubt = series.claims.find(
    ({ kind, acceptedAt, range }) =>
      kind === "withdrawn" &&
      acceptedAt === null &&
      series.ledger.some(({ from, to }) => from < range.to && to > range.from),
  );
  if (inDoubt) return `[${inDoubt.range.from}, ${inDoubt.range.to}) may be withdrawn, and is covered`;
  const windowStart = windowStartAt(world, now) ?? Number.NEGATIVE_INFINITY;
  const isLossy = losesRecords(world);
  for (const range of series.ledger) {
    const { from, to, proof, reason } = range;
    if (proof === "lost" && !isLossy)
      return `[${from}, ${to}) is lost (${reason}), though nothing leaves this service`;
    if (proof === "empty" && series.hasRows(range))
      return `[${from}, ${to}) is empty (${reason}), and has rows`;
    for (const { id, slot, ts, publishedAt, goneAt, finalAt, isAdded } of world.listed) {
      if (!isIn(range, ts) || isAdded || now >= goneAt || ts < windowStart) continue;
      // What the service loads, or finishes, later than the settle delay is found by the nightly comparison.
      const latest = Math.max(publishedAt, finalAt);
      if (latest > now && latest > slot + Math.max(SETTLE_SLOTS, latenessAt(world, slot)) && !world.isLagging)
        continue;
      const isStored = series.kept.includes(id) && series.rows.some((row) => row.ts === ts);
      if (!isStored)
        return `${id} is ${proof === "lost" ? "served and lost" : "covered and absent"} (${proof}, ${reason})`;
    }
  }
  return undefined;
}

export function describeUnsettled(series: MemorySeries, world: World, now: number): string | undefined {
  const { settleDelay, quietMargin } = rulesAt(world, now);
  const isLossy = losesRecords(world);
  const lost = series.ledger.find(({ proof }) => proof === "lost");
  if (lost && !isLossy) return `lost with an honest service: ${JSON.stringify(lost)}`;
  // Of a series without records, silence counts after a day, if no other series shows that REST does not lag.
  const isUnknown = world.isLagging === true && world.records.length === 0;
  const margin = isUnknown ? Math.max(quietMargin, MICROS_PER_DAY) : quietMargin;
  const end = slotNow(world, now) - settleDelay - margin;
  const from = windowStartAt(world, now) ?? 0;
  const open = from < end ? series.openIn({ from, to: end }) : [];
  if (open.length > 0)
    return `still open with an honest service: ${JSON.stringify([open, planGaps(series, world, now), series.claims])}`;
  const served = servedMoments(world, now).filter((ts) => ts < end);
  const stored = series.rows.map(({ ts }) => ts).filter((ts) => ts < end);
  // Rows that are older than everything that is served stay: the service has only dropped them.
  const oldest = Math.min(...served, Number.POSITIVE_INFINITY);
  if (`${served}` !== `${stored.filter((ts) => ts >= oldest)}`)
    return `rows differ with an honest service: served ${served}, stored ${stored}`;
  const absent = series.ledger.find(
    (range) => range.proof === "lost" && served.some((ts) => isIn(range, ts)),
  );
  if (absent) return `served and lost with an honest service: ${JSON.stringify(absent)}`;
  const pending = series.claims.filter(({ acceptedAt }) => acceptedAt === null);
  if (pending.length > 0 && world.window === undefined)
    return `still pending with an honest service: ${JSON.stringify(pending)}`;
  const older = series.ledger.filter(({ reason }) => reason === NOTHING_OLDER).at(-1)?.to ?? 0;
  if (!isLossy && older !== Math.min(...servedMoments(world, now), older))
    return `nothing older than ${older} with an honest service, which serves ${served}`;
  return undefined;
}

function losesRecords({ window, records }: World): boolean {
  return window !== undefined || records.some(({ goneAt }) => goneAt !== undefined);
}
