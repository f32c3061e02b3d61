import { expect } from "chai";
import { refusal } from "./chart.ts";

const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/** The fault, the values over ci/minimal.yaml (or another file), and a pattern of the message. */
const refused: readonly (readonly [name: string, values: object, message: RegExp, file?: string])[] = [
  ["no image", { image: { repository: "" } }, /image\.repository: required.*Dockerfile/],
  [
    "no secrets",
    { secret: { databaseUrl: "", secretKey: "" } },
    /secret\.databaseUrl, secret\.secretKey: required[^]*kubectl --namespace team create secret generic/,
  ],
  [
    "secrets beside a Secret",
    { secret: { existingSecret: "mine", amqpUrl: "", secretKey: "" } },
    /secret\.databaseUrl: expected nothing beside secret\.existingSecret; put it into the Secret mine under the key DATABASE_URL/,
  ],
  [
    "another database",
    { secret: { databaseUrl: "mysql://x" } },
    /secret\.databaseUrl: expected a URL that begins with postgresql:/,
  ],
  [
    "another database for the migration",
    { secret: { migrationDatabaseUrl: "mysql://x" } },
    /secret\.migrationDatabaseUrl: expected a URL that begins with postgresql:/,
  ],
  [
    "a URL for the migration beside a Secret",
    { secret: { existingSecret: "mine", migrationDatabaseUrl: "postgresql://x" } },
    /secret\.migrationDatabaseUrl: expected nothing beside .* under the key that secret\.keys\.migrationDatabaseUrl names/,
  ],
  [
    "a key for the migration without a Secret",
    { secret: { keys: { migrationDatabaseUrl: "owner-url" } } },
    /secret\.keys\.migrationDatabaseUrl: expected secret\.existingSecret beside it/,
  ],
  [
    "an API that only its own pod reaches",
    { config: { settings: { http: { host: "127.0.0.1" } } } },
    /config\.settings\.http\.host: not to be set here: .*SVC_HOST in api\.extraEnv/,
  ],
  [
    "metrics that no probe reaches",
    { config: { settings: { metrics: { host: "127.0.0.1" } } } },
    /config\.settings\.metrics\.host: not to be set here: probes/,
  ],
  [
    "another broker",
    { secret: { amqpUrl: "redis://x" } },
    /secret\.amqpUrl: expected a URL that begins with amqp:/,
  ],
  [
    "a short secret key",
    { secret: { secretKey: "hunter2" } },
    /secret\.secretKey: expected 32 random bytes in base64/,
  ],
  [
    "a short previous key",
    { secret: { previousSecretKeys: `${key},hunter2` } },
    /secret\.previousSecretKeys: expected 32 random bytes/,
  ],
  [
    "migrations by every pod",
    { config: { settings: { database: { autoMigrate: true } } } },
    /config\.settings\.database\.autoMigrate: not to be set here: the Job of `migrate`/,
  ],
  [
    "a URL in the settings",
    { config: { settings: { database: { url: "postgresql://x" } } } },
    /config\.settings\.database\.url: not to be set here: it is a secret: secret\.databaseUrl/,
  ],
  [
    "a broker in the settings",
    { config: { settings: { broker: { url: "amqp://x" } } } },
    /config\.settings\.broker\.url: .*secret\.amqpUrl/,
  ],
  [
    "a key in the settings",
    { config: { settings: { secretKey: key } } },
    /config\.settings\.secretKey: .*secret\.secretKey/,
  ],
  [
    "previous keys in the settings",
    { config: { settings: { previousSecretKeys: [key] } } },
    /config\.settings\.previousSecretKeys: .*secret\.previousSecretKeys/,
  ],
  [
    "a port in the settings",
    { config: { settings: { http: { port: 80 } } } },
    /config\.settings\.http\.port: .*service\.port/,
  ],
  [
    "a metrics port in the settings",
    { config: { settings: { metrics: { port: 80 } } } },
    /config\.settings\.metrics\.port: .*always 9090/,
  ],
  [
    "a data dir in the settings",
    { config: { settings: { dataDir: "/x" } } },
    /config\.settings\.dataDir: .*always \/data/,
  ],
  [
    "a public URL in the settings",
    { config: { settings: { http: { publicUrl: "https://x" } } } },
    /config\.settings\.http\.publicUrl: .*api\.publicUrl/,
  ],
  [
    "a delay that adds to another",
    { config: { settings: { http: { drainDelay: 5 } } } },
    /config\.settings\.http\.drainDelay: .*api\.preStopSeconds/,
  ],
  [
    "a misspelt setting",
    { config: { settings: { webhooks: { timout: 1 } } } },
    /\/config\/settings\/webhooks': additional properties 'timout' not allowed/,
  ],
  [
    "a setting out of range",
    { config: { settings: { webhooks: { jitter: 2 } } } },
    /\/config\/settings\/webhooks\/jitter': maximum: got 2, want 1/,
  ],
  [
    "two sources of settings",
    { config: { settings: { log: { level: "info" } } } },
    /config\.settings, config\.existingSettings: expected one of the two/,
    "existing",
  ],
  [
    "a key of settings that are not in a ConfigMap of others",
    { config: { existingSettingsKey: "svc.yaml" } },
    /config\.existingSettingsKey: expected config\.existingSettings beside it/,
  ],
  [
    "two sources of mapping files",
    { config: { resources: { "a.yaml": "x" } } },
    /config\.resources, config\.existingResources: expected one of the two/,
    "existing",
  ],
  [
    "a mapping file of another kind",
    { config: { resources: { "../a.yaml": "x" } } },
    /config\.resources: expected names of files such as tasks\.yaml and tasks\.mjs, not "\.\.\/a\.yaml"/,
  ],
  [
    "an empty mapping file",
    { config: { resources: { "a.yaml": "" } } },
    /\/config\/resources\/a\.yaml': minLength: got 0, want 1/,
  ],
  [
    "a migration under a name without a number",
    { config: { migrations: { "a.sql": "SELECT 1" } } },
    /config\.migrations: expected names of files such as 1_add_index\.sql, not "a\.sql"/,
  ],
  [
    "a mapping file as a map",
    { config: { resources: { "a.yaml": { name: "a" } } } },
    /\/config\/resources\/a\.yaml': got object, want string/,
  ],
  [
    "too many mapping files",
    { config: { resources: { "a.yaml": "x".repeat(1_000_001) } } },
    /config\.resources: a ConfigMap holds at most 1 MiB/,
  ],
  [
    "a variable of the chart's",
    { extraEnv: [{ name: "SVC_AUTO_MIGRATE", value: "true" }] },
    /extraEnv: SVC_AUTO_MIGRATE is set by the chart/,
  ],
  [
    "a variable of the chart's in one program",
    { dispatcher: { extraEnv: [{ name: "DATABASE_URL_FILE", value: "/x" }] } },
    /dispatcher\.extraEnv: DATABASE_URL_FILE is set by the chart/,
  ],
  [
    "a dispatcher killed in an attempt",
    {
      config: { settings: { webhooks: { timeout: 60 } } },
      dispatcher: { terminationGracePeriodSeconds: 60 },
    },
    /dispatcher\.terminationGracePeriodSeconds: expected at least \d+/,
  ],
  [
    "an API killed in a request",
    { api: { preStopSeconds: 30, terminationGracePeriodSeconds: 30 } },
    /api\.terminationGracePeriodSeconds: expected at least \d+/,
  ],
  [
    "a timeout that the chart cannot see",
    { dispatcher: { terminationGracePeriodSeconds: null } },
    /dispatcher\.terminationGracePeriodSeconds: required, since the chart cannot see webhooks\.timeout/,
    "existing",
  ],
  [
    "a timeout from a variable",
    { config: { settings: { webhooks: { timeout: "${T:-30}" } } } },
    /dispatcher\.terminationGracePeriodSeconds: required/,
  ],
  ["no pods", { api: { replicas: 0 } }, /\/api\/replicas': minimum: got 0, want 1/],
  [
    "no dispatcher between peaks",
    { dispatcher: { autoscaling: { minReplicas: 0 } } },
    /\/dispatcher\/autoscaling\/minReplicas': minimum: got 0, want 1/,
    "keda",
  ],
  [
    "two ways of scaling",
    { dispatcher: { autoscaling: { type: "keda,hpa" } } },
    /\/dispatcher\/autoscaling\/type': value must be one of 'none', 'hpa', 'keda'/,
  ],
  [
    "less than the least pods",
    { api: { autoscaling: { maxReplicas: 2 } } },
    /api\.autoscaling\.maxReplicas: expected at least minReplicas, 3/,
    "hpa",
  ],
  [
    "scaling by nothing",
    { dispatcher: { autoscaling: { targetCPU: 0 } } },
    /dispatcher\.autoscaling: expected targetCPU, targetMemory or both/,
    "hpa",
  ],
  [
    "scaling by a share of nothing",
    { api: { resources: { requests: { cpu: null } } } },
    /api\.resources\.requests\.cpu: required/,
    "hpa",
  ],
  ["an ingress without a host", { ingress: { enabled: true } }, /ingress\.hosts: expected at least one/],
  [
    "an ingress to an unknown path",
    { ingress: { enabled: true, hosts: ["a.b"] }, config: { settings: { http: { routePrefix: "${P}" } } } },
    /config\.settings\.http\.routePrefix: expected the path itself/,
  ],
  [
    "an ingress to an unknown console",
    { ingress: { enabled: true, hosts: ["a.b"] }, config: { settings: { console: { path: "${P}" } } } },
    /config\.settings\.console\.path: expected the path itself/,
  ],
  [
    "unknown networks",
    { networkPolicy: { enabled: true }, config: { settings: { webhooks: { allowedNetworks: ["${N}"] } } } },
    /webhooks\.allowedNetworks: expected the CIDRs themselves/,
  ],
  [
    "a list of networks in a variable",
    { networkPolicy: { enabled: true }, config: { settings: { webhooks: { allowedNetworks: "${N}" } } } },
    /webhooks\.allowedNetworks: expected a list/,
  ],
  [
    "a label that selectors choose by",
    { api: { podLabels: { "app.kubernetes.io/component": "mine" } } },
    /invalid propertyName 'app\.kubernetes\.io\/component'/,
  ],
  [
    "an ingress to a path from a variable",
    {
      ingress: { enabled: true, hosts: ["a.b"] },
      api: { extraEnv: [{ name: "SVC_ROUTE_PREFIX", value: "/" }] },
    },
    /extraEnv: expected config\.settings\.http\.routePrefix instead of a variable/,
  ],
  [
    "networks from a variable",
    { networkPolicy: { enabled: true }, extraEnv: [{ name: "SVC_ALLOWED_NETWORKS", value: "10.0.0.0/8" }] },
    /extraEnv: expected config\.settings\.webhooks\.allowedNetworks instead of a variable/,
  ],
  ["a group without values", { ingress: null }, /missing property 'ingress'/],
  ["an unknown value", { replicaCount: 3 }, /at '': additional properties 'replicaCount' not allowed/],
  [
    "an unknown value in a group",
    { api: { replica: 3 } },
    /\/api': additional properties 'replica' not allowed/,
  ],
  [
    "a variable given twice over",
    { extraEnv: [{ name: "A", value: "1", valueFrom: {} }] },
    /\/extraEnv\/0': 'not' failed/,
  ],
  [
    "a quantity without a number",
    { api: { resources: { limits: { memory: "lots" } } } },
    /\/api\/resources\/limits\/memory/,
  ],
];

describe("refused values", () => {
  for (const [name, values, message, file = "minimal"] of refused) {
    it(name, () => {
      expect(refusal({ file, values })).to.match(message);
    });
  }

  for (const release of ["1st", "svc.eu"]) {
    it(`a release name that is invalid for a Service: ${release}`, () => {
      expect(refusal({ release })).to.match(
        /fullnameOverride: expected a name for the Services, since \S+ is none/,
      );
      expect(refusal({ release, values: { fullnameOverride: "svc" } })).to.equal("");
    });
  }

  it("are all named at once", () => {
    const values = { image: { repository: "" }, secret: { secretKey: "" }, ingress: { enabled: true } };

    expect(refusal({ values })).to.include("3 faults in the values:");
  });
});

describe("accepted values", () => {
  it("may give the ids of the pod's user to the platform", () => {
    const values = { podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null } };

    expect(refusal({ values })).to.equal("");
  });

  it("may be keys without a value", () => {
    const none = { extraEnv: null, podLabels: null, podAnnotations: null, resources: null };
    const empty = { extraEnv: null, commonLabels: null, commonAnnotations: null, config: { settings: null } };
    const serviceAccount = { annotations: null };
    const networkPolicy = { enabled: true, receivers: { networks: null } };

    expect(
      refusal({ values: { ...empty, api: none, dispatcher: none, serviceAccount, networkPolicy } }),
    ).to.equal("");
    expect(refusal({ values: { networkPolicy, config: { settings: { webhooks: null } } } })).to.equal("");
  });

  it("may come through a parent chart", () => {
    expect(refusal({ values: { global: { anything: 1 } } })).to.equal("");
  });
});
