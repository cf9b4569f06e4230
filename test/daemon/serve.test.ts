import { describe, expect, it } from "vitest";
import { createDaemonHarness } from "../support/daemon/daemon-harness.ts";
import { smallSyncSettings } from "../support/sync/backfill-harness.ts";

describe("the daemon with a section `serve`", () => {
  it("serves its own warehouse on a port of its own, and stops with it", async () => {
    const harness = await createDaemonHarness({ settings: `${smallSyncSettings}\nserve: { port: 0 }\n` });
    const daemon = await harness.startFilled();
    const address = harness.logged.find(({ message }) => message === "serving the warehouse")?.fields.address;
    const answer = await fetch(`${address}/v3/index-ticker?indexType=LX`);
    const { content } = (await answer.json()) as { content: { indexType: string }[] };
    expect(content.map(({ indexType }) => indexType)).toEqual(["LX", "LX", "LX"]);
    await daemon.stop();
    await expect(fetch(`${address}/v3/asset`)).rejects.toThrow();
  });
});
