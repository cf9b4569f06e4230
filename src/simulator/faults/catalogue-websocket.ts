import {
  choice,
  connection,
  duration,
  type FaultMoment,
  type FaultWord,
  number,
  retryAfter,
  text,
  word,
} from "./fault-definition.ts";

const lifetime: readonly FaultMoment[] = ["accept", "subscribe", "tick"];

/** Faults of the websocket. */
export const liveWords: readonly FaultWord[] = [
  word(
    "upgrade-status",
    "websocket",
    ["upgrade"],
    { code: number(), ...retryAfter },
    "refuses the upgrade with this HTTP status",
  ),
  word("upgrade-stall", "websocket", ["upgrade"], {}, "never answers the upgrade"),
  word(
    "connected",
    "websocket",
    ["accept"],
    { is: choice("never twice late"), by: duration("5s") },
    "CONNECTED never comes, comes twice, or late",
  ),
  word(
    "drop-connection",
    "websocket",
    lifetime,
    { code: number(1006), ...connection },
    "ends the connection with this close code; 1006: without a close frame",
  ),
  word("mute", "websocket", lifetime, connection, "no ticks any more; everything else goes on"),
  word(
    "half-open",
    "websocket",
    lifetime,
    connection,
    "no frame any more and no end either, as after a pulled cable",
  ),
  word(
    "ping-storm",
    "websocket",
    lifetime,
    { every: duration("100ms"), ...connection },
    "a JSON PING every so often",
  ),
  word(
    "message",
    "websocket",
    lifetime,
    {
      is: choice(
        "binary garbage utf8 oversized fragments deflated trade no-event array null string number not-json error",
      ),
      code: text("500"),
      as: choice("string number none", "string"),
      bytes: number(2 ** 21),
      ...connection,
    },
    "one message out of turn; `error` takes code= and as=",
  ),
  word(
    "subscribed",
    "websocket",
    ["subscribe"],
    { is: choice("never other late twice"), by: duration("5s") },
    "SUBSCRIBED_* never comes, comes for another subscription, after the ticks, or twice",
  ),
  word(
    "error",
    "websocket",
    ["subscribe", "unsubscribe"],
    { code: text("500"), as: choice("string number none", "string") },
    "answers the message with an ERROR of this code, which may be a number or missing",
  ),
  word("ignore-unsubscribe", "websocket", ["unsubscribe"], {}, "goes on with the ticks"),
  word(
    "late-unsubscribe",
    "websocket",
    ["unsubscribe"],
    { by: duration("60s") },
    "goes on with the ticks for so long",
  ),
  word(
    "replay",
    "websocket",
    ["subscribe"],
    { ticks: number(5) },
    "sends each series' last ticks again after SUBSCRIBED_*",
  ),
  word("duplicate-tick", "websocket", ["tick"], {}, "sends the tick twice"),
  word("missing-tick", "websocket", ["tick"], {}, "does not send the tick"),
  word("late-tick", "websocket", ["tick"], { by: duration("45s") }, "sends the tick after later ones"),
  word(
    "other-value",
    "websocket",
    ["tick"],
    {},
    "another price, and another id, than REST has for the same moment",
  ),
  word("binary-tick", "websocket", ["tick"], {}, "sends the tick's JSON in a binary frame"),
];
