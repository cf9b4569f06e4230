import type { Clock } from "../runtime/clock.ts";
import { HttpFaults } from "./faults/http-faults.ts";
import type { FaultLine } from "./faults/parser.ts";
import { type FaultCount, FaultScript } from "./faults/script.ts";
import type { TokenIssuer } from "./faults/token-faults.ts";
import type { SimulatorHttpServer } from "./rest/http-server.ts";
import { sendWithoutFaults } from "./rest/http-types.ts";
import type { LiveServer } from "./websocket/server.ts";

export interface FaultControllerOptions {
  seed: number;
  clock: Clock;
  refreshSeconds: number;
  tokens: TokenIssuer;
  server: SimulatorHttpServer;
  live: LiveServer;
  /** Opens the port again, at the same number. */
  listen(): Promise<void>;
}

/** Sets and ends bad days for all parts of the simulator at once. */
export class FaultController {
  readonly #options: FaultControllerOptions;
  #script: FaultScript | undefined;
  #scriptEnd = new AbortController();
  /** Closing and opening the port take turns, whatever script asks for it. */
  #portChange = Promise.resolve();
  #isClosed = false;

  constructor(options: FaultControllerOptions) {
    this.#options = options;
  }

  /** Replaces the script; an empty text ends all faults. Throws a FaultScriptError and changes nothing when it cannot be read. */
  setScript(text: string): void {
    const { seed, clock, refreshSeconds, tokens, server, live } = this.#options;
    const script = text.trim() === "" ? undefined : new FaultScript(text, { seed, clock });
    this.endScript();
    this.#script = script;
    server.sendResponse = script
      ? new HttpFaults({ script, clock, refreshSeconds, tokens }).sendResponse
      : sendWithoutFaults;
    live.setFaults(script);
    for (const line of script?.linesFor("port") ?? [])
      this.#schedulePortClosure(line, this.#scriptEnd.signal);
  }

  /** Stops what the script does by itself, and leaves the port open. */
  endScript(): void {
    this.#scriptEnd.abort();
    this.#scriptEnd = new AbortController();
    this.#setPortClosed(false);
  }

  /** Resolves when the port has become what it was last told to be. */
  async waitForPort(): Promise<void> {
    await this.#portChange;
  }

  /** How often each line struck: a run that met no fault proves nothing. */
  get counts(): FaultCount[] {
    return this.#script?.counts ?? [];
  }

  #schedulePortClosure(line: FaultLine, signal: AbortSignal): void {
    const { clock } = this.#options;
    const { from, to } = line.conditions;
    const strike = () => {
      this.#script?.countTrigger(line);
      this.#setPortClosed(true);
    };
    // From the beginning means now, not when a turned clock next moves.
    if (from === 0) strike();
    const close = from === 0 ? () => {} : clock.after(from, strike);
    const open = Number.isFinite(to) ? clock.after(to, () => this.#setPortClosed(false)) : () => {};
    signal.addEventListener("abort", () => {
      close();
      open();
    });
  }

  #setPortClosed(shouldClose: boolean): void {
    // A turned clock waits until the port is what it should be at this moment.
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
