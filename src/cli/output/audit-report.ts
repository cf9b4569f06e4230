import { formatTimestamp, formatToSecond } from "../../model/time.ts";
import type { AuditResult } from "../../warehouse/audit/audit-ledger.ts";
import type { AuditFinding } from "../../warehouse/audit/audited-key.ts";
import { formatNumber, pluralize, wrapText } from "./text.ts";

/** The text report lists this many of each kind; --json lists all. */
const MAX_LISTED = 20;

/** `reopened`: how many findings were repaired; undefined: the audit only read. */
export function formatAuditReport(
  { keyCount, rangeCount, findings, remarks }: AuditResult,
  reopened?: number,
): string {
  const checked = `${pluralize(rangeCount, "settled range")} of ${pluralize(keyCount, "series", "series")} checked`;
  return [
    checked,
    ...listFindings(findings),
    findings.length === 0
      ? "the ledger agrees with itself, with the rows and with the views"
      : pluralize(findings.length, "rule is broken", "rules are broken"),
    ...(reopened ? [`${pluralize(reopened, "claim")} taken back: the next run fetches these ranges`] : []),
    ...(remarks.length > 0
      ? [`${pluralize(remarks.length, "remark")}, which may be right:`, ...listFindings(remarks)]
      : []),
    "",
  ].join("\n");
}

function listFindings(findings: readonly AuditFinding[]): string[] {
  const lines = findings
    .slice(0, MAX_LISTED)
    .map(({ rule, key, names, from, to, text }) =>
      wrapText(
        `${[key.stream, names?.indexType, names?.name || names?.indexId].filter(Boolean).join(" ")}, ` +
          `${formatToSecond(from)} to ${formatToSecond(to)}: ${text} (${rule})`,
        "- ",
      ),
    );
  const more = findings.length - MAX_LISTED;
  return more > 0 ? [...lines, `  and ${formatNumber(more)} more: --json lists all of them`] : lines;
}

export function toAuditJson(
  { keyCount, rangeCount, findings, remarks }: AuditResult,
  reopened?: number,
): string {
  const shown = ({ rule, key, names, from, to, text }: AuditFinding) => ({
    rule,
    stream: key.stream,
    index_type: names?.indexType || null,
    index_id: names?.indexId || null,
    name: names?.name || null,
    from_time: formatTimestamp(from),
    to_time: formatTimestamp(to),
    text,
  });
  const report = {
    series: keyCount,
    ranges: rangeCount,
    findings: findings.map(shown),
    remarks: remarks.map(shown),
    ...(reopened === undefined ? {} : { reopened }),
  };
  return `${JSON.stringify(report, null, 2)}\n`;
}
