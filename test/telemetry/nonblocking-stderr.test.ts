import { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { NonblockingStderr } from "../../src/telemetry/nonblocking-stderr.ts";
import { createFullPipe } from "../support/full-pipe.ts";
import { ManualClock } from "../support/manual-clock.ts";

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

function openStderr(fd: number, maxBufferedChars: number): NonblockingStderr {
  // Node itself opens a piped stderr like this.
  const stream = new Socket({ fd, readable: false, writable: true });
  onTestFinished(() => void stream.destroy());
  return new NonblockingStderr(stream, maxBufferedChars);
}

describe("stderr with a stuck reader", () => {
  it("buffers up to its limit, drops the rest, and reports the count once the reader continues", async () => {
    const pipe = createFullPipe();
    const stderr = openStderr(pipe.open(), 20_000);
    const line = (n: number) => `line ${n} ${"x".repeat(990)}\n`;
    for (let n = 0; n < 50; n++) stderr.write(line(n));
    const clock = new ManualClock();
    expect(await clock.runUntil(stderr.flush(clock, 500))).toBe(false);
    expect(clock.monotonic()).toBe(500);

    let read = "";
    for (let n = 0; n < 100 && !read.includes("dropped"); n++) {
      read += pipe.read();
      await nextTick();
    }
    stderr.write("next line\n");
    read += pipe.read();
    const lines = read.replace(/^\.+/, "").split("\n");
    const whole = lines.filter((each) => each.startsWith("line ")).length;
    expect(whole).toBeGreaterThan(15);
    expect(lines.slice(whole)).toEqual([
      expect.stringMatching(
        `^{"level":40,"time":"[^"]+","msg":"${50 - whole} lines dropped here: stderr was not read in time"}$`,
      ),
      "next line",
      "",
    ]);
    expect(await stderr.flush(clock, 500)).toBe(true);
  });
});
