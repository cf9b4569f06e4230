type FaultGroup = "tokens" | "http" | "paging" | "payload" | "websocket";

/**
 * The kind of event on which a fault triggers: an HTTP request; the upgrade, accept, subscribe or unsubscribe of a
 * websocket; a live tick; or the port, when the script is set.
 */
export type FaultEventKind = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

interface FaultParameter {
  kind: "number" | "duration" | "text" | "choice" | "rows";
  choices?: readonly string[];
  /** Absent: the parameter is required. */
  defaultValue?: string;
}

export interface FaultDefinition {
  name: string;
  group: FaultGroup;
  eventKinds: readonly FaultEventKind[];
  parameters: Readonly<Record<string, FaultParameter>>;
  description: string;
}

export const numberParameter = (defaultValue?: number): FaultParameter => ({
  kind: "number",
  ...withDefault(defaultValue?.toString()),
});
export const durationParameter = (defaultValue?: string): FaultParameter => ({
  kind: "duration",
  ...withDefault(defaultValue),
});
export const textParameter = (defaultValue?: string): FaultParameter => ({
  kind: "text",
  ...withDefault(defaultValue),
});
export const choiceParameter = (choices: string, defaultValue?: string): FaultParameter => ({
  kind: "choice",
  choices: choices.split(" "),
  ...withDefault(defaultValue),
});
const withDefault = (defaultValue: string | undefined) =>
  defaultValue === undefined ? {} : { defaultValue };

export const retryAfterParameters = {
  "retry-after": choiceParameter(
    "seconds imf rfc850 asctime past far garbage negative huge exponent none",
    "none",
  ),
  wait: durationParameter("7s"),
};
/** Selects the rows or ticks that a payload fault changes: all, the first, the last, or a random share. */
export const rowsParameters: Record<string, FaultParameter> = { rows: { kind: "rows", defaultValue: "all" } };
export const connectionParameters = {
  on: choiceParameter("accept subscribe tick", "accept"),
  in: durationParameter("0s"),
};

export function defineFault(
  name: string,
  group: FaultGroup,
  eventKinds: readonly FaultEventKind[],
  parameters: Record<string, FaultParameter>,
  description: string,
): FaultDefinition {
  return { name, group, eventKinds, parameters, description };
}
