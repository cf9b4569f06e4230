/** Replacements as one line of at most this length. */
const MAX_REPLACEMENT_LENGTH = 100;

/** Where a mutant is that no test noticed, and what it changes. */
export function survivorLine(file: string, line: number, mutator: string, replacement = ""): string {
  const text = replacement.replaceAll(/\s+/g, " ").trim().slice(0, MAX_REPLACEMENT_LENGTH);
  return `survived: ${file}:${line} ${mutator}: ${text}`;
}
