import { Cron } from "croner";
import type { Selector } from "../model/selector.ts";
import { findUrlProblem, isHost, listServerUrls } from "../model/service-url.ts";
import { type DerivativeType, derivativeTypes, serviceScopes } from "../model/streams.ts";
import { parseDuration, secondsPerUnit } from "../model/time.ts";

/**
 * A setting's value before it is parsed. Every scalar is text: YAML would turn the coin symbol `TRUE` into a boolean
 * and `1e5` into a number.
 */
export type RawValue = string | readonly RawValue[] | { readonly [key: string]: RawValue };

/** A value, or a description of what is expected. */
type OptionParseResult<T> = { readonly value: T } | { readonly expected: string };

interface OptionNames {
  /** One line, printed by the help, the example file and the settings listing. */
  help: string;
  /** The environment variable. */
  env?: string;
  /** The flag, in commander's notation. */
  flag?: string;
}

/** The help alone, if only the file can set the option. */
type OptionDescription = string | OptionNames;

export interface Option<T> extends OptionNames {
  readonly option: true;
  readonly defaultValue: T;
  readonly parse: (raw: RawValue) => OptionParseResult<T>;
  /** A value as a user would write it in the file. */
  readonly format: (value: T) => string;
}

function makeOption<T>(
  description: OptionDescription,
  defaultValue: T,
  parse: Option<T>["parse"],
  format: Option<T>["format"] = (value) => (value === undefined ? "" : String(value)),
): Option<T> {
  const names = typeof description === "string" ? { help: description } : description;
  return { option: true, ...names, defaultValue, parse, format };
}

function makeScalarOption<T>(
  description: OptionDescription,
  defaultValue: T,
  expected: string,
  parse: (text: string) => T | undefined,
  format?: Option<T>["format"],
): Option<T> {
  const parseText: Option<T>["parse"] = (raw) => {
    const value = typeof raw === "string" ? parse(raw.trim()) : undefined;
    return value === undefined ? { expected } : { value };
  };
  return makeOption(description, defaultValue, parseText, format);
}

const formatText = (value: string) => (/^[\w./:-]+$/.test(value) ? value : JSON.stringify(value));
const formatList = (values: readonly string[]) => `[${values.map(formatText).join(", ")}]`;

/** A kind of text: what is expected, and what it accepts. */
function textKind(expected: string, accepts: (raw: string) => boolean) {
  return (description: OptionDescription, defaultValue = ""): Option<string> =>
    makeScalarOption(
      description,
      defaultValue,
      expected,
      (raw) => (accepts(raw) ? raw : undefined),
      formatText,
    );
}

export const textOption = textKind("a non-empty text", (raw) => raw !== "");

export const anyTextOption = textKind("a text", () => true);

/** Where to listen. */
export const hostOption = textKind("an address such as 127.0.0.1 or ::1, or a host name", isHost);

export const httpUrlOption = textKind(
  'an http:// or https:// address without user name or password, or ""',
  (raw) => {
    const url = URL.canParse(raw) ? new URL(raw) : undefined;
    const fits = url && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
    return raw === "" || fits === true;
  },
);

/** The address of a PostgreSQL database. The password is a secret, so it must not be part of it. */
export const postgresUrlOption = textKind(
  'an address such as postgres://user@host:5432/database?sslmode=verify-full, without the password, or ""',
  (raw) => raw === "" || listServerUrls(raw) !== undefined,
);

/** A folder or a bucket; empty: the default folder. */
export const exportTargetOption = textKind(
  "a folder, or s3://BUCKET/PREFIX",
  (raw) => !/^\w+:/.test(raw) || /^s3:\/\/[^/]+/.test(raw),
);

/** Five numeric fields: no seconds, names or nicknames. */
const cronPattern = /^[\d*,/-]+( +[\d*,/-]+){4}$/;

function hasTimes(expression: string): boolean {
  try {
    return new Cron(expression, { timezone: "UTC" }).nextRun() !== null;
  } catch {
    return false;
  }
}

/** Five cron fields, in UTC; empty: never. */
export const cronOption = textKind(
  'five cron fields in UTC such as "10 0 * * *" (minute hour day month weekday), or "" for never',
  (raw) => raw === "" || (cronPattern.test(raw) && hasTimes(raw)),
);

