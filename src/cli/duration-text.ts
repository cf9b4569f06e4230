const units = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
] as const;

/** For eyes: `45s`, `2h 5m`, `199d`. At most two units, cut rather than rounded, so that a day never reads `24h`. */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  const at = units.findIndex(([, size]) => whole >= size);
  const [unit, size] = units[at] ?? ["s", 1];
  const rest = whole % size;
  const [nextUnit, nextSize] = units[at + 1] ?? ["s", 1];
  const parts = [`${Math.floor(whole / size)}${unit}`];
  if (at >= 0 && rest >= nextSize && whole < 100 * size)
    parts.push(`${Math.floor(rest / nextSize)}${nextUnit}`);
  return parts.join(" ");
}

/** The largest unit alone: `45s`, `2h`, `199d`. */
export function ageText(seconds: number): string {
  return durationText(seconds).split(" ")[0] ?? "";
}
