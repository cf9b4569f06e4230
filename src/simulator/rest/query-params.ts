import { parseUtcMs } from "../market/format.ts";
import type { Quirks } from "../market/quirks.ts";
import { type FieldError, HttpError } from "./errors.ts";

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Reads the query of one request. Collects all validation errors, so that one 400 lists all of them. */
export class QueryParams {
  readonly #object: string;
  readonly #query: URLSearchParams;
  readonly #quirks: Quirks;
  readonly #errors: FieldError[] = [];

  constructor(object: string, query: URLSearchParams, quirks: Quirks) {
    this.#object = object;
    this.#query = query;
    this.#quirks = quirks;
  }

  text(field: string): string | undefined {
    return this.#query.get(field) ?? undefined;
  }

  id(field: string): string | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    if (value === "" || (this.#quirks.ids === "uuid" && !UUID_PATTERN.test(value)))
      this.addError(field, "must be a uuid");
    return value;
  }

  requiredId(field: string): string {
    const value = this.id(field);
    if (value === undefined) this.addError(field, "must not be null");
    return value ?? "";
  }

  oneOf<T extends string>(field: string, allowed: readonly T[]): T | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) this.addError(field, `must be one of ${allowed.join(", ")}`);
    return found;
  }

  size(): number {
    const value = this.text("size");
    if (value === undefined) return 10;
    const size = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    const { maxSize } = this.#quirks;
    if (!(size >= 1 && size <= maxSize)) this.addError("size", `must be between 1 and ${maxSize}`);
    return size;
  }

  timestamp(field: string): number | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    const ms = parseUtcMs(value);
    if (ms === undefined) this.addError(field, "must be an ISO 8601 date-time in UTC");
    return ms;
  }

  addError(field: string, message: string): void {
    this.#errors.push({ object: this.#object, field, rejectedValue: this.text(field) ?? "null", message });
  }

  /** Call after reading the last parameter. */
  throwIfInvalid(): void {
    if (this.#errors.length > 0)
      throw new HttpError(400, "Validation error", this.#quirks.fieldErrors ? this.#errors : []);
  }
}
