import type { Selector } from "../model/selector.ts";
import { type DerivativeType, derivativeTypes } from "../model/streams.ts";

/**
 * What a setting's value looks like before it is read. Every scalar is text, wherever it comes from: the file is read
 * without YAML's guesses, so that `TRUE` is the symbol of a coin and `1e5` is not a number before an option says so.
 */
export type Raw = string | readonly Raw[] | { readonly [key: string]: Raw };

/** A value, or what would have been right. */
export type Reading<T> = { readonly value: T } | { readonly wanted: string };

export interface OptionWords {
  /** One line for people: help, the example file and the settings listing all print it. */
  help: string;
  /** The environment variable that sets it. */
  env?: string;
  /** The flag that sets it, in commander's notation. */
  flag?: string;
}

export interface Option<T> extends OptionWords {
  readonly option: true;
  readonly fallback: T;
  readonly read: (raw: Raw) => Reading<T>;
  /** A value as a person would write it in the file. */
  readonly write: (value: T) => string;
}

function option<T>(
  words: OptionWords,
  fallback: T,
  read: Option<T>["read"],
  write: Option<T>["write"] = (value) => (value === undefined ? "" : String(value)),
): Option<T> {
  return { option: true, ...words, fallback, read, write };
}

function scalar<T>(
  words: OptionWords,
  fallback: T,
  wanted: string,
  read: (text: string) => T | undefined,
  write?: Option<T>["write"],
): Option<T> {
  const readText: Option<T>["read"] = (raw) => {
    const value = typeof raw === "string" ? read(raw.trim()) : undefined;
    return value === undefined ? { wanted } : { value };
  };
  return option(words, fallback, readText, write);
}

const writeText = (value: string) => (/^[\w./:-]+$/.test(value) ? value : JSON.stringify(value));
const writeList = (values: readonly string[]) => `[${values.map(writeText).join(", ")}]`;

export function text(words: OptionWords, fallback: string): Option<string> {
  return scalar(words, fallback, "a text that is not empty", (raw) => raw || undefined, writeText);
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/**
 * An address, kept letter by letter: it is a token's audience too. Plain, unencrypted schemes are for loopback alone,
 * since tokens travel over it.
 */
export function address(
  words: OptionWords,
  schemes: { secure: string; plain: string },
): Option<string | undefined> {
  const wanted = `an address such as ${schemes.secure}//host (${schemes.plain}// only to localhost), without user name or password`;
  return scalar<string | undefined>(words, undefined, wanted, (raw) => {
    if (!URL.canParse(raw)) return undefined;
    const url = new URL(raw);
    const allowed =
      url.protocol === schemes.secure || (url.protocol === schemes.plain && loopback.test(url.hostname));
    const clean = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
    return allowed && clean ? raw : undefined;
  });
}

export function webAddress(words: OptionWords): Option<string> {
  return scalar(
    words,
    "",
    "an http:// or https:// address without user name or password, or nothing",
    (raw) => {
      const url = URL.canParse(raw) ? new URL(raw) : undefined;
      const fits = url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
      return raw === "" || fits ? raw : undefined;
    },
    writeText,
  );
}

export function optionalText(words: OptionWords): Option<string | undefined> {
  return scalar<string | undefined>(words, undefined, "a text that is not empty", (raw) => raw || undefined);
}

export function wholeNumber(
  words: OptionWords,
  fallback: number,
  least: number,
  most: number,
): Option<number> {
  return scalar(words, fallback, `a whole number from ${least} to ${most}`, (raw) => {
    const value = /^\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN;
    return value >= least && value <= most ? value : undefined;
  });
}

const unitSeconds = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

function readSeconds(raw: string): number | undefined {
  const match = /^(\d{1,9})([smhd])$/.exec(raw);
  return match ? Number(match[1]) * unitSeconds[match[2] as keyof typeof unitSeconds] : undefined;
}

function writeSeconds(seconds: number): string {
  const unit =
    (["d", "h", "m"] as const).find((name) => seconds > 0 && seconds % unitSeconds[name] === 0) ?? "s";
  return `${seconds / unitSeconds[unit]}${unit}`;
}

/** A duration, in seconds. */
export function duration(words: OptionWords, fallback: string, least: string): Option<number> {
  const floor = readSeconds(least) ?? 0;
  const wanted = `a duration of at least ${least}, such as 30s, 5m, 1h or 2d`;
  const read = (raw: string) => {
    const seconds = readSeconds(raw);
    return seconds !== undefined && seconds >= floor ? seconds : undefined;
  };
  return scalar(words, readSeconds(fallback) ?? 0, wanted, read, writeSeconds);
}

/** Seconds to keep, or undefined for ever. */
export function retention(words: OptionWords): Option<number | undefined> {
  const wanted = "forever, or a number of days such as 90d";
  const read: Option<number | undefined>["read"] = (raw) => {
    if (raw === "forever") return { value: undefined };
    const seconds = typeof raw === "string" && raw.endsWith("d") ? readSeconds(raw) : undefined;
    return seconds ? { value: seconds } : { wanted };
  };
  return option(words, undefined, read, (seconds) =>
    seconds === undefined ? "forever" : writeSeconds(seconds),
  );
}

const cronField = /^(\*|[0-9]+(-[0-9]+)?)(\/[0-9]+)?(,(\*|[0-9]+(-[0-9]+)?)(\/[0-9]+)?)*$/;
const cronBounds = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7],
] as const;

