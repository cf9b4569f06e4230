/**
 * What a connection can be doing, and what can happen to it. The table is complete because the compiler refuses it
 * otherwise: nobody has to guess what a late CONNECTED or a second one does.
 */
export type ConnectionState = "dialling" | "greeting" | "subscribing" | "following" | "ended";

export type ConnectionEvent =
  /** The websocket is open. */
  | "opened"
  /** CONNECTED came. */
  | "greeted"
  /** Every subscription has had its answer, or has waited long enough for one. */
  | "answered"
  /** A subscription has to be asked for (again). */
  | "asking"
  /** The socket is gone, or we have given it up. */
  | "ended";

const transitions: Readonly<Record<ConnectionState, Readonly<Record<ConnectionEvent, ConnectionState>>>> = {
  dialling: {
    opened: "greeting",
    greeted: "dialling",
    answered: "dialling",
    asking: "dialling",
    ended: "ended",
  },
  greeting: {
    opened: "greeting",
    greeted: "subscribing",
    answered: "greeting",
    asking: "greeting",
    ended: "ended",
  },
  subscribing: {
    opened: "subscribing",
    greeted: "subscribing",
    answered: "following",
    asking: "subscribing",
    ended: "ended",
  },
  following: {
    opened: "following",
    greeted: "following",
    answered: "following",
    asking: "subscribing",
    ended: "ended",
  },
  ended: {
    opened: "ended",
    greeted: "ended",
    answered: "ended",
    asking: "ended",
    ended: "ended",
  },
};

export function nextState(state: ConnectionState, event: ConnectionEvent): ConnectionState {
  return transitions[state][event];
}
