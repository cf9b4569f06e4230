import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/model/failure.ts";
import { failuresUntilSmaller } from "../../../src/service/client/size-signs.ts";
import { RejectedFailure, ServerFailure } from "../../../src/service/http/status-errors.ts";

const rejected = (fields: string[], isTooLarge = false) =>
  new RejectedFailure("no", new Set(fields), isTooLarge);

describe("a failure shows that a page may be too large", () => {
  it.each<[what: string, error: unknown, failures: number | undefined]>([
    ["413", rejected([], true), 1],
    ["413 that names another field", rejected(["timestamp"], true), 1],
    ["400 that names the size", rejected(["timestamp", "size"]), 1],
    ["400 that names nothing", rejected([]), 1],
    ["400 that names another field", rejected(["timestamp"]), undefined],
    ["a body cut by the connection", new Failure("cut", { code: "answer_cut" }), 2],
    ["a body that is no JSON", new Failure("cut", { code: "malformed_body" }), 2],
    ["502", new ServerFailure("/ohlcv", 502), 3],
    ["503", new ServerFailure("/ohlcv", 503), 3],
    ["504", new ServerFailure("/ohlcv", 504), 3],
    ["500", new ServerFailure("/ohlcv", 500), undefined],
    ["a timeout", new Failure("late", { code: "timeout" }), undefined],
    ["404", new Failure("gone", { code: "not_found" }), undefined],
    ["an error of this program", new Error("bug"), undefined],
  ])("%s", (_, error, failures) => {
    expect(failuresUntilSmaller(error)).toBe(failures);
  });
});
