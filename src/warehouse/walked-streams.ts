import { type Stream, type WalkedStream, walkedStreams } from "../model/series.ts";

/** True where a ledger line is a series of rows; the others keep one line per subscription. */
export function isWalked(stream: Stream): stream is WalkedStream {
  return (walkedStreams as readonly Stream[]).includes(stream);
}
