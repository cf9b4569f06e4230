import { createHash } from "node:crypto";
import { createReadStream, statSync, writeFileSync } from "node:fs";
import { AwsV4Signer } from "aws4fetch";
import { Agent, type Dispatcher, EnvHttpProxyAgent } from "undici";
import { errorCode } from "../../model/failure.ts";
import { isLoopback } from "../../model/service-url.ts";
import { backoffDelay, type Clock } from "../../runtime/clock.ts";
import { bucketUnreachable, toBucketFailure } from "../errors.ts";
import { digestOf } from "../folder-store.ts";
import type { S3Target } from "./s3-target.ts";

export interface S3Object {
  /** Without the prefix of the target. */
  readonly key: string;
  readonly size: number;
  readonly modifiedMs: number;
}

interface S3Request {
  readonly method: "GET" | "PUT" | "DELETE";
  /** Undefined: the bucket itself. */
  readonly key?: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | UploadedFile;
  /** Statuses that are an answer, beside success. */
  readonly accepts?: readonly number[];
  /** The XML element that success consists of: proxies answer 200 with a page. */
  readonly result?: string;
}

interface UploadedFile {
  readonly file: string;
  readonly sha256: string;
}

interface S3Response {
  readonly status: number;
  readonly headers: Dispatcher.ResponseData["headers"];
  readonly body: Buffer;
  /** How many times it was sent. After the first, an earlier attempt may have taken effect. */
  readonly attempts: number;
}

export interface S3ClientOptions {
  readonly clock: Pick<Clock, "now" | "sleep">;
  readonly stopping?: AbortSignal | undefined;
}

const MAX_ATTEMPTS = 6;
const RETRY_DELAY = { baseMs: 250, maxMs: 8000, jitter: 0 };
const SOCKET_TIMEOUT_MS = 60_000;
const MAX_ERROR_BYTES = 4096;
/** 409: two conditional writes at the same moment. */
const transientStatuses = new Set([409, 429, 500, 502, 503, 504]);

/** The few operations on a bucket that an export needs. A request that failed for a moment is repeated. */
export class S3Client {
  readonly #target: S3Target;
  readonly #options: S3ClientOptions;
  readonly #dispatcher: Dispatcher;

  constructor(target: S3Target, options: S3ClientOptions) {
    this.#target = target;
    this.#options = options;
    const timeouts = { headersTimeout: SOCKET_TIMEOUT_MS, bodyTimeout: SOCKET_TIMEOUT_MS, allowH2: false };
    this.#dispatcher = isLoopback(new URL(target.origin))
      ? new Agent(timeouts)
      : new EnvHttpProxyAgent(timeouts);
  }

