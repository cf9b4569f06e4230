/**
 * Chance as a pure function of what is decided: the same parts give the same number, whatever was asked before and
 * in whatever order, so a run repeats itself although promises do not.
 */
export function chanceOf(...parts: readonly (string | number)[]): number {
  let hash = 0x811c9dc5;
  for (const part of parts) {
    const text = String(part);
    for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    // A separator that no text holds, so that ("ab", "c") and ("a", "bc") differ.
    hash = Math.imul(hash ^ 0x1ffff, 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d);
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}
