/** Edits (insert, delete, replace, swap of neighbours) that turn one text into the other. */
function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        least = Math.min(least, (beforeLast[j - 2] ?? 0) + 1);
      }
      row.push(least);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}

/** The known word that a misspelt one was most likely meant to be; undefined when none is close. */
export function nearest(word: string, known: Iterable<string>): string | undefined {
  const meant = word.toLowerCase();
  let best: string | undefined;
  let least = Math.max(2, Math.floor(meant.length / 2)) + 1;
  for (const candidate of known) {
    const edits = distance(meant, candidate.toLowerCase());
    if (edits < least && edits < candidate.length) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}
