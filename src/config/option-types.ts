import { Cron } from "croner";
import type { Selector } from "../model/selector.ts";
import { findUrlProblem, isHost, listServerUrls } from "../model/service-url.ts";
import { serviceScopes } from "../model/streams.ts";
import { parseDuration, secondsPerUnit } from "../model/time.ts";

/**
 * A setting's value before it is parsed. Every scalar is text: YAML would turn the coin symbol `TRUE` into a boolean
 * and `1e5` into a number.
 */
export type RawValue = string | readonly RawValue[] | { readonly [key: string]: RawValue };

/** What a setting may be. */
interface ValueType<T> {
  /** For the operator who gave something else. */
  readonly expected: string | ((raw: RawValue) => string);
  /** Undefined: it is not what is expected. */
  readonly parse: (raw: RawValue) => { readonly value: T } | undefined;
  /** A value as a user would write it in the file. */
  readonly format: (value: T) => string;
}

export interface OptionNames {
  readonly env?: string;
  /** The flag, in commander's notation. */
  readonly flag?: string;
}

export interface Option<T> extends OptionNames, ValueType<T> {
  readonly option: true;
  /** One line, printed by the help, the example file and the settings listing. */
  readonly help: string;
  readonly defaultValue: T;
}

/** A setting that may be undefined is so by default; any other needs a default. */
export function option<T>(
  type: ValueType<T>,
  help: string,
  ...[defaultValue]: undefined extends T ? [] : [NoInfer<T>]
): Option<T> {
  return { option: true, ...type, help, defaultValue: defaultValue as T };
}

/** What to give in place of a value that the option does not parse. */
export function describeExpected({ expected }: Pick<Option<unknown>, "expected">, raw: RawValue): string {
  return typeof expected === "string" ? expected : expected(raw);
}

const toText = (raw: RawValue) => (typeof raw === "string" ? raw.trim() : "");
const formatScalar = (value: string | number | boolean | undefined) => String(value ?? "");
const formatText = (value: string) => (/^[\w./:-]+$/.test(value) ? value : JSON.stringify(value));
const formatList = (values: readonly string[]) => `[${values.map(formatText).join(", ")}]`;

function isTextList(raw: RawValue | undefined): raw is readonly string[] {
  return Array.isArray(raw) && raw.every((item) => typeof item === "string");
}

/** The fields of a mapping; undefined: it is something else. */
function toFields(raw: RawValue): { readonly [key: string]: RawValue } | undefined {
  return typeof raw === "string" || Array.isArray(raw) ? undefined : (raw as { [key: string]: RawValue });
}

/** One text that `parse` accepts: it returns undefined for any other. */
function scalar<T extends string | number | boolean>(
  expected: string,
  parse: (text: string) => T | undefined,
  format: (value: T) => string = formatScalar,
): ValueType<T> {
  const parseRaw = (raw: RawValue) => {
    const value = typeof raw === "string" ? parse(raw.trim()) : undefined;
    return value === undefined ? undefined : { value };
  };
  return { expected, parse: parseRaw, format };
}

const textType = (expected: string, accepts: (text: string) => boolean) =>
  scalar(expected, (text) => (accepts(text) ? text : undefined), formatText);

export const textValue = textType("a non-empty text", (text) => text !== "");

export const anyText = textType("a text", () => true);

export const optionalText: ValueType<string | undefined> = { ...textValue, format: formatScalar };

export const hostValue = textType("an address such as 127.0.0.1 or ::1, or a host name", isHost);

export const httpUrl = textType(
  'an http:// or https:// address without user name or password, or ""',
  (text) => {
    const { protocol = "", username, password } = URL.parse(text) ?? {};
    return text === "" || (/^https?:$/.test(protocol) && username === "" && password === "");
  },
);

/** The address of a PostgreSQL database. The password is a secret, so it must not be part of it. */
export const postgresUrl = textType(
  'an address such as postgres://user@host:5432/database?sslmode=verify-full, without the password, or ""',
  (text) => text === "" || listServerUrls(text) !== undefined,
);

