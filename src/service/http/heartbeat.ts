import { Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { ServerClock } from "./server-clock.ts";
import { createTransport } from "./transport.ts";

export interface Heartbeat {
  /** Asks the address once, in the background. */
  beat(): void;
  close(): Promise<void>;
}

const DEADLINE_MS = 10_000;

/**
 * Tells somebody else that the daemon is well: their alarm is its silence. Never in the way of anything: a beat that
 * fails is one line in the log, until one succeeds again. Of the address only the host is ever named, since whoever
 * knows the rest can keep the alarm silent.
 */
export function createHeartbeat(address: string, { clock, log }: { clock: Clock; log: Log }): Heartbeat {
  const { origin, host, pathname, search } = new URL(address);
  // Its own clock: what this host thinks of the time is none of the sync's business.
  const transport = createTransport({ clock, server: new ServerClock(clock) });
  let isUnderWay = false;
  let isFailing = false;

  async function ask(): Promise<void> {
    const { status } = await transport.send({
      method: "GET",
      origin,
      path: pathname + search,
      headers: {},
      deadlineMs: DEADLINE_MS,
    });
    if (status >= 200 && status < 300) return;
    throw new Failure("the heartbeat was not accepted", { family: "operator", code: `http_${status}` });
  }

  return {
    beat() {
      if (isUnderWay) return;
      isUnderWay = true;
      ask()
        .then(
          () => {
            if (isFailing) log.info({ host }, "the heartbeat is heard again");
            isFailing = false;
          },
          (error: unknown) => {
            const code = error instanceof Failure ? error.code : "unexpected";
            if (!isFailing) log.warn({ host, code }, "the heartbeat is not heard");
            isFailing = true;
          },
        )
        .finally(() => {
          isUnderWay = false;
        });
    },
    close: () => transport.close(),
  };
}
