import { type BinaryLike, randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { ApiError } from "../api-server/api-error.ts";
import type { Access } from "../api-server/tokens.ts";
import { Failure } from "../model/failure.ts";
import { serviceScopes } from "../model/streams.ts";

export interface ServeClient {
  readonly id: string;
  readonly secretHashFile: string;
  readonly scopes: readonly string[];
}

const TOKEN_SECONDS = 86_400;
/** Each check of a secret takes 50 ms of CPU: a flood of guesses must not occupy the machine. */
const MAX_CHECKS = 2;
const MAX_WAITING_CHECKS = 8;

/** Does a few checks at once. Clients take turns: one that asks for much waits for itself, not the others for it. */
class FairQueue {
  /** By client, the one whose turn is next first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #running = 0;

  /** Undefined: too many checks of the client wait already. */
  run<T>(client: string, work: () => Promise<T>): Promise<T> | undefined {
    const own = this.#waiting.get(client) ?? [];
    if (own.length >= MAX_WAITING_CHECKS) return undefined;
    this.#waiting.set(client, own);
    const started = new Promise<void>((start) => own.push(start));
    const result = started.then(work).finally(() => {
      this.#running--;
      this.#startNext();
    });
    this.#startNext();
    return result;
  }

  #startNext(): void {
    for (const [client, [start, ...others]] of this.#waiting) {
      if (this.#running >= MAX_CHECKS) return;
      this.#waiting.delete(client);
      if (others.length > 0) this.#waiting.set(client, others);
      this.#running++;
      start?.();
    }
  }
}

export function createClientAccess(clients: readonly ServeClient[]): Access {
  const checks = new FairQueue();
  // Compared if the client is unknown, so that the time of the answer does not reveal it.
  const unknownHash = unmatchableHash();
  const find = (clientId: string) => clients.find(({ id }) => id === clientId);
  return {
    isOpen: clients.length === 0,
    async isSecretOf(clientId, secret, address) {
      const client = find(clientId);
      const check = async () => {
        const hash = client ? await readSecretHash(client.secretHashFile) : unknownHash;
        return matchesSecretHash(secret, hash);
      };
      // Guesses at one client, or from one address, delay only themselves.
      const isRight = await checks.run(`${address} ${client?.id}`, check);
      if (isRight === undefined)
        throw new ApiError(429, "Too many token requests at once", { headers: { "retry-after": "1" } });
      return client !== undefined && isRight;
    },
    grantOf: (clientId) => ({ scopes: find(clientId)?.scopes ?? serviceScopes, seconds: TOKEN_SECONDS }),
    createToken: () => randomBytes(32).toString("base64url"),
  };
}

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
function unmatchableHash(): string {
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