/** A folder or a bucket; empty: the default folder. */
export const exportTarget = textType(
  "a folder, or s3://BUCKET/PREFIX",
  (text) => !/^\w+:/.test(text) || /^s3:\/\/[^/]+/.test(text),
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
export const cronTimes = textType(
  'five cron fields in UTC such as "10 0 * * *" (minute hour day month weekday), or "" for never',
  (text) => text === "" || (cronPattern.test(text) && hasTimes(text)),
);

/** A URL, stored verbatim because it is also the token's audience. */
export function serviceUrl(scheme: "http" | "ws"): ValueType<string | undefined> {
  const isAddress = (text: string) => {
    const { protocol = "", search, hash } = URL.parse(text) ?? {};
    const hasScheme = [`${scheme}:`, `${scheme}s:`].includes(protocol);
    return findUrlProblem(text) === undefined && hasScheme && search === "" && hash === "";
  };
  // The client adds the version to the path of every request, so the service would answer 404 to all of them.
  const isVersioned = (text: string) => scheme === "http" && /\/v3\/?$/.test(URL.parse(text)?.pathname ?? "");
  return {
    expected(raw) {
      const text = toText(raw);
      return isAddress(text) && isVersioned(text)
        ? `the address without /v3: ${text.replace(/\/v3\/?$/, "")}`
        : `an address such as ${scheme}s://host (${scheme}:// only to localhost), without user name or password`;
    },
    parse(raw) {
      const value = toText(raw);
      return isAddress(value) && !isVersioned(value) ? { value } : undefined;
    },
    format: formatScalar,
  };
}

/** One of a few words. `removed`: words of earlier versions, with what to give instead. */
export function oneOf<const Choice extends string>(
  choices: readonly Choice[],
  removed: Readonly<Record<string, string>> = {},
): ValueType<Choice> {
  const words = choices.join(" or ");
  const type = scalar(words, (text) => choices.find((each) => each === text));
  return { ...type, expected: (raw) => removed[toText(raw)] ?? words };
}

export const boolean = scalar("true or false", (text) =>
  text === "true" || text === "false" ? text === "true" : undefined,
);

export const integer = (min: number, max: number) =>
  scalar(`a whole number from ${min} to ${max}`, (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  });

function formatDuration(seconds: number): string {
  const unit =
    (["d", "h", "m"] as const).find((name) => seconds > 0 && seconds % secondsPerUnit[name] === 0) ?? "s";
  return `${seconds / secondsPerUnit[unit]}${unit}`;
}

/** A duration, in seconds. */
export function durationValue(min: string): ValueType<number> {
  const minSeconds = parseDuration(min) ?? 0;
  const parse = (text: string) => {
    const seconds = parseDuration(text);
    return seconds !== undefined && seconds >= minSeconds ? seconds : undefined;
  };
  return scalar(`a duration of at least ${min}, such as 30s, 5m, 1h or 2d`, parse, formatDuration);
}

/** How long to store rows, in seconds; undefined: forever. */
export const retention: ValueType<number | undefined> = {
  expected: "forever, or a number of days such as 90d",
  parse(raw) {
    if (raw === "forever") return { value: undefined };
    const value = typeof raw === "string" && raw.endsWith("d") ? parseDuration(raw) : undefined;
    return value ? { value } : undefined;
  },
  format: (seconds) => (seconds === undefined ? "forever" : formatDuration(seconds)),
};

export const textList: ValueType<readonly string[]> = {
  expected: "a list such as [a, b]",
  parse: (raw) => (isTextList(raw) && !raw.includes("") ? { value: raw } : undefined),
  format: formatList,
};

/** A list of some of these words, in their order. */
export function wordList<const Word extends string>(words: readonly Word[]): ValueType<readonly Word[]> {
  return {
    expected: `a list of ${words.join(", ")}`,
    parse(raw) {
      const areKnown = isTextList(raw) && raw.every((item) => words.some((known) => known === item));
      return areKnown ? { value: words.filter((known) => raw.includes(known)) } : undefined;
    },
    format: formatList,
  };
}

/** A client of `mds-sync serve`. */
export interface ServeClientSetting {
  readonly id: string;
  readonly secretHashFile: string;
  readonly scopes: readonly string[];
}

function parseServeClient(raw: RawValue): ServeClientSetting | undefined {
  const { id, secretHashFile, scopes = serviceScopes, ...others } = toFields(raw) ?? {};
  const areTexts = typeof id === "string" && typeof secretHashFile === "string";
  const areScopes = isTextList(scopes) && scopes.every((scope) => serviceScopes.some((s) => s === scope));
  if (!areTexts || id === "" || secretHashFile === "" || !areScopes) return undefined;
  return Object.keys(others).length === 0 ? { id, secretHashFile, scopes } : undefined;
}

export const serveClients: ValueType<readonly ServeClientSetting[]> = {
  expected: `a list of { id: NAME, secretHashFile: FILE, scopes: [read:ohlcv, …] }; without scopes a client may read everything`,
  parse(raw) {
    const clients = Array.isArray(raw) ? raw.map(parseServeClient) : [undefined];
    const value = clients.filter((client) => client !== undefined);
    const isUnique = new Set(value.map(({ id }) => id)).size === value.length;
    return value.length === clients.length && isUnique ? { value } : undefined;
  },
  format(clients) {
    const texts = clients.map(
      ({ id, secretHashFile, scopes }) =>
        `{ id: ${formatText(id)}, secretHashFile: ${formatText(secretHashFile)}, scopes: ${formatList(scopes)} }`,
    );
    return `[${texts.join(", ")}]`;
  },
};

const lxIndexNames = ["BLX", "ELX", "XRPLX"] as const;

export const lxIndexIds: ValueType<Readonly<Record<string, string>>> = {
  expected: `a mapping of ${lxIndexNames.join(", ")} to index ids, such as { BLX: 0123-… }`,
  parse(raw) {
    const ids = toFields(raw);
    const fits = Object.entries(ids ?? {}).every(
      ([name, id]) => lxIndexNames.some((known) => known === name) && typeof id === "string" && id !== "",
    );
    return ids && fits ? { value: { ...ids } as Record<string, string> } : undefined;
  },
  format(ids) {
    const pairs = Object.entries(ids).map(([name, id]) => `${name}: ${formatText(id)}`);
    return pairs.length === 0 ? "{}" : `{ ${pairs.join(", ")} }`;
  },
};

const MAX_TOP_COUNT = 1_000_000;
const selectorExamples = {
  assets: "[BTC, ETH]",
  pairs: "[BTC/USD, ETH/USD]",
  indices: "[BLX]",
  exchanges: "[Kraken]",
};

export function selector(of: keyof typeof selectorExamples): ValueType<Selector> {
  // Exchanges have no rank.
  const hasTop = of !== "exchanges";
  return {
    expected: `all, none, ${hasTop ? "{ top: N }, " : ""}or a list such as ${selectorExamples[of]}`,
    parse(raw) {
      if (raw === "all" || raw === "none") return { value: { kind: raw } };
      if (isTextList(raw)) {
        const names = raw.map((name) => name.trim());
        return names.length > 0 && !names.includes("") ? { value: { kind: "list", names } } : undefined;
      }
      const { top = "", ...others } = toFields(raw) ?? {};
      const count = Object.keys(others).length === 0 && /^\d{1,7}$/.test(String(top)) ? Number(top) : 0;
      return hasTop && count >= 1 && count <= MAX_TOP_COUNT ? { value: { kind: "top", count } } : undefined;
    },
    format(value) {
      if (value.kind === "top") return `{ top: ${value.count} }`;
      return value.kind === "list" ? formatList(value.names) : value.kind;
    },
  };
}
