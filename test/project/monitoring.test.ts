import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { streams } from "../../src/model/streams.ts";
import { METRIC_PREFIX, type MetricDeclaration, metricTable } from "../../src/telemetry/metric-table.ts";

const root = resolve(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");

interface Rule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
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

/** What Prometheus adds to every series. */
const scrapeLabels = ["instance", "job", "le"];

interface Selection {
  readonly metric: string;
  readonly labels: readonly (readonly [string, string])[];
}

function selections(expr: string): Selection[] {
  return [...expr.matchAll(/\bmds_sync_(\w+)(?:\{([^}]*)\})?/g)].map(([, metric = "", braces = ""]) => ({
    metric,
    labels: [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    ),
  }));
}

/** A histogram is queried by the names of its parts. */
function declared(metric: string): MetricDeclaration | undefined {
  const whole = metrics.get(metric);
  const histogram = metrics.get(metric.replace(/_(bucket|sum|count)$/, ""));
  return whole ?? (histogram?.type === "histogram" ? histogram : undefined);
}

function faults(expr: string): string[] {
  const found = selections(expr);
  if (found.length === 0) return [`no metric in ${expr}`];
  return found.flatMap(({ metric, labels }) => {
    const declaration = declared(metric);
    if (!declaration) return [`${METRIC_PREFIX}${metric} does not exist`];
    if (declaration.type === "histogram" && !metric.endsWith("_bucket")) return [`${metric} is a histogram`];
    if (declaration.type === "counter" && !new RegExp(`(rate|increase)\\(mds_sync_${metric}\\b`).test(expr))
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
  it("ask only for metrics and labels that there are", () => {
    expect(rules.length).toBeGreaterThan(10);
    expect(rules.flatMap(({ expr }) => faults(expr))).toEqual([]);
  });

  it("each have a name of their own, a severity, a summary and what to do", () => {
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

  it("are read by Prometheus itself", () => {
    if (spawnSync("promtool", ["--version"]).error) {
      process.stderr.write(
        "promtool is not installed: not shown here: that Prometheus reads the alert rules\n",
      );
      return;
    }
    const checked = spawnSync("promtool", ["check", "rules", join(root, "config/prometheus-alerts.yaml")], {
      encoding: "utf8",
    });
    expect(checked).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("the Grafana board", () => {
  it("asks only for metrics and labels that there are", () => {
    expect(targets.length).toBeGreaterThan(20);
    expect(targets.flatMap(({ expr }) => faults(expr))).toEqual([]);
    expect(faults(board.annotations.list[0].expr)).toEqual([]);
    for (const { name, query } of board.templating.list) {
      if (name === "instance") expect(faults(query.query)).toEqual([]);
    }
  });

  it("names in its legends only labels that the query keeps", () => {
    const wrong = targets.flatMap(({ expr, legendFormat }) => {
      const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/);
      const known = kept ?? selections(expr).flatMap(({ metric }) => declared(metric)?.labels ?? []);
      return [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].flatMap(([, label = ""]) =>
        known.includes(label) ? [] : [`${label} in the legend of ${expr}`],
      );
    });
    expect(wrong).toEqual([]);
  });

  it("lays its panels side by side, none over another", () => {
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

  it("works with whatever data source it is given", () => {
    for (const panel of panels.filter(({ type }) => type !== "row")) {
      expect(panel).toMatchObject({ datasource: { type: "prometheus", uid: "$datasource" } });
    }
  });
});
