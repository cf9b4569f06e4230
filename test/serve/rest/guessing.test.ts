import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { hashSecret } from "../../../src/serve/client-secrets.ts";
import { ServeTokens } from "../../../src/serve/serve-tokens.ts";
import { ManualClock } from "../../support/manual-clock.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("guessing at secrets", () => {
  it("J4: at one client or from one address delays nobody else", async () => {
    const folder = temporaryFolder();
    const clients = await Promise.all(
      ["a", "b"].map(async (id) => {
        const secretHashFile = join(folder, `${id}.hash`);
        writeFileSync(secretHashFile, await hashSecret(`secret of ${id}`, { N: 16, r: 1, p: 1 }));
        return { id, secretHashFile, scopes: ["read:ohlcv"] };
      }),
    );
    const tokens = new ServeTokens({ clients, clock: new ManualClock(), findAudience: () => "rest" });
    const order: string[] = [];
    const ask = async (address: string, client_id: string, client_secret: string) => {
      const body = { grant_type: "client_credentials", client_id, client_secret, audience: "x" };
      const request = { contentType: "application/json", body: JSON.stringify(body), host: "x", address };
      const status = await tokens.issue(request).then(
        () => 200,
        (error: { status: number }) => error.status,
      );
      order.push(`${address} ${client_id} ${status}`);
    };
    const guesses = Array.from({ length: 40 }, (_, at) =>
      ask("192.0.2.1", at % 2 === 0 ? "a" : `unknown ${at}`, "guess"),
    );
    const honest = [
      ask("192.0.2.2", "a", "secret of a"),
      ask("192.0.2.2", "b", "secret of b"),
      ask("192.0.2.1", "b", "secret of b"),
    ];
    await Promise.all([...guesses, ...honest]);
    const right = order.filter((line) => line.endsWith(" 200"));
    expect(right).toHaveLength(3);
    expect(order.filter((line) => line.endsWith(" 429")).length).toBeGreaterThan(20);
    // At most the guesses that were being checked already, and one more of their address, come first.
    const guessed = order.filter((line) => line.endsWith(" 401") || line.endsWith(" 200"));
    expect(guessed.indexOf(right.at(-1) ?? "")).toBeLessThan(10);
  });
});
