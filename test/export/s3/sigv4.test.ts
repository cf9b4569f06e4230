import { describe, expect, it } from "vitest";
import { encodePath, encodeQuery, sha256, signRequest } from "../../../src/export/s3/sigv4.ts";
import { verifySignature } from "../../support/export/s3-server.ts";

/** The examples of Amazon's documentation of Signature Version 4 for S3. */
const keys = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const examples = [
  {
    method: "GET",
    path: "/test.txt",
    query: {},
    headers: { range: "bytes=0-9" },
    body: "",
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  {
    method: "PUT",
    path: "/test$file.text",
    query: {},
    headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    body: "Welcome to Amazon S3.",
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  {
    method: "GET",
    path: "/",
    query: { lifecycle: "" },
    headers: {},
    body: "",
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
  {
    method: "GET",
    path: "/",
    query: { "max-keys": "2", prefix: "J" },
    headers: {},
    body: "",
    signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
];

const sign = ({ method, path, query, headers, body }: (typeof examples)[number]) =>
  signRequest({
    method,
    host: "examplebucket.s3.amazonaws.com",
    path: encodePath(path),
    query: query as Record<string, string>,
    headers: headers as Record<string, string>,
    payloadSha256: sha256(body),
    region: "us-east-1",
    credentials: keys,
    now: Date.UTC(2013, 4, 24),
  });

describe("signRequest", () => {
  it.each(examples)(
    "signs $method $path like Amazon's example, and the server of the tests agrees",
    (example) => {
      const headers = sign(example);
      expect(headers.authorization).toContain(`Signature=${example.signature}`);
      const search = encodeQuery(example.query as Record<string, string>);
      const request = {
        method: example.method,
        target: `${encodePath(example.path)}?${search}`,
        body: example.body,
      };
      expect(verifySignature({ ...request, headers }, keys)).toBe(undefined);
      const altered = { ...headers, "x-amz-date": "20130524T000001Z" };
      expect(verifySignature({ ...request, headers: altered }, keys)).toBe("SignatureDoesNotMatch");
      expect(verifySignature({ ...request, body: "other", headers }, keys)).toBe("XAmzContentSHA256Mismatch");
      expect(verifySignature({ ...request, headers }, { ...keys, secretAccessKey: "other" })).toBe(
        "SignatureDoesNotMatch",
      );
    },
  );

  it("signs the session token", () => {
    const [example] = examples as [(typeof examples)[number]];
    const credentials = { ...keys, sessionToken: "token" };
    const options = { host: "h", region: "r", now: 0, payloadSha256: sha256("") };
    const headers = signRequest({ ...example, ...options, query: {}, headers: {}, credentials });
    expect(headers["x-amz-security-token"]).toBe("token");
    expect(headers.authorization).toContain("x-amz-security-token");
  });
});
