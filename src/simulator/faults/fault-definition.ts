/** The forms in which fault words are declared. */
export type FaultGroup = "tokens" | "http" | "paging" | "payload" | "websocket";

/**
 * The moment at which a word is drawn: an HTTP request; a websocket's upgrade, accept, subscribe or unsubscribe
 * message, or one tick; or the port, when the script is set.
 */
export type FaultEventKind = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

export interface FaultParameter {
  kind: "number" | "duration" | "text" | "choice" | "rows";
  choices?: readonly string[];
  /** Left out: the parameter must be given. */
  defaultValue?: string;
}

export interface FaultDefinition {
  name: string;
  group: FaultGroup;
  eventKinds: readonly FaultEventKind[];
  parameters: Readonly<Record<string, FaultParameter>>;
  description: string;
}

export const numberParameter = (standard?: number): FaultParameter => ({
  kind: "number",
  ...withDefault(standard?.toString()),
});
export const durationParameter = (standard?: string): FaultParameter => ({
  kind: "duration",
  ...withDefault(standard),
});
export const textParameter = (standard?: string): FaultParameter => ({
  kind: "text",
  ...withDefault(standard),
});
export const choiceParameter = (choices: string, standard?: string): FaultParameter => ({
  kind: "choice",
  choices: choices.split(" "),
  ...withDefault(standard),
});
const withDefault = (standard: string | undefined) =>
  standard === undefined ? {} : { defaultValue: standard };

export const retryAfterParameters = {
  "retry-after": choiceParameter(
    "seconds imf rfc850 asctime past far garbage negative huge exponent none",
    "none",
  ),
  wait: durationParameter("7s"),
};
/** Which rows of an answer, or which ticks, a payload word mangles: all, the first, the last, or a share drawn by record. */
export const rowsParameters: Record<string, FaultParameter> = { rows: { kind: "rows", defaultValue: "all" } };
export const connectionParameters = {
  on: choiceParameter("accept subscribe tick", "accept"),
  in: durationParameter("0s"),
};

export function defineFault(
  name: string,
  group: FaultGroup,
  moments: readonly FaultEventKind[],
  parameters: Record<string, FaultParameter>,
  does: string,
): FaultDefinition {
  return { name: name, group, eventKinds: moments, parameters, description: does };
}
