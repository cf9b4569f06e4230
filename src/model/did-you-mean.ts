/** The number of edits (insert, delete, replace, swap of neighbours) that turn one text into the other. */
function editDistance(a: string, b: string): number {
  let rowBeforePrevious: number[] = [];
  let previousRow = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1];
      let cost = Math.min(
        (previousRow[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (previousRow[j - 1] ?? 0) + (isSame ? 0 : 1),
      );
      // Before the first letter there is undefined, which equals no letter.
      if (a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        cost = Math.min(cost, (rowBeforePrevious[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    rowBeforePrevious = previousRow;
    previousRow = row;
  }
  return previousRow[b.length] ?? 0;
}

/** The known word closest to a misspelt one; undefined if none is close. */
export function findClosestWord(word: string, known: Iterable<string>): string | undefined {
  return findClosestWords(word, known)[0];
}

/** What to do about a misspelt word: the closest known one, or `otherwise`. */
export function suggestWord(word: string, known: Iterable<string>, otherwise: string): string {
  const closest = findClosestWord(word, known);
  return closest === undefined ? otherwise : `did you mean ${closest}?`;
}

/** The known words that are close to a misspelt one, the closest first. */
export function findClosestWords(word: string, known: Iterable<string>): string[] {
  const typed = word.toLowerCase();
  const maxEdits = Math.max(2, Math.floor(typed.length / 2));
  return [...known]
    .map((candidate) => ({ candidate, edits: editDistance(typed, candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= maxEdits && edits < candidate.length)
    .sort((a, b) => a.edits - b.edits)
    .map(({ candidate }) => candidate);
}
