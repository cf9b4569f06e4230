import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { dirname, join } from "node:path";
import { listen } from "../listen.ts";

/* The part of S3 that an export uses, on a port. It shares no code with the client. */

export interface S3Fault {
  /** Answer with this status and error code. */
  readonly status?: number;
  readonly code?: string;
  /** Answer with this body instead, as a proxy does; `isDone`: after the request took effect. */
  readonly body?: string;
  readonly isDone?: boolean;
  /** Cut the connection: while the body arrives, or after the request took effect and before the answer. */
  readonly cut?: "during" | "after";
}

export interface S3Log {
  readonly method: string;
  readonly key: string;
  readonly query: string;
  readonly headers: IncomingMessage["headers"];
}

interface StoredObject {
  readonly bytes: Buffer;
  readonly modified: Date;
}

export const testKeys = {
  accessKeyId: "AKIATEST",
  secretAccessKey: "a-secret/of+the=tests",
  region: "eu-north-1",
};

export class S3Server {
  readonly bucket = "lake";
  readonly objects = new Map<string, StoredObject>();
  readonly requests: S3Log[] = [];
  /** Called for each request after its signature was checked. */
  fault: (request: S3Log) => S3Fault | undefined | Promise<S3Fault | undefined> = () => undefined;
  /** Called when a request has taken effect. */
  onDone: (request: S3Log) => void = () => {};
  /** As stores do that know no conditional writes. */
  ignoresConditions = false;
  /** An export has more files, a table's log has fewer entries. */
  pageSize = 25;
  now = () => new Date();
  readonly #server = createServer((request, response) => {
    this.#handle(request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });

  #port = 0;

  async start(): Promise<this> {
    this.#port = await listen(this.#server);
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  get env(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL: `http://127.0.0.1:${this.#port}`,
      AWS_ACCESS_KEY_ID: testKeys.accessKeyId,
      AWS_SECRET_ACCESS_KEY: testKeys.secretAccessKey,
      AWS_REGION: testKeys.region,
    };
  }

  /** Writes all objects below a prefix into a folder, so that they can be read as files. */
  copyTo(folder: string, prefix = ""): void {
    for (const [key, { bytes }] of this.objects) {
      if (!key.startsWith(prefix)) continue;
      const file = join(folder, key.slice(prefix.length));
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, bytes);
    }
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", "http://s3");
    const path = decodeURIComponent(url.pathname);
    const logged: S3Log = {
      method: request.method ?? "",
      key: path.slice(`/${this.bucket}/`.length),
      query: url.search.slice(1),
      headers: request.headers,
    };
    this.requests.push(logged);
    const fault = await this.fault(logged);
    if (fault?.cut === "during") {
      if (Number(request.headers["content-length"] ?? 0) === 0) request.socket.destroy();
      request.once("data", () => request.socket.destroy());
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const refuse = (status: number, code: string) => {
      response.statusCode = status;
      const echo = `<AWSAccessKeyId>${testKeys.accessKeyId}</AWSAccessKeyId>`;
      response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message>${echo}</Error>`);
    };
    const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)]);
    const signed = { method: logged.method, target: request.url ?? "", body };
    const wrong = verifySignature({ ...signed, headers: Object.fromEntries(headers) });
    if (wrong) return refuse(403, wrong);
    if (!path.startsWith(`/${this.bucket}/`) && path !== `/${this.bucket}`)
      return refuse(404, "NoSuchBucket");
    const answerFault = ({ status = 200, code = "InternalError", body }: S3Fault) =>
      body === undefined ? refuse(status, code) : void response.writeHead(status).end(body);
    if (fault?.status && !fault.isDone) return answerFault(fault);
    const answer = this.#answer(logged, url.searchParams, request.headers, body);
    this.onDone(logged);
    if (fault?.cut === "after") return void request.socket.destroy();
    if (fault?.status) return answerFault(fault);
    if (typeof answer.code === "string") return refuse(answer.status, answer.code);
    response.statusCode = answer.status;
    response.setHeader("content-length", answer.body?.length ?? 0);
    response.end(answer.body ?? "");
  }

  #answer(
    { method, key }: S3Log,
    query: URLSearchParams,
    headers: IncomingMessage["headers"],
    body: Buffer,
  ): { status: number; code?: string; body?: string | Buffer } {
    if (method === "GET" && key === "") return { status: 200, body: this.#list(query) };
    const object = this.objects.get(key);
    if (method === "PUT") {
      if (headers["if-none-match"] === "*" && object && !this.ignoresConditions)
        return { status: 412, code: "PreconditionFailed" };
      this.objects.set(key, { bytes: body, modified: this.now() });
      return { status: 200 };
    }
    if (method === "DELETE") {
      this.objects.delete(key);
      return { status: 204 };
    }
    return object ? { status: 200, body: object.bytes } : { status: 404, code: "NoSuchKey" };
  }

  #list(query: URLSearchParams): string {
    const prefix = query.get("prefix") ?? "";
    const after = query.get("continuation-token") ?? "";
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, this.pageSize);
    const entries = page.map((key) => {
      const { bytes, modified } = this.objects.get(key) as StoredObject;
      return `<Contents><Key>${encodeURIComponent(key)}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>&quot;x&quot;</ETag><Size>${bytes.length}</Size></Contents>`;
    });
    const isTruncated = keys.length > page.length;
    const token = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return `<ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${token}${entries.join("")}</ListBucketResult>`;
  }
}

interface SignedRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** The error code that S3 answers to a request with a wrong signature; undefined if it is right. */
function verifySignature({ method, target, headers, body }: SignedRequest): string | undefined {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (!match) return "AccessDenied";
  const [, id, day = "", region = "", names = "", signature = ""] = match;
  if (id !== testKeys.accessKeyId) return "InvalidAccessKeyId";
  const required = Object.keys(headers).filter((name) => name === "host" || name.startsWith("x-amz-"));
  if (required.some((name) => !names.split(";").includes(name))) return "AccessDenied";
  const digest = createHash("sha256").update(body).digest("hex");
  if (headers["x-amz-content-sha256"] !== digest) return "XAmzContentSHA256Mismatch";
  const [path = "", search = ""] = target.split("?");
  const pairs = search.split("&").map((pair) => (pair === "" || pair.includes("=") ? pair : `${pair}=`));
  const query = pairs.sort().join("&");
  let canonical = `${method}\n${path}\n${query}\n`;
  for (const name of names.split(";")) canonical += `${name}:${headers[name]}\n`;
  canonical += `\n${names}\n${digest}`;
  const hashed = createHash("sha256").update(canonical).digest("hex");
  const text = `AWS4-HMAC-SHA256\n${headers["x-amz-date"]}\n${day}/${region}/s3/aws4_request\n${hashed}`;
  const mac = (key: string | Buffer, data: string) => createHmac("sha256", key).update(data).digest();
  const key = mac(mac(mac(mac(`AWS4${testKeys.secretAccessKey}`, day), region), "s3"), "aws4_request");
  return timingSafeEqual(mac(key, text), Buffer.from(signature, "hex")) ? undefined : "SignatureDoesNotMatch";
}
