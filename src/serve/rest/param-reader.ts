import { MAX_PAGE_SIZE } from "../../model/streams.ts";
import { type Micros, parseTimestamp } from "../../model/time.ts";
import { type ParamError, ServeError } from "./serve-error.ts";

const DEFAULT_PAGE_SIZE = 10;

/** Reads the parameters of a request and collects what is wrong with them, so that one answer names every mistake. */
export class ParamReader {
  readonly #object: string;
  readonly #query: URLSearchParams;
  readonly #errors: ParamError[] = [];

  constructor(object: string, query: URLSearchParams) {
    this.#object = object;
    this.#query = query;
  }

  text(name: string): string | undefined {
    return this.#query.get(name) ?? undefined;
  }

  required(name: string): string {
    const value = this.#query.get(name) ?? "";
    if (value === "") this.reject(name, value, "is required");
    return value;
  }

  oneOf<const Value extends string>(name: string, values: readonly Value[]): Value | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = values.find((known) => known === text);
    if (value === undefined) this.reject(name, text, `must be one of ${values.join(", ")}`);
    return value;
  }

  flag(name: string): boolean {
    return this.oneOf(name, ["true", "false"]) === "true";
  }

  timestamp(name: string): Micros | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const ts = parseTimestamp(text);
    if (ts === undefined) this.reject(name, text, "must be an ISO 8601 datetime in UTC");
    return ts;
  }

  size(): number {
    const text = this.text("size");
    if (text === undefined) return DEFAULT_PAGE_SIZE;
    const size = /^\d{1,9}$/.test(text) ? Number(text) : 0;
    if (size < 1 || size > MAX_PAGE_SIZE) this.reject("size", text, `must be from 1 to ${MAX_PAGE_SIZE}`);
    return size;
  }

  reject(field: string, rejectedValue: string, message: string): void {
    this.#errors.push({ object: this.#object, field, rejectedValue, message });
  }

  /** Throws 400 if anything was wrong. Call it after the last parameter. */
  finish(): void {
    if (this.#errors.length > 0) throw new ServeError(400, "Validation error", { errors: this.#errors });
  }
}
