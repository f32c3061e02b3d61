import { expect } from "chai";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { reloadableSettings } from "../../../src/app/configuration.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { checkDefinitions } from "../../../src/mapping/load.ts";
import { unknownVariables } from "../../../src/config/unknown-variables.ts";
import { cases, find, podOf, render, type KubernetesObject, type Pod } from "./chart.ts";

/** Variables from Secrets outside the chart. */
const elsewhere: Readonly<Record<string, string>> = {
  DATABASE_URL: "postgresql://svc@postgres/svc",
  AMQP_URL: "amqp://svc@rabbitmq",
  SVC_SECRET_KEY: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
};

/** Returns the variables of a container as the kubelet sets them. */
function environmentOf(pod: Pod, objects: readonly KubernetesObject[]): Record<string, string> {
  const entries = (pod.container.env ?? []).flatMap(({ name, value, valueFrom }): [string, string][] => {
    const ref = valueFrom?.secretKeyRef;
    if (ref === undefined) return value === undefined ? [] : [[name, value]];
    const secret = objects.find(({ kind, metadata }) => kind === "Secret" && metadata.name === ref.name);
    const text = secret === undefined ? elsewhere[name] : decoded(secret.data?.[ref.key]);
    if (text === undefined && ref.optional !== true) throw new Error(`${ref.name} has no key ${ref.key}`);
    return text === undefined ? [] : [[name, text]];
  });
  return Object.fromEntries(entries);
}

function decoded(base64: string | undefined): string | undefined {
  return base64 === undefined ? undefined : Buffer.from(base64, "base64").toString();
}

/**
 * Writes the ConfigMaps of a pod into a folder, as the kubelet mounts them. Undefined when they are
 * not the chart's.
 */
function mount(pod: Pod, objects: readonly KubernetesObject[]): string | undefined {
  const root = mkdtempSync(join(tmpdir(), "svc-chart-"));
  for (const { name, mountPath } of pod.container.volumeMounts ?? []) {
    const wanted = pod.spec.volumes?.find((volume) => volume.name === name)?.configMap?.name;
    if (wanted === undefined || !mountPath.startsWith("/etc/svc")) continue;
    const files = objects.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === wanted);
    if (files === undefined) return undefined;
    mkdirSync(join(root, mountPath), { recursive: true });
    for (const [file, text] of Object.entries(files.data ?? {}))
      writeFileSync(join(root, mountPath, file), text);
  }
  return root;
}

const urlOf = (values: object): string | undefined => {
  const objects = render({ values });
  return environmentOf(podOf(objects, "api"), objects)["SVC_PUBLIC_URL"];
};

const checksumsOf = (values: object, component: string): Readonly<Record<string, string>> =>
  podOf(render({ values }), component).annotations;

/** Returns the ConfigMap with the settings of a pod. */
const settingsIn = (file: string, component: string): unknown =>
  podOf(render({ file }), component).spec.volumes?.find(({ name }) => name === "settings")?.configMap;

/** Returns the PostgreSQL URL of each pod. */
const urlsOf = (values: object): readonly (string | undefined)[] => {
  const objects = render({ values });
  return ["migrate", "api", "dispatcher"].map(
    (component) => environmentOf(podOf(objects, component), objects)["DATABASE_URL"],
  );
};

describe("the role that migrates", () => {
  const databaseUrl = "postgresql://svc_app@postgres/svc";

  it("is that of the programs, unless its own URL is set, which no other Secret contains", () => {
    const migrationDatabaseUrl = "postgresql://svc_owner@postgres/svc";

    expect(urlsOf({ secret: { databaseUrl } })).to.deep.equal(Array(3).fill(databaseUrl));
    expect(urlsOf({ secret: { databaseUrl, migrationDatabaseUrl } })).to.deep.equal([
      migrationDatabaseUrl,
      databaseUrl,
      databaseUrl,
    ]);
    const secrets = render({ values: { secret: { databaseUrl, migrationDatabaseUrl } } })
      .filter(({ kind }) => kind === "Secret")
      .filter(({ data }) =>
        Object.values(data ?? {}).some((value) => decoded(value) === migrationDatabaseUrl),
      );
    expect(secrets.map(({ metadata }) => metadata.labels["app.kubernetes.io/component"])).to.deep.equal([
      "migrate",
    ]);
  });

  it("has its own key in an existing Secret", () => {
    const objects = render({ file: "existing" });
    const keys = ["migrate", "api", "dispatcher"].map(
      (component) =>
        podOf(objects, component).container.env?.find(({ name }) => name === "DATABASE_URL")?.valueFrom
          ?.secretKeyRef,
    );

    expect(keys).to.deep.equal(
      ["owner-url", "database-url", "database-url"].map((key) => ({ name: "svc-secrets", key })),
    );
  });
});

