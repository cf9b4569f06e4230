import { Channel, type ThreadPort } from "../../runtime/thread-channel.ts";
import { scanPage, summarizePage } from "../decode/scanned-page.ts";
import { columnMemory, type ScanCall, type ScanCalls, type ScanReply, transferListOf } from "./messages.ts";

/** Decompresses and scans the pages of ticks that arrive at the port, beside the ingest thread. */
export function serveScans(port?: ThreadPort): void {
  new Channel<object, ScanCalls>({
    port,
    bugCode: "ingest_bug",
    handlers: {
      scan(call, answer) {
        const reply = runScan(call);
        answer(reply, reply.page ? columnMemory(reply.page) : transferListOf([reply.body]));
      },
    },
  });
}

/** Frees the memory of a scanned body at once: to the garbage collector, a hundred of them are a hundred small objects. */
function runScan({ options, body }: ScanCall): ScanReply {
  try {
    const { page, plain } = scanPage(options, body);
    if (plain.buffer !== body.bytes.buffer) (plain.buffer as ArrayBuffer).transfer(0);
    if (!page) return { page, body };
    body.bytes.buffer.transfer(0);
    return { page, summary: summarizePage(page) };
  } catch {
    // The ingest thread reports why the body cannot be read.
    return { page: undefined, body };
  }
}
