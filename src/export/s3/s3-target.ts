import { exportRefused } from "../errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a bucket is, and as whom to open it. */
export interface S3Target {
  /** `s3://bucket/prefix`, for messages. */
  readonly url: string;
  readonly origin: string;
  /** Before each key: `/` for a host of its own, `/bucket/` otherwise. */
  readonly root: string;
  /** Empty, or with a slash at its end. */
  readonly prefix: string;
  readonly region: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
}

export const isBucketUrl = (to: string) => /^s3a?:\/\//.test(to);

/** Reads the variables that all AWS tools read; nothing of them is stored or logged. */
export function readS3Target(to: string, env: Environment): S3Target {
  const [, bucket = "", path = ""] = /^s3a?:\/\/([^/]*)\/?(.*?)\/*$/.exec(to) ?? [];
  const url = `s3://${bucket}${path === "" ? "" : `/${path}`}`;
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    throw exportRefused(`${to} names no bucket`, "give s3://BUCKET/PREFIX");
  const [accessKeyId, secretAccessKey] = [env.AWS_ACCESS_KEY_ID, env.AWS_SECRET_ACCESS_KEY];
  if (!accessKeyId || !secretAccessKey)
    throw exportRefused(
      `there are no credentials for ${url}`,
      "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    );
  const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1";
  const endpoint = env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL;
  return {
    url,
    ...address(bucket, region, endpoint),
    prefix: path === "" ? "" : `${path}/`,
    region,
    credentials: {
      accessKeyId,
      secretAccessKey,
      ...(env.AWS_SESSION_TOKEN ? { sessionToken: env.AWS_SESSION_TOKEN } : {}),
    },
  };
}

function address(
  bucket: string,
  region: string,
  endpoint: string | undefined,
): { origin: string; root: string } {
  if (endpoint === undefined) {
    const host = `s3.${region}.amazonaws.com`;
    // The certificate of Amazon does not cover a name with dots.
    return bucket.includes(".")
      ? { origin: `https://${host}`, root: `/${bucket}/` }
      : { origin: `https://${bucket}.${host}`, root: "/" };
  }
  const parsed = URL.parse(endpoint);
  const remedy = "set AWS_ENDPOINT_URL to an address such as https://minio.example:9000";
  if (!parsed || !/^https?:$/.test(parsed.protocol))
    throw exportRefused("AWS_ENDPOINT_URL is no http address", remedy);
  if (parsed.username || parsed.password)
    throw exportRefused("AWS_ENDPOINT_URL contains a user or password", remedy);
  return { origin: parsed.origin, root: `${parsed.pathname.replace(/\/+$/, "")}/${bucket}/` };
}
