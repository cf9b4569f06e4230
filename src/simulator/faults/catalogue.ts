import { httpFaultDefinitions } from "./catalogue-http.ts";
import { websocketFaultDefinitions } from "./catalogue-websocket.ts";
import {
  choiceParameter,
  defineFault,
  durationParameter,
  type FaultDefinition,
  type FaultEventKind,
  numberParameter,
  rowsParameters,
  textParameter,
} from "./fault-definition.ts";

const requestEvents: readonly FaultEventKind[] = ["request"];
const recordEvents: readonly FaultEventKind[] = ["request", "tick"];

/** Faults that change records, in responses and in live ticks. */
const recordFaultDefinitions: readonly FaultDefinition[] = [
  defineFault("unknown-fields", "payload", recordEvents, rowsParameters, "adds undocumented properties"),
  defineFault(
    "reordered-fields",
    "payload",
    recordEvents,
    rowsParameters,
    "reverses the order of the properties",
  ),
  defineFault(
    "duplicate-keys",
    "payload",
    recordEvents,
    rowsParameters,
    "sends every property twice, the first time with a wrong value",
  ),
  defineFault(
    "proto-key",
    "payload",
    recordEvents,
    rowsParameters,
    "adds __proto__ and constructor as properties",
  ),
  defineFault(
    "decimals",
    "payload",
    recordEvents,
    { as: choiceParameter("number exponent zeros long tiny"), ...rowsParameters },
    "formats decimals as numbers, with an exponent or trailing zeros (same value); with 30 digits, or as 1e-18 (other value)",
  ),
  defineFault(
    "set",
    "payload",
    recordEvents,
    {
      field: textParameter(),
      value: textParameter(""),
      as: choiceParameter("string json", "string"),
      ...rowsParameters,
    },
    "sets a property to a string or to any JSON",
  ),
  defineFault(
    "echo-secrets",
    "payload",
    recordEvents,
    {
      field: textParameter("debug"),
      as: choiceParameter("plain nested escaped url", "plain"),
      ...rowsParameters,
    },
    "sets a property to the client's secret and its newest tokens",
  ),
  defineFault(
    "drop",
    "payload",
    recordEvents,
    { field: textParameter(), ...rowsParameters },
    "removes a property from the envelope, or else from the records",
  ),
  defineFault(
    "timestamps",
    "payload",
    recordEvents,
    {
      as: choiceParameter("us ns no-zone offset zero-offset leap midnight-24 epoch epoch-text 1970 2099"),
      ...rowsParameters,
    },
    "formats timestamps differently; us, ns, offset, zero-offset, epoch and epoch-text mean the same time",
  ),
  defineFault(
    "shift-timestamps",
    "payload",
    recordEvents,
    { by: durationParameter(), ...rowsParameters },
    "moves the timestamps by this duration, which may be negative: a socket with an offset, a record from the future",
  ),
  defineFault("upside-down", "payload", recordEvents, rowsParameters, "swaps high and low"),
  defineFault(
    "big-body",
    "payload",
    requestEvents,
    { mb: numberParameter(50) },
    "repeats the rows until the body has this size",
  ),
  defineFault(
    "deep-nesting",
    "payload",
    requestEvents,
    { depth: numberParameter(100_000) },
    "adds a property with this nesting depth",
  ),
];

/**
 * All faults with their parameters. The parser, the help text and the tests read this table. The first parameters may be
 * written without their names: `status 503` is `status code=503`.
 */
export const faultDefinitions: readonly FaultDefinition[] = [
  ...httpFaultDefinitions,
  ...recordFaultDefinitions,
  ...websocketFaultDefinitions,
];

/** The conditions that any line can have. */
export const faultConditions: Readonly<Record<string, string>> = {
  p: "the probability per event: p=0.05",
  times: "the maximum number of triggers on the same request",
  every: "triggers on every n-th request: every=7",
  after: "the number of times that the same request passes without the fault first",
  total:
    "the maximum number of triggers of this line; the only condition that depends on the order of requests",
  from: "starts this long after the script was set: from=60s",
  to: "ends this long after the script was set: to=120s",
  page: "only the first page of a walk, later pages, or the last: page=first|later|last",
  query: "only with this query parameter or live message property: query=indexType=LX",
};

/** Describes the faults and the conditions, for the help text. */
export function describeFaults(): string {
  const faults = faultDefinitions.map(({ name, group, parameters, description }) => {
    const usage = Object.entries(parameters).map(([key, { choices, kind, defaultValue }]) => {
      const values = choices ? choices.join("|") : kind;
      return defaultValue === undefined ? `${key}=${values}` : `[${key}=${values}]`;
    });
    return `${[name, ...usage].join(" ")}\n    ${group}: ${description}`;
  });
  const conditions = Object.entries(faultConditions).map(
    ([name, description]) => `${name}=…\n    condition: ${description}`,
  );
  return [...faults, ...conditions].join("\n");
}
