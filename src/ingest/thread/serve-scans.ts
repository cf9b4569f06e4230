import type { MessagePort } from "node:worker_threads";
import { scanPage, summarizePage } from "../decode/scanned-page.ts";
import { columnMemory, type ScanCall, type ScanReply, transferListOf } from "./messages.ts";

/** Decompresses and scans the pages of ticks that arrive at the port, beside the ingest thread. */
export function serveScans(port: MessagePort): void {
  port.on("message", (call: ScanCall) => {
    const reply = runScan(call);
    port.postMessage(reply, reply.page ? columnMemory(reply.page) : transferListOf([reply.body]));
  });
}

/** Frees the memory of a scanned body at once: to the garbage collector, a hundred of them are a hundred small objects. */
export function runScan({ id, options, body }: ScanCall): ScanReply {
  try {
    const { page, plain } = scanPage(options, body);
    if (plain.buffer !== body.bytes.buffer) (plain.buffer as ArrayBuffer).transfer(0);
    if (!page) return { id, page, body };
    body.bytes.buffer.transfer(0);
    return { id, page, summary: summarizePage(page) };
  } catch {
    // The ingest thread reports why the body cannot be read.
    return { id, page: undefined, body };
  }
}
