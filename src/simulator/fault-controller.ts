import type { Clock } from "../runtime/clock.ts";
import { HttpFaults } from "./faults/http-faults.ts";
import type { FaultLine } from "./faults/parser.ts";
import { FaultScript, type StruckLine } from "./faults/script.ts";
import type { TokenDesk } from "./faults/token-faults.ts";
import type { HttpServer } from "./rest/http-server.ts";
import { sendWell } from "./rest/http-types.ts";
import type { LiveServer } from "./websocket/server.ts";

export interface SwitchboardOptions {
  seed: number;
  clock: Clock;
  refreshSeconds: number;
  tokens: TokenDesk;
  server: HttpServer;
  live: LiveServer;
  /** Opens the port again, at the same number. */
  listen(): Promise<void>;
}

/** Sets and ends bad days for all parts of the simulator at once. */
export class FaultSwitchboard {
  readonly #options: SwitchboardOptions;
  #script: FaultScript | undefined;
  #ended = new AbortController();
  /** Closing and opening the port take turns, whatever script asks for it. */
  #port = Promise.resolve();
  #isClosed = false;

  constructor(options: SwitchboardOptions) {
    this.#options = options;
  }

  /** Replaces the script; an empty text ends all faults. Throws a FaultScriptError and changes nothing when it cannot be read. */
  set(text: string): void {
    const { seed, clock, refreshSeconds, tokens, server, live } = this.#options;
    const script = text.trim() === "" ? undefined : new FaultScript(text, { seed, clock });
    this.end();
    this.#script = script;
    server.send = script ? new HttpFaults({ script, clock, refreshSeconds, tokens }).send : sendWell;
    live.setFaults(script);
    for (const line of script?.lines("port") ?? []) this.#refuse(line, this.#ended.signal);
  }

  /** Stops what the script does by itself, and leaves the port open. */
  end(): void {
    this.#ended.abort();
    this.#ended = new AbortController();
    this.#turn(false);
  }

  /** Resolves when the port has become what it was last told to be. */
  async settled(): Promise<void> {
    await this.#port;
  }

  /** How often each line struck: a run that met no fault proves nothing. */
  get struck(): StruckLine[] {
    return this.#script?.struck ?? [];
  }

  #refuse(line: FaultLine, signal: AbortSignal): void {
    const { clock } = this.#options;
    const { from, to } = line.when;
    const strike = () => {
      this.#script?.count(line);
      this.#turn(true);
    };
    // From the beginning means now, not when a turned clock next moves.
    if (from === 0) strike();
    const close = from === 0 ? () => {} : clock.after(from, strike);
    const open = Number.isFinite(to) ? clock.after(to, () => this.#turn(false)) : () => {};
    signal.addEventListener("abort", () => {
      close();
      open();
    });
  }

  #turn(closed: boolean): void {
    // A turned clock waits until the port is what it should be at this moment.
    const release = this.#options.clock.hold();
    this.#port = this.#port
      .then(async () => {
        if (closed === this.#isClosed) return;
        this.#isClosed = closed;
        if (!closed) return this.#options.listen();
        this.#options.live.dropAll();
        await this.#options.server.close();
      })
      .finally(release);
  }
}
