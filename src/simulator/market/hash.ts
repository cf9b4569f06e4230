/**
 * The only source of randomness in the simulator: hashes of the seed and a position. There is no random sequence, so no
 * response depends on the order of requests.
 */

/** Mixes the bits of the input: each one affects all 32 bits of the result. */
export function mixBits(value: number): number {
  let h = value | 0;
  h ^= h >>> 16;
  h = Math.imul(h, 0x7feb352d);
  h ^= h >>> 15;
  h = Math.imul(h, 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}

/** A 32-bit hash of a few integers. */
export function hashNumbers(...parts: readonly number[]): number {
  let h = 0x2545f491;
  for (const part of parts) h = mixBits(h ^ Math.imul(part | 0, 0x9e3779b1) ^ Math.floor(part / 2 ** 32));
  return h;
}

/** A fraction in [0, 1), fixed for these numbers. */
export function hashFraction(...parts: readonly number[]): number {
  return hashNumbers(...parts) / 2 ** 32;
}
