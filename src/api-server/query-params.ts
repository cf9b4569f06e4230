import { type Micros, parseTimestamp } from "../model/time.ts";
import { ApiError, type FieldError } from "./api-error.ts";
import type { EndpointRequest } from "./responses.ts";

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
export const DEFAULT_PAGE_SIZE = 10;

export type QueryParams = ReturnType<typeof readParams>;

/** Reads the query of one request. Collects all validation errors, so that one 400 lists all of them. */
export function readParams(object: string, { query, choices }: Pick<EndpointRequest, "query" | "choices">) {
  const errors: FieldError[] = [];
  const text = (field: string) => query.get(field) ?? undefined;
  const addError = (field: string, message: string, rejectedValue = text(field) ?? "null") =>
    void errors.push({ object, field, rejectedValue, message });

  /** `value`: given elsewhere than in the query. */
  function check<const T extends string>(field: string, value: string | undefined, allowed: readonly T[]) {
    if (value === undefined) return undefined;
    const found = allowed.find((candidate) => candidate === value);
    if (found === undefined) addError(field, `must be one of ${allowed.join(", ")}`, value);
    return found;
  }
  const oneOf = <const T extends string>(field: string, allowed: readonly T[]) =>
    check(field, text(field), allowed);

  function id(field: string): string | undefined {
    const value = text(field);
    if (value === undefined) return undefined;
    if (value === "" || (choices.ids === "uuid" && !UUID_PATTERN.test(value)))
      addError(field, "must be a uuid");
    return value;
  }

  return {
    ...{ text, id, check, oneOf, addError },
    flag: (field: string) => oneOf(field, ["true", "false"]) === "true",
    requiredId(field: string): string {
      const value = id(field);
      if (value === undefined) addError(field, "is required");
      return value ?? "";
    },
    size(): number {
      const value = text("size");
      if (value === undefined) return DEFAULT_PAGE_SIZE;
      const size = /^\d{1,9}$/.test(value) ? Number(value) : 0;
      const { maxSize } = choices;
      if (size < 1 || size > maxSize) addError("size", `must be between 1 and ${maxSize}`);
      return size;
    },
    timestamp(field: string): Micros | undefined {
      const value = text(field);
      if (value === undefined) return undefined;
      const ts = value.endsWith("Z") ? parseTimestamp(value) : undefined;
      if (ts === undefined) addError(field, "must be an ISO 8601 date-time in UTC");
      return ts;
    },
    /** Call after reading the last parameter. */
    throwIfInvalid(): void {
      if (errors.length > 0)
        throw new ApiError(400, "Validation error", { errors: choices.fieldErrors ? errors : [] });
    },
  };
}
