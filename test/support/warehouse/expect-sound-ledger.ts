import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { Failure } from "../../../src/model/failure.ts";
import { formatTimestamp, MICROS_PER_MS } from "../../../src/model/time.ts";
import { auditLedger } from "../../../src/warehouse/audit/audit-ledger.ts";
import type { AuditFinding } from "../../../src/warehouse/audit/audited-key.ts";
import { openReader } from "../../../src/warehouse/reader.ts";
import type { Connection } from "../../../src/warehouse/sqlite/connection.ts";

/** Audits the ledger at `nowMs` (service time) and fails with its findings. Remarks are allowed. */
export function expectSoundLedger(reader: Connection, nowMs: number): void {
  const { findings } = auditLedger(reader, Math.floor(nowMs * MICROS_PER_MS));
  assert.deepEqual(findings.map(describeFinding), [], "the ledger breaks its own rules");
}

/** For the end of a test: audits the file, unless it is not a warehouse (any more). */
export function expectSoundFile(path: string, nowMs: number): void {
  if (!existsSync(path)) return;
  let reader: Connection;
  try {
    reader = openReader(path);
  } catch (error) {
    if (error instanceof Failure) return;
    throw error;
  }
  try {
    expectSoundLedger(reader, nowMs);
  } finally {
    reader.close();
  }
}

function describeFinding({ rule, key, names, from, to, text }: AuditFinding): string {
  return `${rule}: ${key.stream} ${names?.name ?? key.series} ${formatTimestamp(from)} to ${formatTimestamp(to)}: ${text}`;
}
