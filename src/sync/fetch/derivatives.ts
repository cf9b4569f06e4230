import type { ListSeen } from "../../ingest/commit/snapshot.ts";
import { Failure } from "../../model/failure.ts";
import { type DerivativeType, streamTable } from "../../model/streams.ts";
import { dayOf, MICROS_PER_SECOND } from "../../model/time.ts";
import { priority } from "../../service/http/request.ts";
import { heldPages, type Intake, requestText, serviceNow } from "../context/context.ts";
import { observeLists, PagesSeen } from "./record-snapshot.ts";

const { endpoint: contractEndpoint } = streamTable.derivative_contracts;
const { endpoint: tickerEndpoint } = streamTable.derivative_ticks;

/**
 * Refreshes the contracts of one type on one exchange, expired ones too; says whether there are any. Only seven of two
 * hundred exchanges have some: the others are asked once a UTC day, which the warehouse remembers.
 */
export async function refreshContracts(
  intake: Intake,
  exchangeId: string,
  derivativeType: DerivativeType,
): Promise<boolean> {
  const { ingest, tally, signal } = intake;
  const denial = { exchangeId, derivativeType, day: dayOf(serviceNow(intake)) };
  if (await ingest.call("hasNoContracts", denial, [], signal)) return false;
  const filters = { exchangeId, include: "ALL" };
  const list = {
    endpoint: contractEndpoint,
    params: { derivativeType },
    filters,
    priority: priority.head,
    mayBeMissing: true,
  };
  const stream = "derivative_contracts";
  const held: number[] = [];
  let rows = 0;
  try {
    for await (const { page } of heldPages(intake, list, { stream, derivativeType })) {
      held.push(page.held);
      rows += page.rows;
    }
  } catch (error) {
    // How the service says of an exchange that it has no derivatives is not known.
    if (!(error instanceof Failure) || !["not_found", "rejected"].includes(error.code)) throw error;
    await ingest.call("commitNoContracts", denial, [], signal);
    return false;
  }
  const request = requestText(`/derivatives/contract/${derivativeType}`, filters);
  const lookup = { stream, derivativeType, exchangeId, held, request } as const;
  const commit = await ingest.call("commitLookup", lookup, [], signal);
  tally.listed(stream, commit);
  if (rows === 0) await ingest.call("commitNoContracts", denial, [], signal);
  return rows > 0;
}

/** Takes the tickers of the types that an exchange has; then it has been observed. */
export async function takeDerivativeTicks(
  intake: Intake,
  exchangeId: string,
  types: readonly DerivativeType[],
  every: number,
): Promise<void> {
  const { ingest, tally, signal } = intake;
  const stream = "derivative_ticks";
  const cadence = every * MICROS_PER_SECOND;
  const lists: ListSeen[] = [];
  for (const derivativeType of types) {
    const seen = new PagesSeen();
    const filters = { exchangeId };
    const list = { endpoint: tickerEndpoint, params: { derivativeType }, filters, priority: priority.head };
    for await (const { page } of heldPages(intake, list, { stream, derivativeType })) {
      const request = requestText(`/derivatives/ticker/${derivativeType}`, filters);
      const commit = await ingest.call("commitSnapshot", { stream, held: page.held, request }, [], signal);
      tally.wrote(stream, commit.written, commit);
      seen.add(commit);
    }
    lists.push(seen.list(derivativeType));
  }
  await observeLists(intake, { stream, exchangeId, cadence, lists });
}
