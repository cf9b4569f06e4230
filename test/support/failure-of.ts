import { Failure } from "../../src/model/failure.ts";

/** The failure with which the work ends. */
export async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof Failure) return error;
  throw error ?? new Error("expected a failure");
}
