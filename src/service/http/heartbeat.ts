import { Failure, failureCode } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Log } from "../../runtime/log.ts";
import { singleFlight } from "../../runtime/timeouts.ts";
import { ANSWER_TIMEOUT_MS } from "../limits.ts";
import { ServerClock } from "./server-clock.ts";
import { createTransport } from "./transport.ts";

/**
 * Pings an external dead man's switch, which raises an alarm when the pings stop. A failure is logged once until the
 * next success. The logs name only the host, because anyone who knows the full URL can silence the alarm.
 */
export function createHeartbeat(address: string, { clock, log }: { clock: Clock; log: Log }) {
  const { origin, host, pathname, search } = new URL(address);
  // A server clock of its own: the time of this host must not affect the sync.
  const transport = createTransport({ clock, server: new ServerClock(clock) });
  let isFailing = false;

  const sendOnce = singleFlight(async () => {
    const { status } = await transport.send({
      method: "GET",
      origin,
      path: pathname + search,
      headers: {},
      timeoutMs: ANSWER_TIMEOUT_MS,
    });
    if (status >= 200 && status < 300) return;
    throw new Failure("the heartbeat endpoint did not answer with a 2xx status", { code: `http_${status}` });
  });

  return {
    /** Sends one GET in the background, unless the previous one is in flight. */
    send(): void {
      sendOnce().then(
        () => {
          if (isFailing) log.info({ host }, "heartbeat recovered");
          isFailing = false;
        },
        (error: unknown) => {
          if (!isFailing) log.warn({ host, code: failureCode(error) }, "heartbeat failed");
          isFailing = true;
        },
      );
    },
    close: () => transport.close(),
  };
}
