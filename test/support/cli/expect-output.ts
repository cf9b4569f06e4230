import { expect } from "vitest";

/** Every report fits into 80 columns. */
export function expectNarrow(stdout: string): void {
  expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
}

/** A report without its line breaks. */
export const unwrap = (text: string): string => text.replaceAll(/\s+/g, " ");
