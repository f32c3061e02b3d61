import { expect } from "chai";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chart, find, render } from "./chart.ts";

/** The notes as data of an object: helm renders them only with a cluster. */
const template = `apiVersion: v1
kind: ConfigMap
metadata: { name: notes }
data:
  text: |
    {{- include (print .Template.BasePath "/NOTES.txt") . | nindent 4 }}
`;

describe("NOTES.txt", () => {
  let folder: string;
  const notes = (options: { readonly file?: string; readonly values?: object }): string =>
    find(render({ ...options, root: folder }), "ConfigMap", "notes").data?.["text"] ?? "";

  before(() => {
    folder = mkdtempSync(join(tmpdir(), "svc-notes-"));
    cpSync(chart, folder, { recursive: true });
    writeFileSync(join(folder, "templates/notes.yaml"), template);
  });
  after(() => rmSync(folder, { recursive: true }));

  it("shows how to create the first user, in the pod of the release", () => {
    expect(notes({})).to.match(
      /^ {2}kubectl --namespace team exec deploy\/release-svc-api -- svc-admin create-user --name \w+ --email \S+ --admin$/m,
    );
  });

  it("gives the address of the API by a tunnel, or by its public URL", () => {
    expect(notes({})).to.match(
      /port-forward svc\/release-svc 8080:80 &\n.*http:\/\/localhost:8080\/svc-api\/resources$/m,
    );
    expect(notes({ file: "full" })).to.match(
      /Bearer \$TOKEN" https:\/\/hooks\.example\.com\/api\/v1\/resources$/m,
    );
  });

  it("names the setting of an unknown prefix", () => {
    expect(notes({ file: "existing" })).to.match(/localhost:8080<http\.routePrefix>\/resources$/m);
  });

  it("names missing values, and those that the chart does not see", () => {
    expect(notes({})).to.match(/There are no mapping files yet/);
    expect(notes({ values: { config: { resources: { "a.yaml": "name: a" } } } })).to.not.match(
      /no mapping files/,
    );
    expect(notes({ file: "existing" })).to.match(
      /rollout restart deploy\/release-svc-api deploy\/release-svc-dispatcher/,
    );
    expect(notes({ values: { migrate: { enabled: false } } })).to.match(
      /`svc-admin migrate` is yours to run/,
    );
  });
});
