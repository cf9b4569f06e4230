import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { errorCode, Failure } from "../../model/failure.ts";
import type { Clock } from "../../runtime/clock.ts";

const WRITE_CHUNK_CHARS = 64 * 1024;
/** Rows of a slow query are written at least this often. */
const MAX_WRITE_DELAY_MS = 200;

function* inChunks(pieces: Iterable<string>, clock: Pick<Clock, "monotonic">): Generator<string> {
  let pending = "";
  let writtenAt = clock.monotonic();
  for (const piece of pieces) {
    pending += piece;
    if (pending.length < WRITE_CHUNK_CHARS && clock.monotonic() - writtenAt < MAX_WRITE_DELAY_MS) continue;
    yield pending;
    pending = "";
    writtenAt = clock.monotonic();
  }
  yield pending;
}

/** Writes pieces of text, no faster than the reader takes them. */
export async function writePieces(
  stream: NodeJS.WritableStream,
  pieces: Iterable<string>,
  clock: Pick<Clock, "monotonic">,
): Promise<void> {
  for (const chunk of inChunks(pieces, clock)) if (!stream.write(chunk)) await once(stream, "drain");
}

/** Creates a file that appears under its name only when it is complete. */
export async function writeAtomically(
  file: string,
  write: (unfinished: string) => Promise<void>,
): Promise<void> {
  const unfinished = join(dirname(file), `.${basename(file)}.${process.pid}.unfinished`);
  try {
    await write(unfinished);
    renameSync(unfinished, file);
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw toWriteFailure(error, file);
  }
}

export async function writeTextFile(
  file: string,
  pieces: Iterable<string>,
  clock: Pick<Clock, "monotonic">,
): Promise<void> {
  // A stream that is stopped while it opens its file would create it after its removal.
  const handle = await open(file, "w");
  await pipeline(inChunks(pieces, clock), handle.createWriteStream());
}

const remedies: Readonly<Record<string, string>> = {
  ENOENT: "create its folder first",
  EACCES: "give this user the right to write there",
  EROFS: "choose a folder that can be written",
  EISDIR: "give the name of a file",
  ENOSPC: "free some space",
  EDQUOT: "free some space",
};

function toWriteFailure(error: unknown, file: string): unknown {
  const code = errorCode(error);
  if (error instanceof Failure && error.code === "stopped")
    return new Failure(`${error.message}: ${file} was not written`, { code: "stopped" });
  const remedy = remedies[code];
  if (error instanceof Failure || remedy === undefined) return error;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  return new Failure(`cannot write ${file} (${code})`, {
    code: isFull ? "disk_full" : "usage",
    remedy,
    cause: error,
  });
}
