import type { AccessToken, AccessTokens } from "./access-tokens.ts";

/** What the feed needs of the access tokens. */
export type FeedTokens = Pick<AccessTokens, "get" | "renew" | "refused" | "accepted" | "onHealed">;

const HOUR_MS = 3_600_000;
const SHORTEST_STAY_MS = 600_000;
const SPREAD_MS = 300_000;

/**
 * How long to stay on a connection before it is replaced by one with a younger token: until the token's last
 * hour. A token with hardly an hour left does not make us hurry, since it is only looked at on connecting.
 */
export function stayMs(token: AccessToken, boottime: number, chance: number): number {
  return Math.max(SHORTEST_STAY_MS, token.endsAt - HOUR_MS - boottime - chance * SPREAD_MS);
}
