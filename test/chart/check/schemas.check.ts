import { expect } from "chai";
import { cases, lint, renderText, schemaFaults, versions } from "./chart.ts";

/** An object with a fault, in JSON, which is YAML. */
function object(kind: string, apiVersion: string, spec: object): string {
  return JSON.stringify({ apiVersion, kind, metadata: { name: "x" }, spec });
}

for (const kubernetes of versions) {
  describe(`the chart on Kubernetes ${kubernetes}`, () => {
    for (const file of cases.map((name) => name.replace(/\.yaml$/, ""))) {
      it(`passes helm lint with ci/${file}.yaml`, () => {
        expect(lint({ file, kubernetes })).to.equal("");
      });

      it(`renders objects that fit their schemas with ci/${file}.yaml`, () => {
        expect(schemaFaults(renderText({ file, kubernetes }), kubernetes)).to.equal("");
      });
    }
  });

  describe(`the schemas of Kubernetes ${kubernetes}`, () => {
    it("find an unknown field", () => {
      expect(
        schemaFaults(object("PodDisruptionBudget", "policy/v1", { maxUnavailabel: 1 }), kubernetes),
      ).to.include("maxUnavailabel");
    });

    it("find an unknown field of a custom resource", () => {
      const spec = { endpoints: [{ prt: "metrics" }], selector: {} };

      expect(schemaFaults(object("ServiceMonitor", "monitoring.coreos.com/v1", spec), kubernetes)).to.include(
        "prt",
      );
    });

    it("find a kind that there is no schema for", () => {
      expect(schemaFaults(object("Deploymint", "apps/v1", {}), kubernetes)).to.include(
        "could not find schema",
      );
    });
  });
}