/** A URL, stored verbatim because it is also the token's audience. */
export function serviceUrlOption(
  description: OptionDescription,
  scheme: "http" | "ws",
): Option<string | undefined> {
  const expected = `an address such as ${scheme}s://host (${scheme}:// only to localhost), without user name or password`;
  return makeOption<string | undefined>(description, undefined, (raw) => {
    const text = typeof raw === "string" ? raw.trim() : "";
    if (findUrlProblem(text) !== undefined) return { expected };
    const { protocol, pathname, search, hash } = new URL(text);
    const hasScheme = protocol === `${scheme}s:` || protocol === `${scheme}:`;
    if (!hasScheme || search !== "" || hash !== "") return { expected };
    // The client adds the version to the path of every request, so the service would answer 404 to all of them.
    if (scheme === "http" && /\/v3\/?$/.test(pathname))
      return { expected: `the address without /v3: ${text.replace(/\/v3\/?$/, "")}` };
    return { value: text };
  });
}

/** One of a few words. `removed`: words of earlier versions, with what to give instead. */
export function choiceOption<const Choice extends string>(
  description: OptionDescription,
  choices: readonly [Choice, ...Choice[]],
  removed: Readonly<Record<string, string>> = {},
): Option<Choice> {
  return makeOption<Choice>(description, choices[0], (raw) => {
    const text = typeof raw === "string" ? raw.trim() : "";
    const value = choices.find((choice) => choice === text);
    return value === undefined ? { expected: removed[text] ?? choices.join(" or ") } : { value };
  });
}

export function optionalTextOption(description: OptionDescription): Option<string | undefined> {
  return makeScalarOption<string | undefined>(
    description,
    undefined,
    "a non-empty text",
    (raw) => raw || undefined,
  );
}

/** `what`: listens there. */
export const portOption = (env: string, flag: string, what: string, defaultValue: number) =>
  integerOption({ env, flag, help: `${what}; 0: any free port` }, defaultValue, 0, 65_535);

