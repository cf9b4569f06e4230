import { expect, it } from "vitest";
import { MAX_SILENCE_MS } from "../../../src/service/limits.ts";
import { createSilenceTimeout } from "../../../src/sync/context/context.ts";
import { ManualClock } from "../../support/manual-clock.ts";

// Times whose sum is rounded: so long after the last success, the timeout seemed to be over and not over, for ever.
it.each([
  [0.5884839939942061, 812_796],
  [0.14689156935188885, 329_681],
  [0.25, 1_000.5],
])(
  "ends a quarter of an hour after the last success: started at %s, answered %s ms later",
  async (start, answered) => {
    const clock = new ManualClock();
    clock.jump(start);
    const silence = createSilenceTimeout(clock);
    clock.jump(answered);
    silence.onEvent({ kind: "request", endpoint: "/asset", status: 200 } as never);
    await clock.advance(MAX_SILENCE_MS - 1);
    expect(silence.signal.aborted).toBe(false);
    await clock.advance(2);
    expect(silence.signal.aborted).toBe(true);
  },
);
