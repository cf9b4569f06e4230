import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../src/model/failure.ts";
import { createForwardingLog, type LogEntry } from "../../src/runtime/log.ts";
import { Channel, Thread, type ThreadPort } from "../../src/runtime/thread.ts";
import { InProcessWorker } from "../support/ingest/in-process-ingest.ts";
import { ManualClock } from "../support/manual-clock.ts";

interface EchoCalls {
  double(bytes: Uint8Array<ArrayBuffer>): Uint8Array;
  greet(greeting: string): string;
  fail(error: Error): void;
  hang(args: undefined): void;
}

interface EchoHostCalls {
  readName(args: undefined): string;
  greeted(name: string): void;
}

/** What runs in the thread. */
function serveEcho(port: ThreadPort): void {
  const host = new Channel<EchoHostCalls, EchoCalls>({
    port,
    bugCode: "share_bug",
    handlers: {
      double(bytes, answer) {
        for (const [i, byte] of bytes.entries()) bytes[i] = byte * 2;
        answer(bytes, [bytes.buffer]);
      },
      async greet(greeting, answer) {
        const name = await host.call("readName", undefined);
        host.send("greeted", name);
        host.log.info({ name }, "greeted");
        answer(`${greeting}, ${name}`);
      },
      fail(error) {
        throw error.message === "retry"
          ? new Failure("later", { code: "not_opened", remedy: "wait" })
          : error;
      },
      hang() {},
    },
  });
}

function createThread({
  isRefused = () => false,
  onStart = async () => {},
}: {
  isRefused?: () => boolean;
  onStart?: () => Promise<void>;
} = {}) {
  const clock = new ManualClock();
  const logged: LogEntry[] = [];
  const greeted: string[] = [];
  const ends: string[] = [];
  const workers: InProcessWorker[] = [];
  const thread = new Thread<EchoCalls, EchoHostCalls>({
    name: "echo",
    file: "echo-worker.ts",
    resourceLimits: {},
    clock,
    log: createForwardingLog((entry) => logged.push(entry)),
    bugCode: "share_bug",
    handlers: { readName: (_, answer) => answer("Ada"), greeted: (name) => void greeted.push(name) },
    endFailure: (reason) => new Failure(reason, { code: "not_readable" }),
    onStart,
    onEnd: (reason) => void ends.push(reason),
    restartDelayMs: 5_000,
    startWorker() {
      if (isRefused()) throw new Error("EAGAIN");
      const worker = new InProcessWorker(serveEcho);
      workers.push(worker);
      return worker;
    },
  });
  onTestFinished(() => thread.close());
  return { thread, clock, logged, greeted, ends, workers };
}

describe("a call to a thread", () => {
  it("rejects with the failure of the thread; any other error is a bug with its stack", async () => {
    const { thread } = createThread();
    await thread.start();
    await expect(thread.call("fail", new Error("retry"))).rejects.toMatchObject({
      code: "not_opened",
      summary: "later: wait",
    });
    const bug = await thread.call("fail", new TypeError("broken")).catch((error: unknown) => error);
    expect(bug).toMatchObject({ code: "share_bug", message: "broken" });
    expect((bug as Failure).stack).toContain("thread.test.ts");
    expect(thread.answerCount).toBe(2);
  });

  it("counts as work of the clock, and shows its age, until it is answered", async () => {
    const { thread, clock, workers } = createThread();
    await thread.start();
    const hanging = thread.call("hang", undefined);
    await clock.advance(2_000);
    expect([thread.oldestCallAgeMs, clock.busyCount]).toEqual([2_000, 1]);
    await Promise.all([
      workers[0]?.terminate(),
      expect(hanging).rejects.toThrow("the echo thread has ended"),
    ]);
    expect([thread.oldestCallAgeMs, clock.busyCount]).toEqual([0, 0]);
  });
});

describe("a thread that ends unexpectedly", () => {
  it("rejects the calls without an answer with the reason, and starts again after the delay", async () => {
    const { thread, clock, logged, ends, workers } = createThread();
    await thread.start();
    const reason = "the echo thread failed: out of memory";
    const rejected = expect(thread.call("hang", undefined)).rejects.toMatchObject({
      code: "not_readable",
      message: reason,
    });
    workers[0]?.emit("error", new Error("out of memory"));
    await Promise.all([workers[0]?.terminate(), rejected]);
    await expect(thread.call("hang", undefined)).rejects.toThrow(reason);
    expect(ends).toEqual([reason]);
    expect(logged).toEqual([
      { level: "error", fields: { thread: "echo", reason }, message: "thread ended unexpectedly" },
    ]);
    await clock.advance(4_999);
    expect(thread.isRunning).toBe(false);
    await clock.advance(1);
    expect(await thread.call("greet", "hello again")).toBe("hello again, Ada");
  });

  it("retries a restart that fails: first the system refuses a thread, then its first call fails", async () => {
    let starts = 0;
    const { thread, clock, logged, workers } = createThread({
      isRefused: () => ++starts === 2,
      onStart: async () => {
        if (starts === 3) throw new Failure("the port is taken", { code: "http_port" });
      },
    });
    await thread.start();
    await workers[0]?.terminate();
    await clock.advance(10_000);
    expect([thread.isRunning, workers.length]).toEqual([false, 2]);
    expect(logged.filter(({ message }) => message === "thread cannot restart")).toHaveLength(2);
    await clock.advance(5_000);
    expect([thread.isRunning, workers.length]).toEqual([true, 3]);
  });
});

describe("a start", () => {
  it("that the system refuses rejects with a remedy, and may be repeated", async () => {
    let isRefused = true;
    const { thread } = createThread({ isRefused: () => isRefused });
    await expect(thread.start()).rejects.toMatchObject({
      code: "no_thread",
      summary: expect.stringContaining("raise the limit"),
    });
    isRefused = false;
    await thread.start();
    expect(thread.isRunning).toBe(true);
  });

  it("whose first call fails ends the thread, which does not start again", async () => {
    const failure = new Failure("the port is taken", { code: "http_port" });
    const { thread, clock, workers } = createThread({ onStart: () => Promise.reject(failure) });
    await expect(thread.start()).rejects.toBe(failure);
    await clock.advance(60_000);
    expect([thread.isRunning, workers.length]).toEqual([false, 1]);
  });
});

describe("closing a thread", () => {
  it("ends a stuck thread after the given time", async () => {
    const { thread, clock } = createThread();
    await thread.start();
    const last = thread.call("hang", undefined);
    const ended = Promise.all([
      thread.close(last, 1_000),
      expect(last).rejects.toThrow("the echo thread is closed"),
    ]);
    await clock.advance(999);
    expect(thread.isRunning).toBe(true);
    await clock.advance(1);
    await ended;
  });

  it("cancels a restart", async () => {
    const { thread, clock, workers } = createThread();
    await thread.start();
    await workers[0]?.terminate();
    await thread.close();
    await clock.advance(60_000);
    expect(workers).toHaveLength(1);
  });
});
