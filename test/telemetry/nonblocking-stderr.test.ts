import { Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { BoundedTalk } from "../../src/telemetry/nonblocking-stderr.ts";
import { stuckPipe } from "../support/full-pipe.ts";
import { TurnedClock } from "../support/manual-clock.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));

function talkInto(fd: number, mostWaiting: number): BoundedTalk {
  // As Node itself opens a stderr that is a pipe.
  const stream = new Socket({ fd, readable: false, writable: true });
  onTestFinished(() => void stream.destroy());
  return new BoundedTalk(stream, mostWaiting);
}

describe("talk to a reader who does not read", () => {
  it("waits for him up to its bound, drops the rest, and tells how much once he reads again", async () => {
    const pipe = stuckPipe();
    const talk = talkInto(pipe.open(), 20_000);
    const line = (n: number) => `line ${n} ${"x".repeat(990)}\n`;
    for (let n = 0; n < 50; n++) talk.write(line(n));
    const clock = new TurnedClock();
    expect(await clock.runUntil(talk.flushed(clock, 500))).toBe(false);
    expect(clock.monotonic()).toBe(500);

    let read = "";
    for (let n = 0; n < 100 && !read.includes("dropped"); n++) {
      read += pipe.read();
      await turn();
    }
    talk.write("and on it goes\n");
    read += pipe.read();
    const lines = read.replace(/^\.+/, "").split("\n");
    const whole = lines.filter((each) => each.startsWith("line ")).length;
    expect(whole).toBeGreaterThan(15);
    expect(lines.slice(whole)).toEqual([
      `mds-sync: ${50 - whole} lines were dropped here: nobody read them in time`,
      "and on it goes",
      "",
    ]);
    expect(await talk.flushed(clock, 500)).toBe(true);
  });
});
