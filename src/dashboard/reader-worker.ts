import { systemClock } from "../runtime/clock.ts";
import { Channel, lowerPriority } from "../runtime/thread-channel.ts";
import { PageQueries } from "./page-queries.ts";
import type { ReaderCalls } from "./reader-thread.ts";

/** Hardly less than ingest gets: with much less, a page waits for most of a second while ingest keeps all cores busy. */
const NICENESS = 2;

lowerPriority(NICENESS);
const queries = new PageQueries(systemClock);
new Channel<object, ReaderCalls>({
  bugCode: "not_readable",
  handlers: {
    async query(query, answer) {
      const value = await queries.run(query);
      if (value === undefined) return answer(value);
      const bytes = new TextEncoder().encode(`${JSON.stringify(value)}\n`);
      answer(bytes, [bytes.buffer]);
    },
  },
});
