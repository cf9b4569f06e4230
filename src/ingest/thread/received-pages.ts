import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { Stream } from "../../model/streams.ts";
import { type Page, receivePage } from "../decode/read-page.ts";
import type { PageMessage, WalkSettings } from "./messages.ts";

interface OpenReader {
  readonly pages: Map<number, Page>;
  walk?: WalkSettings;
}

/** The pages that the scan thread has decoded, by their reader: each stays until its commit, or until the reader is closed. */
export class ReceivedPages {
  readonly #port: MessagePort;
  readonly #readers = new Map<number, OpenReader>();

  constructor(port: MessagePort) {
    this.#port = port;
  }

  /**
   * The page of a walk, and what the walk says once, with the first page that it commits. The scan thread sends a page before
   * anyone can name it, so it has arrived.
   */
  get(reader: number, number: number, walk: WalkSettings | undefined) {
    const open = this.#open(reader);
    open.walk ??= walk;
    const page = open.pages.get(number);
    if (!page || !open.walk) throw new Error("a page must be read before it is committed");
    return { page, walk: open.walk };
  }

  /** All pages of a list. */
  list<S extends Stream>(_stream: S, reader: number): Page<S>[] {
    return [...this.#open(reader).pages.values()] as Page<S>[];
  }

  /** Frees the page and those before it: the garbage collector would run three times a second for the columns. */
  drop(reader: number, upTo = Number.POSITIVE_INFINITY): void {
    const { pages } = this.#open(reader);
    for (const [number, page] of pages) {
      if (number > upTo) continue;
      page.columns?.ts.buffer.transfer(0);
      pages.delete(number);
    }
  }

  close(reader: number): void {
    this.drop(reader);
    this.#readers.delete(reader);
  }

  #open(reader: number): OpenReader {
    for (let next = receiveMessageOnPort(this.#port); next; next = receiveMessageOnPort(this.#port)) {
      const { reader: owner, number, page } = next.message as PageMessage;
      this.#find(owner).pages.set(number, receivePage(page));
    }
    return this.#find(reader);
  }

  #find(reader: number): OpenReader {
    const open = this.#readers.get(reader) ?? { pages: new Map() };
    this.#readers.set(reader, open);
    return open;
  }
}
