import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "./temporary-folder.ts";

export interface FullPipe {
  /** Opens another, blocking write end; the caller must close it. */
  open(): number;
  /** Reads everything that is in the pipe. */
  read(): string;
}

/** Creates a pipe that stays full until the test reads it. */
export function createFullPipe(): FullPipe {
  const file = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [file]);
  const readWriteFd = openSync(file, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(readWriteFd));
  const filler = Buffer.alloc(4096, ".");
  repeatUntilBlocked(() => writeSync(readWriteFd, filler));
  return {
    open: () => openSync(file, "w"),
    read() {
      const chunk = Buffer.alloc(65_536);
      let text = "";
      repeatUntilBlocked(() => {
        text += chunk.toString("utf8", 0, readSync(readWriteFd, chunk));
      });
      return text;
    },
  };
}

function repeatUntilBlocked(step: () => void): void {
  try {
    for (;;) step();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
}
