import type { Clock } from "../runtime/clock.ts";
import { type ChangedResponse, HttpFaults } from "./faults/http-faults.ts";
import type { FaultLine } from "./faults/parser.ts";
import { type FaultCount, FaultScript } from "./faults/script.ts";
import type { TokenIssuer } from "./faults/token-faults.ts";
import type { SimulatorHttpServer } from "./rest/http-server.ts";
import { sendWithoutFaults } from "./rest/http-types.ts";
import type { Tokens } from "./rest/tokens.ts";
import type { LiveServer } from "./websocket/server.ts";

interface FaultControllerOptions {
  seed: number;
  clock: Clock;
  tokens: TokenIssuer & Pick<Tokens, "secrets">;
  server: SimulatorHttpServer;
  live: LiveServer;
  onChanged?: ((change: ChangedResponse) => void) | undefined;
  /** Opens the same port again. */
  listen(): Promise<void>;
}

/** Applies a fault script to all parts of the simulator. */
export class FaultController {
  readonly #options: FaultControllerOptions;
  #script: FaultScript | undefined;
  #scriptEnd = new AbortController();
  /** Serialises closing and opening the port, even across scripts. */
  #portChange = Promise.resolve();
  #isClosed = false;

  constructor(options: FaultControllerOptions) {
    this.#options = options;
  }

  /** Replaces the script; an empty text ends all faults. Throws a FaultScriptError and changes nothing on a syntax error. */
  setScript(text: string): void {
    const { seed, clock, tokens, server, live, onChanged } = this.#options;
    const script =
      text.trim() === "" ? undefined : new FaultScript(text, { seed, clock, secrets: () => tokens.secrets });
    this.endScript();
    this.#script = script;
    server.sendResponse = script
      ? new HttpFaults({ script, clock, tokens, onChanged }).sendResponse
      : sendWithoutFaults;
    live.setFaults(script);
    for (const line of script?.linesFor("port") ?? [])
      this.#schedulePortClosure(line, this.#scriptEnd.signal);
  }

  /** Cancels the timers of the script and opens the port. */
  endScript(): void {
    this.#scriptEnd.abort();
    this.#scriptEnd = new AbortController();
    this.#setPortClosed(false);
  }

  /** Resolves when all requested port changes are done. */
  async waitForPort(): Promise<void> {
    await this.#portChange;
  }

  /** How often each line triggered. */
  get counts(): FaultCount[] {
    return this.#script?.counts ?? [];
  }

  #schedulePortClosure(line: FaultLine, signal: AbortSignal): void {
    const { clock } = this.#options;
    const { from, to } = line.conditions;
    const closePort = () => {
      this.#script?.countTrigger(line);
      this.#setPortClosed(true);
    };
    // from=0 means now. A timer would only fire when a manual clock next advances.
    if (from === 0) closePort();
    const cancelClose = from === 0 ? () => {} : clock.after(from, closePort);
    const cancelOpen = Number.isFinite(to) ? clock.after(to, () => this.#setPortClosed(false)) : () => {};
    signal.addEventListener("abort", () => {
      cancelClose();
      cancelOpen();
    });
  }

  #setPortClosed(shouldClose: boolean): void {
    // Holds a manual clock until the port has changed.
    const release = this.#options.clock.beginWork();
    this.#portChange = this.#portChange
      .then(async () => {
        if (shouldClose === this.#isClosed) return;
        this.#isClosed = shouldClose;
        if (!shouldClose) return this.#options.listen();
        this.#options.live.dropAll();
        await this.#options.server.close();
      })
      .finally(release);
  }
}
