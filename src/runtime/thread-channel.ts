import { setPriority } from "node:os";
import { parentPort, type Transferable } from "node:worker_threads";
import {
  deserialiseFailure,
  type Failure,
  type FailureCode,
  type SerialisedFailure,
  serialiseFailure,
} from "../model/failure.ts";
import { createForwardingLog, type Log, type LogEntry } from "./log.ts";

/** The calls that one side answers: an interface with one method per call. A call without an answer is a notice. */
export type Calls<C> = { readonly [K in keyof C]: (args: never) => unknown };

/** `transfer`: memory that is moved to the other thread instead of copied. */
export type Call<C extends Calls<C>, K extends keyof C> = [
  name: K,
  args: Parameters<C[K]>[0],
  transfer?: readonly Transferable[],
];

/** Sends the answer of a call, at any time: at once, or after other work. For a notice it does nothing. */
export type Answer<Result> = (value: Result, transfer?: readonly Transferable[]) => void;

/** What a handler throws becomes the answer; the error of a notice is not caught. */
export type Handlers<C extends Calls<C>> = {
  readonly [K in keyof C]: (args: Call<C, K>[1], answer: Answer<ReturnType<C[K]>>) => void | Promise<void>;
};

/** One side of two connected threads. */
export interface ThreadPort {
  postMessage(message: unknown, transfer?: readonly Transferable[]): void;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

export interface ChannelOptions<Near extends Calls<Near>> {
  /** Default: the side of a worker thread. */
  readonly port?: ThreadPort | undefined;
  readonly handlers: Handlers<Near>;
  /** The code of an error that is no `Failure`. */
  readonly bugCode: FailureCode;
  /** Where the log of the other side goes. */
  readonly sink?: Log;
}

type Message =
  | { readonly id?: number; readonly name: PropertyKey; readonly args: unknown }
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly failure: SerialisedFailure }
  | { readonly entry: LogEntry };

/** The protocol between two threads: each calls the other (`Far`) and answers its calls (`Near`). */
export class Channel<Far extends Calls<Far>, Near extends Calls<Near>> {
  readonly #options: ChannelOptions<Near>;
  readonly #port: ThreadPort;
  readonly #pending = new Map<number, Omit<PromiseWithResolvers<unknown>, "promise">>();
  #nextId = 1;
  /** Logs on the other side. */
  readonly log = createForwardingLog((entry) => this.#post({ entry }));

  constructor(options: ChannelOptions<Near>) {
    const port = options.port ?? parentPort;
    if (!port) throw new Error("this module runs as a worker thread only");
    this.#options = options;
    this.#port = port;
    port.on("message", (message) => this.#receive(message as Message));
  }

  call<K extends keyof Far>(...[name, args, transfer]: Call<Far, K>): Promise<ReturnType<Far[K]>> {
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#post({ id, name, args }, transfer);
      this.#pending.set(id, { resolve: resolve as (value: unknown) => void, reject });
    });
  }

  /** Sends a notice. */
  send<K extends keyof Far>(...[name, args, transfer]: Call<Far, K>): void {
    this.#post({ name, args }, transfer);
  }

  /** Rejects the calls without an answer: the other side has ended. */
  end(failure: Failure): void {
    for (const { reject } of this.#pending.values()) reject(failure);
    this.#pending.clear();
  }

  #post(message: Message, transfer?: readonly Transferable[]): void {
    this.#port.postMessage(message, transfer);
  }

  #receive(message: Message): void {
    if ("name" in message) this.#serve(message.name as keyof Near, message.args, message.id);
    else if ("entry" in message) {
      const { level, fields, message: text } = message.entry;
      this.#options.sink?.[level](fields, text);
    } else {
      const pending = this.#pending.get(message.id);
      this.#pending.delete(message.id);
      if ("failure" in message) pending?.reject(deserialiseFailure(message.failure));
      else pending?.resolve(message.value);
    }
  }

  #serve<K extends keyof Near>(name: K, args: unknown, id: number | undefined): void {
    const { handlers, bugCode } = this.#options;
    const answer: Answer<unknown> = (value, transfer) => {
      if (id !== undefined) this.#post({ id, value }, transfer);
    };
    const fail = (error: unknown) => {
      if (id === undefined) throw error;
      this.#post({ id, failure: serialiseFailure(error, bugCode) });
    };
    try {
      handlers[name](args as Call<Near, K>[1], answer)?.catch(fail);
    } catch (error) {
      fail(error);
    }
  }
}

/** On Linux this affects only the calling thread: when the CPU is busy, ingest goes first. */
export function lowerPriority(niceness: number): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(niceness);
  } catch {
    // A hardened systemd unit forbids the call.
  }
}
