// The statements that were run, which stay in this browser.

import { readStored, store } from "../shared/page-base.ts";

const HISTORY_KEY = "explore-history";
const MAX_HISTORY = 50;

export function readList(key: string): unknown[] {
  try {
    const stored: unknown = JSON.parse(readStored(key) ?? "[]");
    return Array.isArray(stored) ? stored : [];
  } catch {
    return [];
  }
}

export type HistoryEntry = { readonly sql: string; readonly note?: string; readonly at?: string };

export const readHistory = (): HistoryEntry[] =>
  (readList(HISTORY_KEY) as HistoryEntry[]).filter(({ sql }) => typeof sql === "string");

export const wasRun = (sql: string): boolean => readHistory().some((one) => one.sql === sql);

export function rememberQuery(sql: string, note: string): void {
  const entry = { sql, note, at: new Date().toISOString() };
  const others = readHistory().filter((one) => one.sql !== sql);
  store(HISTORY_KEY, JSON.stringify([entry, ...others].slice(0, MAX_HISTORY)));
}
