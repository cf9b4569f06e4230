import { type BinaryLike, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { Failure } from "../model/failure.ts";

const derive = promisify<BinaryLike, BinaryLike, number, ScryptOptions, Buffer>(scrypt);

/** 16 MiB and about 50 ms of CPU for each guess. */
const COST = { N: 16_384, r: 8, p: 1 };
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/** Limits what a hash file may demand of this machine. */
const MAX_COST = 2 ** 17;

/** The line of a hash file: `scrypt$16384$8$1$salt$key`. The secret cannot be found from it. */
export async function hashSecret(secret: string, cost = COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  return formatHash(salt, await derive(secret, salt, KEY_BYTES, cost), cost);
}

/** A hash that no secret matches. A comparison with it takes as long as with any other. */
export function unmatchableHash(): string {
  return formatHash(randomBytes(SALT_BYTES), randomBytes(KEY_BYTES), COST);
}

function formatHash(salt: Buffer, key: Buffer, { N, r, p }: typeof COST): string {
  return ["scrypt", N, r, p, salt.toString("base64"), key.toString("base64")].join("$");
}

export async function matchesSecretHash(secret: string, hash: string): Promise<boolean> {
  const [scheme, n, r, p, salt = "", key = ""] = hash.trim().split("$");
  const cost = { N: Number(n), r: Number(r), p: Number(p) };
  const expected = Buffer.from(key, "base64");
  const isUsable = cost.N <= MAX_COST && cost.r <= 32 && cost.p <= 4 && expected.length >= 16;
  if (scheme !== "scrypt" || !isUsable) return false;
  const found = await derive(secret, Buffer.from(salt, "base64"), expected.length, {
    ...cost,
    maxmem: 256 * cost.N * cost.r,
  });
  return timingSafeEqual(found, expected);
}

/** Reads a hash file. Throws if it cannot be read or holds something else, perhaps the secret itself. */
export async function readSecretHash(file: string): Promise<string> {
  const remedy = `\`mds-sync serve --hash-secret < SECRET-FILE > ${file}\` writes it`;
  const text = await readFile(file, "utf8").catch(() => {
    throw new Failure(`${file} cannot be read`, { code: "settings", remedy });
  });
  if (!/^scrypt\$\d+\$\d+\$\d+\$[\w+/=]+\$[\w+/=]+\s*$/.test(text))
    throw new Failure(`${file} holds no hash of a secret`, { code: "settings", remedy });
  return text.trim();
}
