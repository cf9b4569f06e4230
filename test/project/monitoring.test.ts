import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { streams } from "../../src/model/streams.ts";
import { METRIC_PREFIX, type MetricDeclaration, metricTable } from "../../src/telemetry/metric-table.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { hasTool } from "../support/has-tool.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { readProjectFile as read, root } from "../support/repository.ts";

const ALERT_CASES = "test/project/prometheus-alerts.yaml";

interface Rule {
  expr: string;
}
interface Panel {
  targets?: { expr: string; legendFormat: string }[];
}

const rules = parse(read("config/prometheus-alerts.yaml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
) as Rule[];
const board = JSON.parse(read("config/grafana-dashboard.json"));
const targets = (board.panels as Panel[]).flatMap((panel) => panel.targets ?? []);
const metrics = new Map<string, MetricDeclaration>(Object.entries(metricTable));

/** Labels that Prometheus adds. */
const scrapeLabels = ["instance", "job", "le"];

interface MetricSelector {
  readonly metric: string;
  readonly labels: readonly (readonly [string, string])[];
}

function parseSelectors(expr: string): MetricSelector[] {
  return [...expr.matchAll(/\bmds_sync_(\w+)(?:\{([^}]*)\})?/g)].map(([, metric = "", braces = ""]) => ({
    metric,
    labels: [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    ),
  }));
}

/** A query names a histogram by `_bucket`, `_sum` or `_count`. */
function findDeclaration(metric: string): MetricDeclaration | undefined {
  const whole = metrics.get(metric);
  const histogram = metrics.get(metric.replace(/_(bucket|sum|count)$/, ""));
  return whole ?? (histogram?.type === "histogram" ? histogram : undefined);
}

function findProblems(expr: string): string[] {
  const found = parseSelectors(expr);
  if (found.length === 0) return [`no metric in ${expr}`];
  return found.flatMap(({ metric, labels }) => {
    const declaration = findDeclaration(metric);
    if (!declaration) return [`${METRIC_PREFIX}${metric} does not exist`];
    if (declaration.type === "histogram" && !metric.endsWith("_bucket")) return [`${metric} is a histogram`];
    const isSummed = new RegExp(`(rate|increase)\\(mds_sync_${metric}\\b`).test(expr);
    if (declaration.type === "counter" && !isSummed)
      return [`${metric} is a counter, and is neither rate nor increase in ${expr}`];
    return labels.flatMap(([name, value]) => {
      if (!declaration.labels.includes(name) && !scrapeLabels.includes(name))
        return [`${metric} has no label ${name}`];
      const unknown =
        name === "stream" ? value.split("|").filter((each) => !streams.some((s) => s === each)) : [];
      return unknown.map((each) => `${each} is no stream`);
    });
  });
}

describe("the alert rules", () => {
  it("use only declared metrics and labels", () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.flatMap(({ expr }) => findProblems(expr))).toEqual([]);
  });

  it("use only counters that exist before their first event", async () => {
    const samples = (await new Metrics(new ManualClock(), "1.2.3").exposition()).split("\n");
    const late = rules
      .flatMap(({ expr }) => parseSelectors(expr))
      // A job has its counter once it is scheduled.
      .filter(({ metric }) => metrics.get(metric)?.type === "counter" && metric !== "jobs_total")
      .filter(
        ({ metric, labels }) =>
          !samples.some(
            (sample) =>
              sample.startsWith(METRIC_PREFIX + metric) &&
              labels.every(([name, value]) => sample.includes(`${name}="${value}"`)),
          ),
      );
    expect(late).toEqual([]);
  });

  it("fire when they should, says promtool", () => {
    if (!hasTool("promtool", "the check of the alert rules")) return;
    // It ends before its garbage matters: a third of its time.
    const options = { cwd: root, encoding: "utf8", env: { ...process.env, GOGC: "off" } } as const;
    const checked = spawnSync("promtool", ["check", "rules", "config/prometheus-alerts.yaml"], options);
    expect(checked).toMatchObject({ status: 0, stderr: "" });
    const tested = spawnSync("promtool", ["test", "rules", ALERT_CASES], options);
    expect(tested.status, tested.stdout + tested.stderr).toBe(0);
  });
});

describe("the Grafana board", () => {
  it("uses only declared metrics and labels", () => {
    expect(targets.length).toBeGreaterThan(20);
    expect(targets.flatMap(({ expr }) => findProblems(expr))).toEqual([]);
    expect(findProblems(board.annotations.list[0].expr)).toEqual([]);
    for (const { name, query } of board.templating.list) {
      if (name === "instance") expect(findProblems(query.query)).toEqual([]);
    }
  });

  it("uses in its legends only labels that the query returns", () => {
    const wrong = targets.flatMap(({ expr, legendFormat }) => {
      const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/);
      const known =
        grouped ?? parseSelectors(expr).flatMap(({ metric }) => findDeclaration(metric)?.labels ?? []);
      return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].flatMap(([, label = ""]) =>
        known.includes(label) ? [] : [`${label} in the legend of ${expr}`],
      );
    });
    expect(wrong).toEqual([]);
  });
});
