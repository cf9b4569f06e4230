import { randomBytes } from "node:crypto";
import { ApiError } from "../api-server/responses.ts";
import type { Access } from "../api-server/tokens.ts";
import { serviceScopes } from "../model/streams.ts";
import { matchesSecretHash, readSecretHash, unmatchableHash } from "./client-secrets.ts";

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
