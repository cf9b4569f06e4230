import { expect, vi } from "vitest";
import { timeLimit } from "../time-limit.ts";

/** The figure in a text: `164,231.45`, `+2.1 %`, `−3.0 bp`. */
export const figure = (text: string | null) =>
  Number((text ?? "").replaceAll(/[^\d.−-]/g, "").replace("−", "-"));

/** As `figure` reads it from a page, where what rounds to 0 has no sign. */
export const rounded = (value: number, digits: number) => Number(value.toFixed(digits)) + 0;

const WAIT_OPTIONS = { timeout: timeLimit(90_000), interval: 100 };
export const until = <T>(isSo: () => T | Promise<T>) => vi.waitUntil(isSo, WAIT_OPTIONS);

/** A value that live ticks change: the page and the warehouse agree at some moment. */
export const expectSoon = (read: () => Promise<unknown>, expected: () => unknown) =>
  vi.waitFor(async () => expect(await read()).toEqual(expected()), WAIT_OPTIONS);
