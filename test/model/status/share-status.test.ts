import { expect, it } from "vitest";
import {
  describeShare,
  describeShareProblem,
  type ShareStatus,
} from "../../../src/model/status/share-status.ts";

const status: ShareStatus = {
  server: "db:5432/market",
  name: "north",
  role: "alone",
  state: "current",
  forwarded_by: null,
  lag_seconds: 2,
  rows_forwarded: 10,
  last_error: null,
  peers: null,
};
const describe = (more: Partial<ShareStatus>) =>
  describeShare({ ...status, ...more }, (seconds) => `${seconds} s`);

it("tells the role of a daemon that shares the warehouse with another", () => {
  expect(describe({})).toBe("current, 2 s behind");
  expect(describe({ role: "pair" })).toBe("current (pair), 2 s behind");
  expect(describe({ role: "pair", state: "standby", forwarded_by: "south" })).toBe(
    "standby (pair): south forwards",
  );
  expect(describe({ role: "pair", state: "standby" })).toBe("standby (pair): another daemon forwards");
  expect(describe({ state: "forwarding", lag_seconds: null })).toBe("forwarding, nothing forwarded yet");
});

it("tells a problem: an error, or a lag of more than five minutes", () => {
  const problem = (more: Partial<ShareStatus>) => describeShareProblem({ ...status, ...more });
  expect(problem({})).toBeUndefined();
  expect(problem({ lag_seconds: null })).toBeUndefined();
  expect(problem({ lag_seconds: 300 })).toBeUndefined();
  expect(problem({ lag_seconds: 300.6 })).toBe("the shared warehouse db:5432/market is 301 s behind");
  expect(problem({ last_error: "two servers accept writes" })).toBe(
    "the shared warehouse db:5432/market: two servers accept writes",
  );
  expect(problem({ state: "failing", last_error: "the disk is full" })).toBe(
    "not forwarded to the shared warehouse, 2 s behind: the disk is full",
  );
  expect(problem({ state: "failing", last_error: "the disk is full", lag_seconds: null })).toBe(
    "not forwarded to the shared warehouse: the disk is full",
  );
});
