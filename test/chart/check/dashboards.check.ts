import { expect } from "chai";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { chart, promtool } from "./chart.ts";

/** Returns the expressions of every panel, at any depth. */
function expressionsIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, part]: [string, unknown]) =>
    key === "expr" && typeof part === "string" ? [part] : expressionsIn(part),
  );
}

/** Returns the expression with Grafana's variables filled in. */
function filledIn(expression: string): string {
  return expression
    .replace(/\$(__rate_interval|__interval|__range|\{__range\})/g, "5m")
    .replace(/\$(\w+|\{\w+(:\w+)?\})/g, "any");
}

for (const file of readdirSync(join(chart, "dashboards"))) {
  describe(`helm/dashboards/${file}`, () => {
    it("sends Prometheus valid queries", () => {
      const expressions = expressionsIn(JSON.parse(readFileSync(join(chart, "dashboards", file), "utf8")));
      const folder = mkdtempSync(join(tmpdir(), "svc-dashboard-"));
      const rules = expressions.map((expression, index) => ({
        record: `panel_${index}`,
        expr: filledIn(expression),
      }));
      writeFileSync(join(folder, "rules.yaml"), stringify({ groups: [{ name: "panels", rules }] }));

      const said = promtool(["check", "rules", join(folder, "rules.yaml")]);
      rmSync(folder, { recursive: true });
      expect(expressions.length).to.be.greaterThan(10);
      expect(said).to.include(`${expressions.length} rules found`);
    });
  });
}
