/** The forms in which fault words are declared. */
export type FaultGroup = "tokens" | "http" | "paging" | "payload" | "websocket";

/**
 * The moment at which a word is drawn: an HTTP request; a websocket's upgrade, accept, subscribe or unsubscribe
 * message, or one tick; or the port, when the script is set.
 */
export type FaultMoment = "request" | "upgrade" | "accept" | "subscribe" | "unsubscribe" | "tick" | "port";

export interface FaultParameter {
  kind: "number" | "duration" | "text" | "choice" | "rows";
  choices?: readonly string[];
  /** Left out: the parameter must be given. */
  standard?: string;
}

export interface FaultWord {
  word: string;
  group: FaultGroup;
  moments: readonly FaultMoment[];
  parameters: Readonly<Record<string, FaultParameter>>;
  does: string;
}

export const number = (standard?: number): FaultParameter => ({
  kind: "number",
  ...given(standard?.toString()),
});
export const duration = (standard?: string): FaultParameter => ({ kind: "duration", ...given(standard) });
export const text = (standard?: string): FaultParameter => ({ kind: "text", ...given(standard) });
export const choice = (choices: string, standard?: string): FaultParameter => ({
  kind: "choice",
  choices: choices.split(" "),
  ...given(standard),
});
const given = (standard: string | undefined) => (standard === undefined ? {} : { standard });

export const retryAfter = {
  "retry-after": choice("seconds imf rfc850 asctime past far garbage negative huge exponent none", "none"),
  wait: duration("7s"),
};
/** Which rows of an answer, or which ticks, a payload word mangles: all, the first, the last, or a share drawn by record. */
export const rows: Record<string, FaultParameter> = { rows: { kind: "rows", standard: "all" } };
export const connection = { on: choice("accept subscribe tick", "accept"), in: duration("0s") };

export function word(
  name: string,
  group: FaultGroup,
  moments: readonly FaultMoment[],
  parameters: Record<string, FaultParameter>,
  does: string,
): FaultWord {
  return { word: name, group, moments, parameters, does };
}
