import { expect, it } from "vitest";
import {
  describeShare,
  describeShareProblem,
  listShareParts,
  type ShareStatus,
} from "../../../src/model/status/share-status.ts";

const status: ShareStatus = {
  ...{ server: "db:5432/market", name: "north", role: "alone", state: "current", forwarded_by: null },
  ...{ lag_seconds: 2, rows_forwarded: 10, last_error: null, peers: null },
};
const describe = (more: Partial<ShareStatus>) =>
  describeShare({ ...status, ...more }, (seconds) => `${seconds} s`);

it("tells the role of a daemon that shares the warehouse with another", () => {
  expect(describe({})).toBe("current, 2 s behind");
  expect(describe({ role: "pair" })).toBe("current (pair), 2 s behind");
  const standby = describe({ role: "pair", state: "standby", forwarded_by: "south" });
  expect(standby).toBe("standby (pair): south forwards");
  expect(describe({ role: "pair", state: "standby" })).toBe("standby (pair): another daemon forwards");
  expect(describe({ state: "forwarding", lag_seconds: null })).toBe("forwarding, nothing forwarded yet");
});

it("tells a problem: an error, or a lag of more than five minutes", () => {
  const problem = (more: Partial<ShareStatus>) => describeShareProblem({ ...status, ...more });
  expect(problem({})).toBeUndefined();
  expect(problem({ lag_seconds: null })).toBeUndefined();
  expect(problem({ lag_seconds: 300 })).toBeUndefined();
  expect(problem({ lag_seconds: 300.6 })).toBe("the shared warehouse db:5432/market is 301 s behind");
  const warned = problem({ last_error: "two servers accept writes" });
  expect(warned).toBe("the shared warehouse db:5432/market: two servers accept writes");
  const failing = { state: "failing", last_error: "the disk is full" } as const;
  const notForwarded = "not forwarded to the shared warehouse";
  expect(problem(failing)).toBe(`${notForwarded}, 2 s behind: the disk is full`);
  expect(problem({ ...failing, lag_seconds: null })).toBe(`${notForwarded}: the disk is full`);
});

it("lists who keeps the shared warehouse, and says that a daemon of a pair is missing", () => {
  const list = (more: Partial<ShareStatus>) =>
    listShareParts({ ...status, ...more }, (seconds) => `${seconds} s`).map(
      ({ what, name, state }) => `${what} ${name}: ${state}`,
    );
  const north = { name: "north", address: null, is_forwarding: true };
  const peers = { daemons: [north], forwarded_seconds_ago: 2, standby_servers: [], unread: null };
  expect(list({})).toEqual([]);
  expect(list({ peers })).toEqual([
    "daemon north: forwards, last change 2 s ago",
    "PostgreSQL db:5432/market: without a standby server",
  ]);
  expect(list({ peers, role: "pair" })[1]).toBe("daemon –: no second daemon is connected");
  const south = { name: "south", address: "10.0.0.2", is_forwarding: false };
  const standby = { name: "two", state: "streaming", is_synchronous: true, lag_seconds: 0.5 };
  const both = { ...peers, daemons: [north, south], standby_servers: [standby], forwarded_seconds_ago: null };
  expect(list({ peers: both, role: "pair" })).toEqual([
    "daemon north: forwards, nothing forwarded yet",
    "daemon south: stands by, from 10.0.0.2",
    "PostgreSQL db:5432/market: with a standby server",
    "standby server two: streaming, synchronous, 0.5 s behind",
  ]);
  const hidden = { ...standby, state: null, is_synchronous: null, lag_seconds: null };
  expect(list({ peers: { ...both, standby_servers: [hidden], unread: "no right" } }).slice(2)).toEqual([
    "PostgreSQL db:5432/market: no right",
    "standby server two: unknown",
  ]);
});