export function integerOption(
  description: OptionDescription,
  defaultValue: number,
  min: number,
  max: number,
): Option<number> {
  const parse = (raw: string) => {
    const value = /^\d{1,15}$/.test(raw) ? Number(raw) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
  return makeScalarOption(description, defaultValue, `a whole number from ${min} to ${max}`, parse);
}

function formatDuration(seconds: number): string {
  const unit =
    (["d", "h", "m"] as const).find((name) => seconds > 0 && seconds % secondsPerUnit[name] === 0) ?? "s";
  return `${seconds / secondsPerUnit[unit]}${unit}`;
}

/** A duration, in seconds. */
export function durationOption(
  description: OptionDescription,
  defaultValue: string,
  min: string,
): Option<number> {
  const minSeconds = parseDuration(min) ?? 0;
  const expected = `a duration of at least ${min}, such as 30s, 5m, 1h or 2d`;
  const parse = (raw: string) => {
    const seconds = parseDuration(raw);
    return seconds !== undefined && seconds >= minSeconds ? seconds : undefined;
  };
  const defaultSeconds = parseDuration(defaultValue) ?? 0;
  return makeScalarOption(description, defaultSeconds, expected, parse, formatDuration);
}

/** How long to store rows, in seconds; undefined: forever. */
export function retentionOption(description: OptionDescription): Option<number | undefined> {
  const expected = "forever, or a number of days such as 90d";
  const parse: Option<number | undefined>["parse"] = (raw) => {
    if (raw === "forever") return { value: undefined };
    const seconds = typeof raw === "string" && raw.endsWith("d") ? parseDuration(raw) : undefined;
    return seconds ? { value: seconds } : { expected };
  };
  return makeOption(description, undefined, parse, (seconds) =>
    seconds === undefined ? "forever" : formatDuration(seconds),
  );
}

export function textListOption(description: OptionDescription): Option<readonly string[]> {
  const parse: Option<readonly string[]>["parse"] = (raw) =>
    isTextList(raw) && raw.every((item) => item !== "")
      ? { value: raw }
      : { expected: "a list such as [a, b]" };
  return makeOption(description, [], parse, formatList);
}

export function flagOption(description: OptionDescription): Option<boolean> {
  const parse = (raw: string) => (raw === "true" ? true : raw === "false" ? false : undefined);
  return makeScalarOption(description, false, "true or false", parse);
}

/** A client of `mds-sync serve`. */
export interface ServeClientSetting {
  readonly id: string;
  readonly secretHashFile: string;
  readonly scopes: readonly string[];
}

export function serveClientsOption(description: OptionDescription): Option<readonly ServeClientSetting[]> {
  const expected = `a list of { id: NAME, secretHashFile: FILE, scopes: [read:ohlcv, …] }; without scopes a client may read everything`;
  const parseClient = (raw: RawValue): ServeClientSetting | undefined => {
    if (typeof raw === "string" || Array.isArray(raw)) return undefined;
    const { id, secretHashFile, scopes = serviceScopes, ...others } = raw as Record<string, RawValue>;
    const isComplete = typeof id === "string" && id !== "" && typeof secretHashFile === "string";
    const areScopes = isTextList(scopes) && scopes.every((scope) => serviceScopes.some((s) => s === scope));
    if (!isComplete || secretHashFile === "" || !areScopes || Object.keys(others).length > 0)
      return undefined;
    return { id, secretHashFile, scopes };
  };
  const parse: Option<readonly ServeClientSetting[]>["parse"] = (raw) => {
    const clients = Array.isArray(raw) ? raw.map(parseClient) : [undefined];
    const known = clients.filter((client) => client !== undefined);
    const isUnique = new Set(known.map(({ id }) => id)).size === known.length;
    return known.length === clients.length && isUnique ? { value: known } : { expected };
  };
  const format = (clients: readonly ServeClientSetting[]) =>
    `[${clients.map(({ id, secretHashFile, scopes }) => `{ id: ${formatText(id)}, secretHashFile: ${formatText(secretHashFile)}, scopes: ${formatList(scopes)} }`).join(", ")}]`;
  return makeOption(description, [], parse, format);
}

const lxIndexNames = ["BLX", "ELX", "XRPLX"] as const;

export function lxIndexIdsOption(description: OptionDescription): Option<Readonly<Record<string, string>>> {
  const expected = `a mapping of ${lxIndexNames.join(", ")} to index ids, such as { BLX: 0123-… }`;
  const parse: Option<Readonly<Record<string, string>>>["parse"] = (raw) => {
    if (typeof raw === "string" || Array.isArray(raw)) return { expected };
    const entries = Object.entries(raw);
    const fits = entries.every(
      ([name, id]) => lxIndexNames.some((known) => known === name) && typeof id === "string" && id !== "",
    );
    return fits ? { value: Object.fromEntries(entries) as Record<string, string> } : { expected };
  };
  const format = (ids: Readonly<Record<string, string>>) => {
    const pairs = Object.entries(ids).map(([name, id]) => `${name}: ${formatText(id)}`);
    return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
  };
  return makeOption(description, {}, parse, format);
}

export function derivativeTypesOption(description: OptionDescription): Option<readonly DerivativeType[]> {
  const parse: Option<readonly DerivativeType[]>["parse"] = (raw) =>
    isTextList(raw) && raw.every((item) => derivativeTypes.some((known) => known === item))
      ? { value: derivativeTypes.filter((known) => raw.includes(known)) }
      : { expected: `a list of ${derivativeTypes.join(", ")}` };
  return makeOption(description, derivativeTypes, parse, formatList);
}

const MAX_TOP_COUNT = 1_000_000;

export function selectorOption(
  description: OptionDescription,
  defaultValue: Selector,
  kind: "assets" | "pairs" | "indices" | "exchanges",
): Option<Selector> {
  const example = {
    assets: "[BTC, ETH]",
    pairs: "[BTC/USD, ETH/USD]",
    indices: "[BLX]",
    exchanges: "[Kraken]",
  }[kind];
  const expected = `all, none, ${kind === "exchanges" ? "" : "{ top: N }, "}or a list such as ${example}`;
  const parse: Option<Selector>["parse"] = (raw) => {
    if (raw === "all" || raw === "none") return { value: { kind: raw } };
    if (isTextList(raw)) {
      const names = raw.map((name) => name.trim());
      return names.length > 0 && names.every((name) => name !== "")
        ? { value: { kind: "list", names } }
        : { expected };
    }
    const top = typeof raw === "object" && !Array.isArray(raw) ? raw : {};
    const count = Object.keys(top).join() === "top" ? String(Object.values(top)[0]) : "";
    const fits =
      kind !== "exchanges" && /^\d{1,7}$/.test(count) && Number(count) >= 1 && Number(count) <= MAX_TOP_COUNT;
    return fits ? { value: { kind: "top", count: Number(count) } } : { expected };
  };
  return makeOption(description, defaultValue, parse, formatSelector);
}

function formatSelector(value: Selector): string {
  if (value.kind === "top") return `{ top: ${value.count} }`;
  return value.kind === "list" ? formatList(value.names) : value.kind;
}

function isTextList(raw: RawValue): raw is readonly string[] {
  return Array.isArray(raw) && raw.every((item) => typeof item === "string");
}
