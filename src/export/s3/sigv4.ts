import { createHash, createHmac } from "node:crypto";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

export interface SignOptions {
  readonly method: string;
  readonly host: string;
  /** Encoded, as it is sent. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Lower-case names. All are signed. */
  readonly headers: Readonly<Record<string, string>>;
  readonly payloadSha256: string;
  readonly region: string;
  readonly credentials: AwsCredentials;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The headers of a request to S3, with its signature (AWS Signature Version 4). */
export function signRequest(options: SignOptions): Record<string, string> {
  const { method, host, path, query, payloadSha256, region, credentials } = options;
  const time = new Date(options.now).toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const scope = [time.slice(0, 8), region, "s3", "aws4_request"];
  const headers: Record<string, string> = {
    ...options.headers,
    host,
    "x-amz-content-sha256": payloadSha256,
    "x-amz-date": time,
    ...(credentials.sessionToken ? { "x-amz-security-token": credentials.sessionToken } : {}),
  };
  const names = Object.keys(headers).sort();
  const signedNames = names.join(";");
  const canonical = [
    method,
    path,
    encodeQuery(query),
    ...names.map((name) => `${name}:${headers[name]?.trim().replaceAll(/ +/g, " ")}`),
    "",
    signedNames,
    payloadSha256,
  ].join("\n");
  const toSign = ["AWS4-HMAC-SHA256", time, scope.join("/"), sha256(canonical)].join("\n");
  const key = scope.reduce<string | Buffer>(
    (parent, part) => createHmac("sha256", parent).update(part).digest(),
    `AWS4${credentials.secretAccessKey}`,
  );
  const signature = createHmac("sha256", key).update(toSign).digest("hex");
  const credential = `${credentials.accessKeyId}/${scope.join("/")}`;
  headers.authorization = `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signedNames}, Signature=${signature}`;
  return headers;
}

export function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Encodes all but the unreserved characters, as the signature demands. */
export function encodeUri(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

export const encodePath = (path: string) => path.split("/").map(encodeUri).join("/");

/** Sorted by name, as it is signed and sent. */
export function encodeQuery(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => `${encodeUri(name)}=${encodeUri(value)}`)
    .sort()
    .join("&");
}
