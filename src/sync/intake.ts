import type { PageQuestion } from "../ingest/held-pages.ts";
import type { Ingest } from "../ingest/ingest-thread.ts";
import { MICROS_PER_MS, type Micros } from "../model/instant.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { Random } from "../runtime/random.ts";
import { priority } from "../service/endpoints.ts";
import { followList, type List } from "../service/list-walk.ts";
import type { ServiceClient } from "../service/service-client.ts";
import { persistently } from "./persistence.ts";
import type { Tally } from "./tally.ts";
import { judge } from "./trouble.ts";

/** The way from the service into the warehouse, for as long as the signal stands. */
export interface Intake {
  readonly client: ServiceClient;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly log: Log;
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

/**
 * One small question, so that the service's time is known, where nobody has asked it anything yet: this machine's clock
 * may be set to anything, and what is counted by it would claim the future or write off the present. Whatever the
 * service answers, it dates its answer.
 */
export async function learnServiceTime(intake: Intake, random: Random): Promise<void> {
  const { client, clock, signal, tally } = intake;
  if (client.serverNow() !== undefined) return;
  const waiting = { clock, random, signal, answers: () => tally.answers };
  const ask = { endpoint: "/asset", query: { symbol: "BTC" }, priority: priority.head, signal };
  try {
    await persistently(waiting, () => client.request(ask, async () => {}));
  } catch (error) {
    if (judge(error, tally.answers) === "stop" || client.serverNow() === undefined) throw error;
  }
}

/** The present by the service's clock; by ours only before its first answer. */
export function serviceNow({ client, clock }: Pick<Intake, "client" | "clock">): Micros {
  return Math.floor((client.serverNow() ?? clock.now()) * MICROS_PER_MS);
}

/**
 * This machine's clock with the service's wall time, for the ingest thread: what is too young or too far ahead to be
 * believed must not depend on how this machine's clock is set.
 */
export function serviceClock(client: Pick<ServiceClient, "serverNow">, clock: Clock): Clock {
  return {
    now: () => client.serverNow() ?? clock.now(),
    monotonic: () => clock.monotonic(),
    boottime: () => clock.boottime(),
    sleep: (ms, signal) => clock.sleep(ms, signal),
    after: (ms, callback) => clock.after(ms, callback),
    hold: () => clock.hold(),
    waive: () => clock.waive(),
  };
}

/** The pages of a list, each read in the ingest thread and held there. */
export function heldPages(intake: Intake, list: List, question: PageQuestion) {
  const { client, ingest, signal } = intake;
  return followList(client, { ...list, signal }, (body) => ingest.call("readPage", question, [body], signal));
}

/** A request for people, without secrets: what `rejects` names as its source. */
export function requestText(endpoint: string, filters: Readonly<Record<string, unknown>> = {}): string {
  const pairs = Object.entries(filters).map(([name, value]) => `${name}=${String(value)}`);
  return `GET ${endpoint}${pairs.length > 0 ? `?${pairs.join("&")}` : ""}`;
}