describe("the configuration of the programs", () => {
  for (const file of cases
    .map((name) => name.replace(/\.yaml$/, ""))
    .filter((name) => name !== "existing" && name !== "numbers")) {
    for (const [component, program] of [
      ["api", "api"],
      ["dispatcher", "dispatcher"],
      ["migrate", "admin"],
    ] as const) {
      it(`is accepted by the ${component} of ci/${file}.yaml`, async () => {
        const objects = render({ file });
        const pod = podOf(objects, component);
        const root = mount(pod, objects);
        if (root === undefined) throw new Error("expected the ConfigMaps in the chart");
        const variables = environmentOf(pod, objects);
        const env = { ...variables, SVC_CONFIG_DIR: join(root, variables["SVC_CONFIG_DIR"] ?? "") };

        try {
          const config = loadConfig({ env, cwd: root, program });
          const { faults } = await checkDefinitions(config.configDir);

          expect(faults).to.deep.equal([]);
          expect(unknownVariables({ env, cwd: root })).to.deep.equal([]);
          expect(config.database.autoMigrate).to.equal(false);
          expect(config.database.url).to.match(/^postgresql:/);
          const ports = Object.fromEntries(
            (pod.container.ports ?? []).map(({ name, containerPort }) => [name, containerPort]),
          );
          if (program === "api")
            expect(ports).to.deep.equal({ http: config.http.port, metrics: config.metrics.port });
          if (program === "dispatcher") expect(ports).to.deep.equal({ metrics: config.metrics.port });
        } finally {
          rmSync(root, { recursive: true });
        }
      });
    }
  }

  it("is the same for both programs, which then have one hash and one row in the audit trail", () => {
    const objects = render({ file: "full" });
    const [api, dispatcher] = (["api", "dispatcher"] as const).map((program) => {
      const pod = podOf(objects, program);
      const root = mount(pod, objects) ?? "";
      const env = { ...environmentOf(pod, objects), SVC_CONFIG_DIR: join(root, "etc/svc") };
      const settings = reloadableSettings(loadConfig({ env, cwd: root, program }));
      rmSync(root, { recursive: true });
      return settings;
    });

    expect(dispatcher).to.deep.equal(api);
  });

  it("is mounted as service.yaml, for any key in an existing ConfigMap", () => {
    const items = [{ key: "svc.yaml", path: "service.yaml" }];
    for (const component of ["migrate", "api", "dispatcher"]) {
      expect(settingsIn("existing", component)).to.deep.equal({ name: "my-settings", items });
      expect(settingsIn("numbers", component)).to.deep.equal({ name: "12" });
    }
  });

  it("has every setting of ci/full.yaml as it was written, large numbers and code with braces too", () => {
    const objects = render({ file: "full" });
    const pod = podOf(objects, "api");
    const root = mount(pod, objects) ?? "";

    const env = { ...environmentOf(pod, objects), SVC_CONFIG_DIR: join(root, "etc/svc") };
    const { webhooks, http, previousSecretKeys } = loadConfig({ env, cwd: root, program: "api" });
    rmSync(root, { recursive: true });
    expect(webhooks).to.deep.include({
      timeoutMs: 12_500,
      backoffMs: [5_000, 1_000_000_000],
      manualRetryLimit: 1_000_000,
    });
    expect(http).to.include({ routePrefix: "/api/v1", publicUrl: "https://hooks.example.com" });
    expect(previousSecretKeys).to.have.length(1);
    expect(find(objects, "ConfigMap", "webhooks-resources").data?.["tasks.mjs"]).to.include(
      "{{ not a template }}",
    );
  });
});

describe("the public URL", () => {
  it("is unset without an ingress", () => {
    expect(urlOf({})).to.equal(undefined);
  });

  it("is no wildcard", () => {
    expect(urlOf({ ingress: { enabled: true, hosts: ["*.example.com"] } })).to.equal(undefined);
    expect(urlOf({ ingress: { enabled: true, hosts: ["*.example.com", "a.example.com"] } })).to.equal(
      "http://a.example.com",
    );
  });

  it("is unset when the settings name the hosts of links", () => {
    const ingress = { enabled: true, hosts: ["a.example.com", "b.example.com"] };
    const config = { settings: { http: { hosts: ["a.example.com", "b.example.com"] } } };

    expect(urlOf({ ingress, config })).to.equal(undefined);
    expect(urlOf({ ingress, config, api: { publicUrl: "https://c.example.com" } })).to.equal(
      "https://c.example.com",
    );
  });

  it("is the first host of the ingress, https when it has certificates", () => {
    const ingress = { enabled: true, hosts: ["a.example.com", "b.example.com"] };

    expect(urlOf({ ingress })).to.equal("http://a.example.com");
    expect(urlOf({ ingress: { ...ingress, tls: [{ secretName: "tls" }] } })).to.equal(
      "https://a.example.com",
    );
  });
});

describe("the annotations of the pods", () => {
  for (const [what, annotation, values] of [
    ["a setting", "checksum/settings", { config: { settings: { log: { level: "warn" } } } }],
    ["a mapping file", "checksum/resources", { config: { resources: { "a.yaml": "name: a" } } }],
    ["a secret", "checksum/secret", { secret: { amqpUrl: "amqp://other" } }],
  ] as const) {
    it(`change with ${what}, so that the pods are replaced, and no others do`, () => {
      for (const component of ["api", "dispatcher"]) {
        const before = checksumsOf({}, component);
        const after = checksumsOf(values, component);

        expect(Object.keys(before)).to.have.members([
          "checksum/settings",
          "checksum/resources",
          "checksum/secret",
        ]);
        const changed = Object.keys(after).filter((key) => after[key] !== before[key]);
        expect(changed).to.deep.equal([annotation]);
      }
    });
  }

  it("do not change when the operator reloads by hand", () => {
    expect(checksumsOf({ config: { rollOnChange: false } }, "api")).to.deep.equal({});
  });
});
