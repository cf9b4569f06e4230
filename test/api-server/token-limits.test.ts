import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Access, Tokens } from "../../src/api-server/tokens.ts";
import { createClientAccess, hashSecret } from "../../src/serve/client-access.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function request(tokens: Tokens, client_id: string, client_secret: string, address = "192.0.2.2") {
  const body = { grant_type: "client_credentials", client_id, client_secret, audience: "x" };
  const asked = { contentType: "application/json", body: JSON.stringify(body), address };
  const verified = await tokens.verify({ ...asked, findAudience: () => "rest" });
  return String(JSON.parse(tokens.issue(verified, 0)).access_token);
}

describe("tokens", () => {
  it("J4: of one client are not lost because another requests many", async () => {
    let count = 0;
    const access: Access = {
      ...{ isOpen: false, isSecretOf: () => true, createToken: () => `token ${count++}` },
      grantOf: () => ({ scopes: ["read:ohlcv"], seconds: 60 }),
    };
    const tokens = new Tokens(access);
    const token = await request(tokens, "a", "secret");
    const first = await request(tokens, "b", "secret");
    for (let at = 0; at < 1_100; at++) await request(tokens, "b", "secret");
    expect(tokens.identify(token, "rest", 59_999).clientId).toBe("a");
    expect(() => tokens.identify(first, "rest", 0)).toThrow("No valid access token");
    expect(() => tokens.identify(token, "rest", 60_000)).toThrow("No valid access token");
  });
});

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
    const tokens = new Tokens(createClientAccess(clients));
    const order: string[] = [];
    const ask = async (address: string, clientId: string, secret: string) => {
      const status = await request(tokens, clientId, secret, address).then(
        () => 200,
        (error: { status: number }) => error.status,
      );
      order.push(`${address} ${clientId} ${status}`);
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
