import { httpFaultDefinitions } from "./catalogue-http.ts";
import { websocketFaultDefinitions } from "./catalogue-websocket.ts";
import {
  choiceParameter,
  defineFault,
  type FaultDefinition,
  type FaultEventKind,
  numberParameter,
  rowsParameters,
  textParameter,
} from "./fault-definition.ts";

const http: readonly FaultEventKind[] = ["request"];
const records: readonly FaultEventKind[] = ["request", "tick"];

/** Faults of what records say, in answers and in live ticks. */
export const recordFaultDefinitions: readonly FaultDefinition[] = [
  defineFault(
    "unknown-fields",
    "payload",
    records,
    rowsParameters,
    "adds properties that nobody has announced",
  ),
  defineFault("reordered-fields", "payload", records, rowsParameters, "reverses the order of the properties"),
  defineFault(
    "duplicate-keys",
    "payload",
    records,
    rowsParameters,
    "names every property twice; the first time with a wrong value",
  ),
  defineFault(
    "proto-key",
    "payload",
    records,
    rowsParameters,
    "adds __proto__ and constructor as properties",
  ),
  defineFault(
    "decimals",
    "payload",
    records,
    { as: choiceParameter("number exponent zeros long tiny"), ...rowsParameters },
    "decimals as numbers, with an exponent, with spare zeros (the same value); with 30 digits, or 1e-18 (another value)",
  ),
  defineFault(
    "set",
    "payload",
    records,
    {
      field: textParameter(),
      value: textParameter(""),
      as: choiceParameter("string json", "string"),
      ...rowsParameters,
    },
    "sets a property, to a string or to any JSON",
  ),
  defineFault(
    "drop",
    "payload",
    records,
    { field: textParameter(), ...rowsParameters },
    "leaves a property out: of the records, or of the envelope when it stands there",
  ),
  defineFault(
    "timestamps",
    "payload",
    records,
    { as: choiceParameter("us ns no-zone offset leap midnight-24 epoch 1970 2099"), ...rowsParameters },
    "timestamps in another form: the first, second and fourth name the same moment",
  ),
  defineFault("upside-down", "payload", records, rowsParameters, "swaps high and low"),
  defineFault(
    "big-body",
    "payload",
    http,
    { mb: numberParameter(50) },
    "repeats the rows until the body is this big",
  ),
  defineFault(
    "deep-nesting",
    "payload",
    http,
    { depth: numberParameter(100_000) },
    "adds a property nested this deep",
  ),
];

/**
 * Every word that a fault script knows, with its parameters: the parser, the help text and the tests read this
 * one table. The first parameters of a word may be written without their names: `status 503` is `status code=503`.
 */
export const faultDefinitions: readonly FaultDefinition[] = [
  ...httpFaultDefinitions,
  ...recordFaultDefinitions,
  ...websocketFaultDefinitions,
];

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
export function describeFaults(): string {
  const words = faultDefinitions.map(({ name, group, parameters, description: does }) => {
    const usage = Object.entries(parameters).map(([key, { choices, kind, defaultValue: standard }]) => {
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