/** The days that a month may have; a schedule for 31 February would never come. */
const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

function isCron(raw: string): boolean {
  const fields = raw.split(/\s+/);
  const [, , day = "", month = ""] = fields;
  const comesUp =
    /^\d+$/.test(day) && /^\d+$/.test(month) ? Number(day) <= (longestMonths[Number(month) - 1] ?? 0) : true;
  return (
    comesUp &&
    fields.length === cronBounds.length &&
    cronBounds.every(([least, most], i) => isCronField(fields[i] ?? "", least, most))
  );
}

function isCronField(field: string, least: number, most: number): boolean {
  if (!cronField.test(field)) return false;
  return field.split(",").every((part) => {
    const [range = "", step] = part.split("/");
    const [from = least, to = from] = range === "*" ? [] : range.split("-").map(Number);
    return from >= least && to <= most && from <= to && (step === undefined || Number(step) > 0);
  });
}

/** Five cron fields, in UTC; empty for never. */
export function schedule(words: OptionWords, fallback: string): Option<string> {
  const wanted =
    'five cron fields in UTC such as "10 0 * * *" (minute hour day month weekday), or "" for never';
  const read = (raw: string) => (raw === "" || isCron(raw) ? raw : undefined);
  return scalar(words, fallback, wanted, read, writeText);
}

export function texts(words: OptionWords): Option<readonly string[]> {
  const read: Option<readonly string[]>["read"] = (raw) =>
    isTextList(raw) && raw.every((item) => item !== "")
      ? { value: raw }
      : { wanted: "a list of texts such as [a, b]" };
  return option(words, [], read, writeList);
}

export const lxNames = ["BLX", "ELX", "XRPLX"] as const;

export function lxIds(words: OptionWords): Option<Readonly<Record<string, string>>> {
  const wanted = `a mapping of ${lxNames.join(", ")} to index ids, such as { BLX: 0123-… }`;
  const read: Option<Readonly<Record<string, string>>>["read"] = (raw) => {
    if (typeof raw === "string" || Array.isArray(raw)) return { wanted };
    const entries = Object.entries(raw);
    const fits = entries.every(
      ([name, id]) => lxNames.some((known) => known === name) && typeof id === "string" && id !== "",
    );
    return fits ? { value: Object.fromEntries(entries) as Record<string, string> } : { wanted };
  };
  const write = (ids: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(ids).map(([name, id]) => `${name}: ${writeText(id)}`);
    return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
  };
  return option(words, {}, read, write);
}

export function kinds(words: OptionWords): Option<readonly DerivativeType[]> {
  const read: Option<readonly DerivativeType[]>["read"] = (raw) =>
    isTextList(raw) && raw.every((item) => derivativeTypes.some((known) => known === item))
      ? { value: derivativeTypes.filter((known) => raw.includes(known)) }
      : { wanted: `a list of ${derivativeTypes.join(", ")}` };
  return option(words, derivativeTypes, read, writeList);
}

const mostRanked = 1_000_000;

export function selector(
  words: OptionWords,
  fallback: Selector,
  what: "assets" | "pairs" | "indices" | "exchanges",
): Option<Selector> {
  const sample = {
    assets: "[BTC, ETH]",
    pairs: "[BTC/USD, ETH/USD]",
    indices: "[BLX]",
    exchanges: "[Kraken]",
  }[what];
  const wanted = `all, none, ${what === "exchanges" ? "" : "{ top: N }, "}or a list such as ${sample}`;
  const read: Option<Selector>["read"] = (raw) => {
    if (raw === "all" || raw === "none") return { value: { kind: raw } };
    if (isTextList(raw)) {
      const names = raw.map((name) => name.trim());
      return names.length > 0 && names.every((name) => name !== "")
        ? { value: { kind: "list", names } }
        : { wanted };
    }
    const top = typeof raw === "object" && !Array.isArray(raw) ? raw : {};
    const count = Object.keys(top).join() === "top" ? String(Object.values(top)[0]) : "";
    const fits =
      what !== "exchanges" && /^\d{1,7}$/.test(count) && Number(count) >= 1 && Number(count) <= mostRanked;
    return fits ? { value: { kind: "top", count: Number(count) } } : { wanted };
  };
  return option(words, fallback, read, writeSelector);
}

function writeSelector(value: Selector): string {
  if (value.kind === "top") return `{ top: ${value.count} }`;
  return value.kind === "list" ? writeList(value.names) : value.kind;
}

function isTextList(raw: Raw): raw is readonly string[] {
  return Array.isArray(raw) && raw.every((item) => typeof item === "string");
}
