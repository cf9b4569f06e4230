import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { S3Client } from "../../../src/export/s3/s3-client.ts";
import { readS3Target } from "../../../src/export/s3/s3-target.ts";
import { systemClock } from "../../../src/runtime/clock.ts";
import { S3Server, testKeys } from "../../support/export/s3-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

async function openBucket(url = "s3://lake", more: NodeJS.ProcessEnv = {}) {
  const server = await new S3Server().start();
  onTestFinished(() => server.stop());
  const clock = { ...systemClock, sleep: async () => {} };
  const client = new S3Client(readS3Target(url, { ...server.env, ...more }), { clock });
  onTestFinished(() => client.close());
  return { server, client };
}

describe("S3Client", () => {
  it("signs every key and prefix, and the session token", async () => {
    const { server, client } = await openBucket("s3://lake/a dir", { AWS_SESSION_TOKEN: "token" });
    for (const key of ["month=2026-01/part.parquet", "a b+c%2B(1)!'*~.txt", "é/ü&?#.json"]) {
      await client.write(key, key);
      expect(await client.read(key)).toBe(key);
      expect((await client.list(key)).map((object) => object.key)).toEqual([key]);
      expect(server.objects.has(`a dir/${key}`)).toBe(true);
    }
    expect(server.requests.every(({ headers }) => headers["x-amz-security-token"] === "token")).toBe(true);
  });

  it("F20: says in one line what is wrong and what to do, and not what the answer has of the key", async () => {
    const { server, client } = await openBucket();
    const [list, remove] = [() => client.list(""), () => client.remove("a")];
    const [write, create] = [() => client.write("a", "text"), () => client.create("a", "text")];
    const cases: [
      status: number,
      code: string,
      request: () => Promise<unknown>,
      exit: number,
      end: string,
    ][] = [
      [403, "AccessDenied", list, 2, "allow s3:ListBucket to these credentials"],
      [403, "AccessDenied", write, 2, "allow s3:PutObject to these credentials"],
      [403, "AccessDenied", remove, 2, "allow s3:DeleteObject to these credentials"],
      [403, "ExpiredToken", write, 3, "renew the credentials in AWS_SESSION_TOKEN"],
      [403, "RequestTimeTooSkewed", write, 2, "set the clock of this machine"],
      [403, "Strange", write, 3, "check the address, the region and the rights"],
      [301, "PermanentRedirect", write, 2, "set AWS_REGION to the region of the bucket"],
      [503, "SlowDown", write, 75, "try again later; the previous export is untouched"],
      [501, "NotPut", write, 2, "use another store, or export to a folder and copy it there"],
      [501, "NoCondition", create, 2, "use a store with conditional writes (If-None-Match)"],
    ];
    for (const [status, code, request, exit, end] of cases) {
      server.fault = () => ({ status, code });
      const failure = await request().catch((thrown: unknown) => thrown);
      expect(failure).toMatchObject({ exit, summary: expect.stringContaining(`(${code}): ${end}`) });
      expect(String(failure)).not.toContain(testKeys.accessKeyId);
    }
  });

  it("F20: sends a file as it is, again after a cut, and takes no page of a proxy for an answer", async () => {
    const { server, client } = await openBucket();
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "x".repeat(1_000_000));
    server.fault = () => (server.requests.length === 1 ? { cut: "during" } : undefined);
    await client.upload("file", file);
    expect(server.requests.length).toBe(2);
    expect(server.objects.get("file")?.bytes.equals(readFileSync(file))).toBe(true);
    server.fault = ({ key }) => (key === "" ? { status: 200, body: "<html>Sign in</html>" } : undefined);
    await expect(client.list("")).rejects.toThrow("(HTTP 200 without a result)");
  });
});
