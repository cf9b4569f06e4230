import type { MessagePort } from "node:worker_threads";
import { SecretRedactor } from "../../model/secret-redactor.ts";
import { Channel, type ThreadPort } from "../../runtime/thread.ts";
import { readPage } from "../decode/read-page.ts";
import type { PageMessage, ScanCalls } from "./messages.ts";

/** Decodes the pages that arrive at the port, and sends each to the ingest thread before its summary to the main thread. */
export function serveScans(pages: MessagePort, port?: ThreadPort): void {
  const redactor = new SecretRedactor("data");
  new Channel<object, ScanCalls>({
    port,
    bugCode: "ingest_bug",
    handlers: {
      scan({ reader, number, options, body, secrets }, answer) {
        if (secrets) redactor.setSecrets(secrets);
        const { page, summary } = readPage(options, body, redactor);
        body.bytes.buffer.transfer(0);
        const message: PageMessage = { reader, number, page };
        // The columns share one piece of memory.
        pages.postMessage(message, page.columns ? [page.columns.ts.buffer] : []);
        answer(summary);
      },
    },
  });
}
