import { httpWords } from "./catalogue-http.ts";
import { liveWords } from "./catalogue-websocket.ts";
import { choice, type FaultMoment, type FaultWord, number, rows, text, word } from "./fault-definition.ts";

const http: readonly FaultMoment[] = ["request"];
const records: readonly FaultMoment[] = ["request", "tick"];

/** Faults of what records say, in answers and in live ticks. */
export const recordWords: readonly FaultWord[] = [
  word("unknown-fields", "payload", records, rows, "adds properties that nobody has announced"),
  word("reordered-fields", "payload", records, rows, "reverses the order of the properties"),
  word(
    "duplicate-keys",
    "payload",
    records,
    rows,
    "names every property twice; the first time with a wrong value",
  ),
  word("proto-key", "payload", records, rows, "adds __proto__ and constructor as properties"),
  word(
    "decimals",
    "payload",
    records,
    { as: choice("number exponent zeros long tiny"), ...rows },
    "decimals as numbers, with an exponent, with spare zeros (the same value); with 30 digits, or 1e-18 (another value)",
  ),
  word(
    "set",
    "payload",
    records,
    { field: text(), value: text(""), as: choice("string json", "string"), ...rows },
    "sets a property, to a string or to any JSON",
  ),
  word(
    "drop",
    "payload",
    records,
    { field: text(), ...rows },
    "leaves a property out: of the records, or of the envelope when it stands there",
  ),
  word(
    "timestamps",
    "payload",
    records,
    { as: choice("us ns no-zone offset leap midnight-24 epoch 1970 2099"), ...rows },
    "timestamps in another form: the first, second and fourth name the same moment",
  ),
  word("upside-down", "payload", records, rows, "swaps high and low"),
  word("big-body", "payload", http, { mb: number(50) }, "repeats the rows until the body is this big"),
  word("deep-nesting", "payload", http, { depth: number(100_000) }, "adds a property nested this deep"),
];

/**
 * Every word that a fault script knows, with its parameters: the parser, the help text and the tests read this
 * one table. The first parameters of a word may be written without their names: `status 503` is `status code=503`.
 */
export const faultWords: readonly FaultWord[] = [...httpWords, ...recordWords, ...liveWords];

/** What may follow the word and its parameters, on every line. */
export const faultConditions: Readonly<Record<string, string>> = {
  p: "the probability of each draw: p=0.05",
  times: "at most so many strikes on the very same request",
  every: "one request in so many, evenly: every=7",
  after: "the very same request passes so many times first",
  total: "at most so many strikes in all; the one condition that depends on the order of arrival",
  from: "not before so long after the script was set: from=60s",
  to: "not from then on: to=120s",
  page: "the first page of a walk, later ones, or the last: page=first|later|last",
  query: "only with this query parameter, or property of a live message: query=indexType=LX",
};

/** The words, and then the conditions, for help texts. */
export function describeFaultWords(): string {
  const words = faultWords.map(({ word: name, group, parameters, does }) => {
    const usage = Object.entries(parameters).map(([key, { choices, kind, standard }]) => {
      const values = choices ? choices.join("|") : kind;
      return standard === undefined ? `${key}=${values}` : `[${key}=${values}]`;
    });
    return `${[name, ...usage].join(" ")}\n    ${group}: ${does}`;
  });
  const conditions = Object.entries(faultConditions).map(
    ([name, does]) => `${name}=…\n    condition: ${does}`,
  );
  return [...words, ...conditions].join("\n");
}
