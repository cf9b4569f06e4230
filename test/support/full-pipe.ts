import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "./temporary-folder.ts";

export interface StuckPipe {
  /** Another end to write to, blocking as a shell's pipe is; the caller's to close. */
  open(): number;
  /** All that lies in the pipe, taken out. */
  read(): string;
}

/** A pipe that is full to the brim, and that nobody reads until the test does. */
export function stuckPipe(): StuckPipe {
  const file = join(temporaryFolder(), "pipe");
  execFileSync("mkfifo", [file]);
  const both = openSync(file, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(both));
  const filling = Buffer.alloc(4096, ".");
  untilItWouldWait(() => writeSync(both, filling));
  return {
    open: () => openSync(file, "w"),
    read() {
      const chunk = Buffer.alloc(65_536);
      let text = "";
      untilItWouldWait(() => {
        text += chunk.toString("utf8", 0, readSync(both, chunk));
      });
      return text;
    },
  };
}

function untilItWouldWait(step: () => void): void {
  try {
    for (;;) step();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
  }
}
