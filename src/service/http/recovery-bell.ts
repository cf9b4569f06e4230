/** A success after failures, of REST, the websocket or the token endpoint, wakes whoever waits for the service. */
export class RecoveryBell {
  readonly #listeners = new Set<() => void>();

  ring(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Returns a function that removes the listener. */
  onRing(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
