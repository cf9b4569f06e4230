import { type Micros, parseTimestamp } from "../model/time.ts";
import { ApiError, type FieldError } from "./api-error.ts";
import type { Choices } from "./choices.ts";

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const DEFAULT_PAGE_SIZE = 10;

/** Reads the query of one request. Collects all validation errors, so that one 400 lists all of them. */
export class QueryParams {
  readonly #object: string;
  readonly #query: URLSearchParams;
  readonly #choices: Choices;
  readonly #errors: FieldError[] = [];

  constructor(object: string, query: URLSearchParams, choices: Choices) {
    this.#object = object;
    this.#query = query;
    this.#choices = choices;
  }

  text(field: string): string | undefined {
    return this.#query.get(field) ?? undefined;
  }

  id(field: string): string | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    if (value === "" || (this.#choices.ids === "uuid" && !UUID_PATTERN.test(value)))
      this.addError(field, "must be a uuid");
    return value;
  }

  requiredId(field: string): string {
    const value = this.id(field);
    if (value === undefined) this.addError(field, "is required");
    return value ?? "";
  }

  oneOf<const T extends string>(field: string, allowed: readonly T[]): T | undefined {
    return this.check(field, this.text(field), allowed);
  }

  /** `value`: given elsewhere than in the query. */
  check<const T extends string>(
    field: string,
    value: string | undefined,
    allowed: readonly T[],
  ): T | undefined {
    if (value === undefined) return undefined;
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) this.addError(field, `must be one of ${allowed.join(", ")}`, value);
    return found;
  }

  flag(field: string): boolean {
    return this.oneOf(field, ["true", "false"]) === "true";
  }

  size(): number {
    const value = this.text("size");
    if (value === undefined) return DEFAULT_PAGE_SIZE;
    const size = /^\d{1,9}$/.test(value) ? Number(value) : 0;
    const { maxSize } = this.#choices;
    if (size < 1 || size > maxSize) this.addError("size", `must be between 1 and ${maxSize}`);
    return size;
  }

  timestamp(field: string): Micros | undefined {
    const value = this.text(field);
    if (value === undefined) return undefined;
    const ts = value.endsWith("Z") ? parseTimestamp(value) : undefined;
    if (ts === undefined) this.addError(field, "must be an ISO 8601 date-time in UTC");
    return ts;
  }

  addError(field: string, message: string, rejectedValue = this.text(field) ?? "null"): void {
    this.#errors.push({ object: this.#object, field, rejectedValue, message });
  }

  /** Call after reading the last parameter. */
  throwIfInvalid(): void {
    if (this.#errors.length > 0)
      throw new ApiError(400, "Validation error", { errors: this.#choices.fieldErrors ? this.#errors : [] });
  }
}
