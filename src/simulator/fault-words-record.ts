import { choice, type FaultMoment, type FaultWord, number, rows, text, word } from "./fault-vocabulary.ts";

const http: readonly FaultMoment[] = ["request"];
const records: readonly FaultMoment[] = ["request", "tick"];

/** Faults of what records say, in answers and in live ticks. */
export const recordWords: readonly FaultWord[] = [
  word("unknown-fields", "payload", records, rows, "adds properties that nobody has announced"),
  word("reordered-fields", "payload", records, rows, "reverses the order of the properties"),
  word(
    "duplicate-keys",
    "payload",
    records,
    rows,
    "names every property twice; the first time with a wrong value",
  ),
  word("proto-key", "payload", records, rows, "adds __proto__ and constructor as properties"),
  word(
    "decimals",
    "payload",
    records,
    { as: choice("number exponent zeros long tiny"), ...rows },
    "decimals as numbers, with an exponent, with spare zeros (the same value); with 30 digits, or 1e-18 (another value)",
  ),
  word(
    "set",
    "payload",
    records,
    { field: text(), value: text(""), as: choice("string json", "string"), ...rows },
    "sets a property, to a string or to any JSON",
  ),
  word(
    "drop",
    "payload",
    records,
    { field: text(), ...rows },
    "leaves a property out: of the records, or of the envelope when it stands there",
  ),
  word(
    "timestamps",
    "payload",
    records,
    { as: choice("us ns no-zone offset leap midnight-24 epoch 1970 2099"), ...rows },
    "timestamps in another form: the first, second and fourth name the same moment",
  ),
  word("upside-down", "payload", records, rows, "swaps high and low"),
  word("big-body", "payload", http, { mb: number(50) }, "repeats the rows until the body is this big"),
  word("deep-nesting", "payload", http, { depth: number(100_000) }, "adds a property nested this deep"),
];
