import { expect, it, onTestFinished } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import type { Log } from "../../../src/runtime/log.ts";
import { ShareThread } from "../../../src/share/thread/share-thread.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { openTestWarehouse } from "../../support/warehouse/open-warehouse.ts";

const log: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

it("names a password that cannot be read as the reason, and goes on asking for it", async () => {
  const failures: string[] = [];
  const thread = new ShareThread({
    warehouse: openTestWarehouse().path,
    url: "postgres://mds@127.0.0.1:1/market",
    role: "alone",
    name: "test",
    leaseSeconds: 15,
    clock: systemClock,
    log,
    readPassword() {
      throw new Failure("the file cannot be read", { code: "secret_missing", remedy: "check it" });
    },
    onFailure: (code) => void failures.push(code),
  });
  await thread.start();
  onTestFinished(() => thread.close());
  await waitUntil(() => failures.length >= 2);
  expect(new Set(failures)).toEqual(new Set(["secret_missing"]));
  expect(thread.status()).toMatchObject({
    state: "failing",
    last_error: "the file cannot be read: check it",
  });
});
