import { parentPort } from "node:worker_threads";
import { scanPage, summarizePage } from "../decode/scanned-page.ts";
import { columnMemory, type ScanCall, type ScanReply, transferListOf } from "./messages.ts";

// The entry of the scan thread, which decompresses and scans pages of ticks beside the ingest thread.
const port = parentPort;
if (port === null) throw new Error("scan-worker runs as a worker thread only");

port.on("message", ({ id, options, body }: ScanCall) => {
  const page = scanOrLeave({ options, body });
  if (page) {
    const reply: ScanReply = { id, page, summary: summarizePage(page) };
    port.postMessage(reply, columnMemory(page));
  } else port.postMessage({ id, page, body } satisfies ScanReply, transferListOf([body]));
});

/** Frees the memory of a scanned body at once: to the garbage collector, a hundred of them are a hundred small objects. */
function scanOrLeave({ options, body }: Pick<ScanCall, "options" | "body">): ScanReply["page"] {
  try {
    const { page, plain } = scanPage(options, body);
    if (plain.buffer !== body.bytes.buffer) (plain.buffer as ArrayBuffer).transfer(0);
    if (page) body.bytes.buffer.transfer(0);
    return page;
  } catch {
    // The ingest thread reports why the body cannot be read.
    return undefined;
  }
}
