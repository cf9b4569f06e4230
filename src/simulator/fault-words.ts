import type { FaultWord } from "./fault-vocabulary.ts";
import { httpWords } from "./fault-words-http.ts";
import { liveWords } from "./fault-words-live.ts";
import { recordWords } from "./fault-words-record.ts";

/**
 * Every word that a fault script knows, with its parameters: the parser, the help text and the tests read this
 * one table. The first parameters of a word may be written without their names: `status 503` is `status code=503`.
 */
export const faultWords: readonly FaultWord[] = [...httpWords, ...recordWords, ...liveWords];

/** One line per word, for help texts. */
export function describeFaultWords(): string {
  return faultWords
    .map(({ word: name, group, parameters, does }) => {
      const usage = Object.entries(parameters).map(([key, { choices, kind, standard }]) => {
        const values = choices ? choices.join("|") : kind;
        return standard === undefined ? `${key}=${values}` : `[${key}=${values}]`;
      });
      return `${[name, ...usage].join(" ")}\n    ${group}: ${does}`;
    })
    .join("\n");
}
