import type { FaultWord } from "./fault-vocabulary.ts";
import { httpWords } from "./fault-words-http.ts";
import { liveWords } from "./fault-words-live.ts";
import { recordWords } from "./fault-words-record.ts";

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
