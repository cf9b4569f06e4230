import type { Fault as AnyFault } from "./fault.ts";
import * as bodyFaults from "./faults/body-faults.ts";
import * as deliveryFaults from "./faults/delivery-faults.ts";
import * as liveFaults from "./faults/live-faults.ts";
import * as pagingFaults from "./faults/paging-faults.ts";
import * as recordFaults from "./faults/record-faults.ts";
import * as tokenFaults from "./faults/token-faults.ts";

export type Fault = AnyFault;

/** Creates the faults that the simulated service can have: `Fault.status(503, { on: "/index-ticker", times: 3 })`. */
export const Fault = {
  ...tokenFaults,
  ...bodyFaults,
  ...deliveryFaults,
  ...pagingFaults,
  ...recordFaults,
  ...liveFaults,
};

type Factories = typeof Fault;

/** The name of a fault and its arguments, to create it in another process. */
export type FaultCall = {
  [Name in keyof Factories]: [Name, ...Parameters<Factories[Name]>];
}[keyof Factories];

export function createFault([name, ...args]: FaultCall): Fault {
  const factory = Fault[name] as (...args: unknown[]) => Fault;
  return factory(...args);
}