  async list(prefix: string): Promise<S3Object[]> {
    const objects: S3Object[] = [];
    let token: string | undefined;
    do {
      const { body } = await this.#send({
        method: "GET",
        result: "ListBucketResult",
        query: {
          "list-type": "2",
          "encoding-type": "url",
          prefix: this.#target.prefix + prefix,
          ...(token === undefined ? {} : { "continuation-token": token }),
        },
      });
      const text = body.toString();
      for (const [, entry = ""] of text.matchAll(/<Contents>(.*?)<\/Contents>/gs))
        objects.push({
          key: decodeURIComponent(elementOf(entry, "Key")).slice(this.#target.prefix.length),
          size: Number(elementOf(entry, "Size")),
          modifiedMs: Date.parse(elementOf(entry, "LastModified")),
        });
      token =
        elementOf(text, "IsTruncated") === "true" ? elementOf(text, "NextContinuationToken") : undefined;
    } while (token);
    return objects;
  }

  /** Undefined if there is no such object. */
  async read(key: string): Promise<string | undefined> {
    const { status, body } = await this.#send({ method: "GET", key, accepts: [404] });
    return status === 404 ? undefined : body.toString();
  }

  async download(key: string, file: string): Promise<void> {
    writeFileSync(file, (await this.#send({ method: "GET", key })).body);
  }

  async write(key: string, text: string): Promise<void> {
    await this.#send({ method: "PUT", key, body: text });
  }

  /** Whether the store keeps an object that exists from a conditional write. If not, the object has the new text. */
  async protects(key: string, text: string): Promise<boolean> {
    const { status } = await this.#create(key, text);
    return status === 412;
  }

  /** False if the object exists. */
  async create(key: string, text: string): Promise<boolean> {
    const { status, attempts } = await this.#create(key, text);
    if (status !== 412) return true;
    // An earlier attempt whose answer was lost may have created it.
    return attempts > 1 && (await this.read(key)) === text;
  }

  #create(key: string, body: string): Promise<S3Response> {
    return this.#send({ method: "PUT", key, body, headers: { "if-none-match": "*" }, accepts: [412] });
  }

  async remove(key: string): Promise<void> {
    await this.#send({ method: "DELETE", key, accepts: [404] });
  }

  /** Sends a file as it is read: no file of an export is near the 5 GiB that S3 takes in one request. */
  async upload(key: string, file: string): Promise<void> {
    const body = { file, sha256: await digestOf(file) };
    await this.#send({ method: "PUT", key, body });
  }

  async close(): Promise<void> {
    await this.#dispatcher.destroy();
  }

  async #send(request: S3Request): Promise<S3Response> {
    const { url } = this.#target;
    const { clock, stopping } = this.#options;
    for (let attempt = 1; ; attempt++) {
      stopping?.throwIfAborted();
      let failure: Error;
      try {
        const response = await this.#sendOnce(request);
        const { statusCode: status, headers } = response;
        const body = Buffer.from(await response.body.arrayBuffer());
        const isSuccess = status >= 200 && status < 300;
        if (isSuccess ? isResult(body, request.result) : request.accepts?.includes(status))
          return { status, headers, body, attempts: attempt };
        failure = toBucketFailure(
          url,
          status,
          body.toString("utf8", 0, MAX_ERROR_BYTES),
          operationOf(request),
        );
        if (!isSuccess && !transientStatuses.has(status)) throw failure;
      } catch (error) {
        if (stopping?.aborted || !isNetworkError(error)) throw error;
        failure = bucketUnreachable(url, networkReason(error), error);
      }
      if (attempt === MAX_ATTEMPTS) throw failure;
      await clock.sleep(
        backoffDelay(attempt - 1, RETRY_DELAY, () => 0),
        stopping,
      );
    }
  }

  async #sendOnce(request: S3Request): Promise<Dispatcher.ResponseData> {
    const { method, key, query = {}, headers = {}, body = "" } = request;
    const { origin, root, prefix, region, credentials } = this.#target;
    const path = key === undefined ? root.replace(/(?<=.)\/$/, "") : root + prefix + key;
    const url = new URL(path.split("/").map(encodeURIComponent).join("/"), origin);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    const isFile = typeof body === "object";
    const payloadHash = isFile ? body.sha256 : createHash("sha256").update(body).digest("hex");
    const signer = new AwsV4Signer({
      ...credentials,
      method,
      url: url.href,
      headers: { ...headers, "x-amz-content-sha256": payloadHash },
      service: "s3",
      region,
      datetime: new Date(this.#options.clock.now()).toISOString().replaceAll(/[-:]|\.\d{3}/g, ""),
    });
    const signed = await signer.sign();
    const { encodedPath, encodedSearch } = signer;
    return this.#dispatcher.request({
      method,
      origin,
      // Exactly as it was signed.
      path: encodedSearch === "" ? encodedPath : `${encodedPath}?${encodedSearch}`,
      headers: {
        ...Object.fromEntries(signed.headers),
        ...(isFile && { "content-length": String(statSync(body.file).size) }),
      },
      body: isFile ? createReadStream(body.file) : body,
      signal: this.#options.stopping ?? null,
    });
  }
}

/** The right that a request needs, and whether it must not replace an object. */
function operationOf({ method, key, headers = {} }: S3Request) {
  const right = { GET: "GetObject", PUT: "PutObject", DELETE: "DeleteObject" }[method];
  return {
    right: `s3:${key === undefined ? "ListBucket" : right}`,
    isConditional: "if-none-match" in headers,
  };
}

/** Whether the outermost element of the answer is the one that was asked for. */
function isResult(body: Buffer, element = ""): boolean {
  return element === "" || new RegExp(`^\\s*(<\\?[^>]*>\\s*)?<${element}[\\s/>]`).test(body.toString());
}

/** The text of the first such element; empty if there is none. */
function elementOf(xml: string, name: string): string {
  const [, text = ""] = new RegExp(`<${name}>(.*?)</${name}>`, "s").exec(xml) ?? [];
  return text.replaceAll(/&(\w+);/g, (entity, name: string) => entities[name] ?? entity);
}

const entities: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

/** Errors of undici and of sockets have codes; failures of ours have another class. */
function isNetworkError(error: unknown): error is Error {
  return (
    error instanceof Error &&
    error.name !== "Failure" &&
    error.name !== "AbortError" &&
    networkReason(error) !== ""
  );
}

function networkReason(error: Error): string {
  const code = errorCode(error);
  return code !== "" || !(error.cause instanceof Error) ? code : networkReason(error.cause);
}
