import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { streams } from "../../src/model/streams.ts";
import { METRIC_PREFIX, type MetricDeclaration, metricTable } from "../../src/telemetry/metric-table.ts";
import { Metrics } from "../../src/telemetry/metrics.ts";
import { hasTool } from "../support/has-tool.ts";
import { ManualClock } from "../support/manual-clock.ts";

const ALERT_CASES = "test/project/prometheus-alerts.yaml";
const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}
/** A test of `promtool test rules`. */
interface AlertCase {
  name: string;
  input_series: { series: string }[];
  promql_expr_test: { exp_samples: { labels: string }[] }[];
}
interface Panel {
  id: number;
  type: string;
  title: string;
  gridPos: Record<"x" | "y" | "w" | "h", number>;
  targets?: { expr: string; legendFormat: string }[];
}

const rules = parse(read("config/prometheus-alerts.yaml")).groups.flatMap(
  (group: { rules: Rule[] }) => group.rules,
) as Rule[];
const board = JSON.parse(read("config/grafana-dashboard.json"));
const panels = board.panels as Panel[];
const targets = panels.flatMap((panel) => panel.targets ?? []);
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

function findProblems(expr: string, kind: "query" | "sample" = "query"): string[] {
  const found = parseSelectors(expr);
  if (found.length === 0) return [`no metric in ${expr}`];
  return found.flatMap(({ metric, labels }) => {
    const declaration = findDeclaration(metric);
    if (!declaration) return [`${METRIC_PREFIX}${metric} does not exist`];
    if (declaration.type === "histogram" && !metric.endsWith("_bucket")) return [`${metric} is a histogram`];
    const isSummed = new RegExp(`(rate|increase)\\(mds_sync_${metric}\\b`).test(expr);
    if (kind === "query" && declaration.type === "counter" && !isSummed)
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

  it("each have a unique name, a severity, a summary and a description", () => {
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations } of rules) {
      expect(alert).toMatch(/^MdsSync[A-Z]\w+$/);
      expect(["critical", "warning"]).toContain(labels.severity);
      expect(annotations).toEqual({
        summary: expect.stringMatching(/\S/),
        description: expect.stringMatching(/\.$/),
      });
    }
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

  it("each have a case in which they are silent and one in which they fire, with series that exist", () => {
    const file = parse(read(ALERT_CASES)) as { tests: AlertCase[] };
    const firing = file.tests.flatMap((test) => {
      expect(test.promql_expr_test.at(0)?.exp_samples, test.name).toEqual([]);
      return test.promql_expr_test.flatMap(({ exp_samples }) =>
        exp_samples.map(({ labels }) => /alertname="(\w+)"/.exec(labels)?.[1] ?? labels),
      );
    });
    expect(new Set(firing)).toEqual(new Set(rules.map(({ alert }) => alert)));
    const series = file.tests.flatMap((test) => test.input_series.map((input) => input.series));
    const ours = series.filter((name) => name.startsWith(METRIC_PREFIX));
    expect(ours.flatMap((name) => findProblems(name, "sample"))).toEqual([]);
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

  it("has no overlapping panels", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = new Map<string, string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(cells.get(`${x},${y}`), title).toBeUndefined();
          cells.set(`${x},${y}`, title);
        }
      }
    }
  });

  it("takes its data source from a variable", () => {
    for (const panel of panels.filter(({ type }) => type !== "row")) {
      expect(panel).toMatchObject({ datasource: { type: "prometheus", uid: "$datasource" } });
    }
  });
});
