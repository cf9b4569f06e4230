import { describe, expect, it } from "vitest";
import {
  deserialiseFailure,
  exitCode,
  Failure,
  failureCode,
  policyOf,
  serialiseFailure,
} from "../../src/model/failure.ts";

describe("a failure", () => {
  it("takes its family and its exit code from its code, and a usual exit code from the family", () => {
    expect(new Failure("x", { code: "timeout" })).toMatchObject({ family: "retry", exit: exitCode.tryLater });
    expect(new Failure("x", { code: "settings" })).toMatchObject({
      family: "operator",
      exit: exitCode.usage,
    });
    expect(new Failure("x", { code: "killed" })).toMatchObject({
      family: "operator",
      exit: exitCode.unexpected,
    });
    expect(new Failure("x", { code: "ingest_bug" })).toMatchObject({
      family: "bug",
      exit: exitCode.unexpected,
    });
  });

  it("shows message and remedy in one line", () => {
    expect(new Failure("disk full", { code: "disk_full", remedy: "free some space" }).summary).toBe(
      "disk full: free some space",
    );
    expect(new Failure("disk full", { code: "disk_full" }).summary).toBe("disk full");
  });

  it("has a stable code; other errors count as unexpected", () => {
    expect(failureCode(new Failure("x", { code: "http_418" }))).toBe("http_418");
    expect(failureCode(new Error("x"))).toBe("unexpected");
    expect(failureCode(undefined)).toBe("unexpected");
  });
});

describe("policyOf", () => {
  it("gives every unexpected HTTP status the same policy: skip this work, tell the operator", () => {
    expect(policyOf("http_418")).toEqual({ family: "operator", sync: "give_up" });
    expect(policyOf("too_many_requests")).toEqual({ family: "retry", sync: "retry" });
  });

  it("knows only its own codes, not what every object has", () => {
    expect(policyOf("toString" as "http_1")).toEqual({ family: "operator", sync: "give_up" });
  });
});

describe("a failure that crosses threads", () => {
  it("arrives with everything but its cause", () => {
    const sent = new Failure("locked", {
      code: "db_locked",
      family: "operator",
      remedy: "close the other program",
      exit: exitCode.incomplete,
      cause: new Error("SQLITE_BUSY"),
    });
    const arrived = deserialiseFailure(structuredClone(serialiseFailure(sent, "ingest_bug")));
    expect(arrived).toBeInstanceOf(Failure);
    const { message, code, family, remedy, exit } = sent;
    expect(arrived).toMatchObject({ message, code, family, remedy, exit, cause: undefined });
    // Its own stack would name the sender's lines: only those of a bug are of interest.
    expect(serialiseFailure(sent, "ingest_bug")).not.toHaveProperty("stack");
    expect(serialiseFailure(new Failure("x", { code: "demo" }), "ingest_bug")).not.toHaveProperty("remedy");
  });

  it("is a bug with its stack if it is any other error", () => {
    const error = new TypeError("x is not a function");
    const serialised = serialiseFailure(error, "ingest_bug");
    expect(serialised).toEqual({ message: "x is not a function", stack: error.stack, code: "ingest_bug" });
    expect(deserialiseFailure(serialised)).toMatchObject({ family: "bug", stack: error.stack });
    expect(serialiseFailure("thrown text", "export_bug")).toEqual({
      message: "thrown text",
      stack: undefined,
      code: "export_bug",
    });
    expect(deserialiseFailure({ message: "x", code: "demo" }).stack).toContain("x");
  });
});
