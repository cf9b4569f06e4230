import { systemClock } from "../runtime/clock.ts";
import { Channel } from "../runtime/thread.ts";
import { PageQueries } from "./page-queries.ts";
import type { ReaderCalls } from "./reader-thread.ts";

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
