import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Connections at once. */
const MOST_VISITORS = 256;
/** Questions on one connection that are asked before the answers to earlier ones were taken. */
const MOST_UNTAKEN = 16;

interface Visit {
  /** Questions that we are about to answer. */
  inWork: number;
  /** Questions whose answer has not been taken whole. */
  untaken: number;
}

/**
 * Who is connected, and whom we wait for: those who have not asked yet, or do not take their answer. Where there are too
 * many, the one that has kept us waiting longest makes room. So no crowd of idle connections keeps a health check out.
 */
export class Visitors {
  readonly #visits = new Map<Socket, Visit>();
  /** The one that has kept us waiting longest comes first. */
  readonly #awaited = new Set<Socket>();

  enter(socket: Socket): void {
    this.#visits.set(socket, { inWork: 0, untaken: 0 });
    this.#awaited.add(socket);
    socket.once("close", () => {
      this.#visits.delete(socket);
      this.#awaited.delete(socket);
    });
    const [longest] = this.#awaited;
    if (this.#visits.size > MOST_VISITORS && longest) this.#dismiss(longest);
  }

  /** False: it is not to be answered. Otherwise the result is called as soon as the answer is on its way. */
  asks({ socket }: IncomingMessage, response: ServerResponse): (() => void) | false {
    const visit = this.#visits.get(socket);
    if (!visit) return false;
    // Answers that nobody takes lie in memory: who goes on asking does not mean to read them.
    if (visit.untaken >= MOST_UNTAKEN) {
      this.#dismiss(socket);
      return false;
    }
    visit.untaken++;
    visit.inWork++;
    this.#awaited.delete(socket);
    response.once("close", () => {
      visit.untaken--;
    });
    return () => {
      visit.inWork--;
      if (visit.inWork === 0 && this.#visits.has(socket)) this.#awaited.add(socket);
    };
  }

  /** Nothing has moved on the connection for long: where it is not us who keep it waiting, it ends. */
  isSilent(socket: Socket): void {
    if (this.#awaited.has(socket)) this.#dismiss(socket);
  }

  #dismiss(socket: Socket): void {
    this.#visits.delete(socket);
    this.#awaited.delete(socket);
    socket.destroy();
  }
}
