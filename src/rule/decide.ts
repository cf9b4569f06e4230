import type { Micros } from "../model/time.ts";
import type { TimeRange } from "../model/time-range.ts";
import type { PageAnswer, PendingClaim, SeriesRules, SettledRange, StoredSeries } from "./answer.ts";
import {
  type AppliedTo,
  applyClaim,
  applyPending,
  changeRanges,
  joinTouched,
  type LedgerChange,
  reopen,
} from "./apply.ts";
import { type ConfirmationRules, type Confirmed, confirm, type Evidence } from "./confirm.ts";
import { claimNotFound, ignoreClaims, interpret, type PageAlarm, saysNothing } from "./interpret.ts";

/** What is known when an answer arrives; nothing of the answer is written yet. */
export interface Known {
  readonly stored: StoredSeries;
  readonly pending: readonly PendingClaim[];
  readonly rules: SeriesRules;
  readonly confirmation: ConfirmationRules;
  readonly now: Micros;
}

/** All that is written of an answer beside its rows: the changes in this order, claims to store, and stored ones to delete. */
export interface Decision extends Pick<Confirmed, "recorded" | "dropped"> {
  readonly changes: readonly LedgerChange[];
  /** What stands in the ledger where they are made. */
  readonly touched: readonly SettledRange[];
}

interface PageDoubts {
  /** What `findContradiction` says, or that the format is unknown. */
  readonly contradiction: PageAlarm | undefined;
  /** Whether a stored row of the range contradicts a stale page. */
  readonly hasConflict: (proven: TimeRange) => boolean;
}

/** What a page of a history changes. Its rows are stored in any case. */
export function decidePage(page: PageAnswer, known: Known, { contradiction, hasConflict }: PageDoubts) {
  const { stored, rules } = known;
  const { isStale, timestamps } = page;
  // A stale page neither repeats nor disproves a claim.
  const pending = isStale || contradiction ? [] : known.pending;
  const said = contradiction
    ? ignoreClaims(page, stored, contradiction)
    : interpret(page, stored, pending, rules);
  const staleProof = isStale ? said.proven : undefined;
  const alarm: PageAlarm | undefined =
    contradiction ?? (staleProof && hasConflict(staleProof) ? "older_than_stored" : undefined);
  // What a stale page has no records of, it does not prove.
  const isMute = staleProof !== undefined && said.claims.length === 0;
  const { claims, proven, isComplete, endsAt, bound } = alarm || isMute ? saysNothing : said;
  const shown = { claims, shown: proven, oldest: timestamps.at(-1) };
  return {
    ...decide(shown, { ...known, pending }, reopen([...said.young, ...said.reopened])),
    proven,
    isComplete,
    endsAt,
    bound: said.bound,
    /** The service has not published the range up to the end of the gap. */
    isUnpublished: bound.isUnpublished,
    /** The page has records where the ledger said that there are none, or nothing older: that range is open again. */
    hasReopened: said.reopened.length > 0,
    alarm,
  };
}

/** What an answer changes that the index does not exist. */
export function decideNotFound(range: TimeRange, known: Known): Decision {
  const claim = claimNotFound(range, known.stored, known.rules);
  if (claim.range.from >= claim.range.to) return { changes: [], touched: [], recorded: [], dropped: [] };
  return decide({ claims: [claim], shown: undefined, oldest: undefined }, known);
}

/** Each claim is applied to the ledger that `before` and the claims before it leave. It withdraws no rows of others, nor of the answer. */
function decide(
  evidence: Pick<Evidence, "claims" | "shown" | "oldest">,
  { stored, pending, rules, confirmation, now }: Known,
  before: readonly LedgerChange[] = [],
): Decision {
  const { windowStart } = rules;
  const { accepted, recorded, dropped } = confirm({ ...evidence, windowStart, now }, pending, confirmation);
  const unconfirmed = recorded.filter(({ acceptedAt }) => acceptedAt === null);
  const changes = [...before, ...unconfirmed.flatMap(applyPending)];
  const after: AppliedTo = {
    settledRanges: (range) => changes.reduce(changeRanges, stored.settledRanges(range)),
    rowsBeside: (range, timestamps) => stored.rowsBeside(range, timestamps),
  };
  for (const claim of accepted) changes.push(...applyClaim(claim, after));
  const touched = joinTouched(changes, (range) => stored.settledRanges(range));
  return { changes, touched, recorded, dropped };
}
