import { expect } from "chai";
import { queues } from "../../../src/broker/topology.ts";
import { cases, chosen, find, podOf, podsOf, render, type KubernetesObject, type Pod } from "./chart.ts";

/** Objects that ci/existing.yaml names, which exist before the chart. */
const existing = new Set([
  "Secret svc-secrets",
  "ConfigMap my-settings",
  "ConfigMap my-resources",
  "ServiceAccount my-account",
]);
/** Objects that the other files name. */
const others = new Set([
  "Secret svc",
  "ConfigMap company-ca",
  "Secret 1e3",
  "ConfigMap 12",
  "ConfigMap 34",
  "ServiceAccount 56",
]);

/** Returns the weight of a hook; undefined for an object of the release. */
function hookWeight({ metadata }: KubernetesObject): number | undefined {
  const weight = metadata.annotations?.["helm.sh/hook-weight"];
  return weight === undefined ? undefined : Number(weight);
}

function isHook({ metadata }: KubernetesObject, name: string): boolean {
  return metadata.annotations?.["helm.sh/hook"]?.split(",").includes(name) === true;
}

/** Returns the objects that a pod needs to start, as `Kind name`. */
function needsOf({ spec, container }: Pod): readonly string[] {
  const secrets = (container.env ?? []).flatMap(({ valueFrom }) => valueFrom?.secretKeyRef ?? []);
  return [
    `ServiceAccount ${spec.serviceAccountName}`,
    ...secrets.filter(({ optional }) => optional !== true).map(({ name }) => `Secret ${name}`),
    ...(spec.volumes ?? []).flatMap(({ configMap }) => (configMap ? [`ConfigMap ${configMap.name}`] : [])),
  ];
}

for (const file of cases.map((name) => name.replace(/\.yaml$/, ""))) {
  describe(`the objects of ci/${file}.yaml`, () => {
    let objects: readonly KubernetesObject[];
    let pods: readonly Pod[];
    const of = (kind: string): readonly KubernetesObject[] =>
      objects.filter((object) => object.kind === kind);
    const pod = (component: string): Pod => {
      const found = pods.find((one) => one.component === component);
      if (found === undefined) throw new Error(`no pod is the ${component}`);
      return found;
    };

    before(() => {
      objects = render({ file });
      pods = podsOf(objects);
    });

    it("have names that are free, valid and short enough for every kind", () => {
      const names = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);

      expect(new Set(names).size).to.equal(names.length);
      for (const { metadata } of objects) expect(metadata.name).to.match(/^[a-z0-9][a-z0-9-]{0,62}$/);
    });

    it("are selected by their own selectors only", () => {
      expect(pods.map(({ component }) => component).toSorted()).to.deep.equal([
        "api",
        "dispatcher",
        "migrate",
        "test",
      ]);
      for (const { kind, metadata, spec } of objects) {
        const own = [metadata.labels["app.kubernetes.io/component"]];
        if (kind === "Service") expect(chosen(pods, spec?.selector ?? {}), metadata.name).to.deep.equal(own);
        if (kind === "Deployment" || kind === "PodDisruptionBudget")
          expect(chosen(pods, spec?.selector?.matchLabels ?? {}), `${kind} ${metadata.name}`).to.deep.equal(
            own,
          );
        if (kind === "NetworkPolicy")
          expect(chosen(pods, spec?.podSelector?.matchLabels ?? {}), metadata.name).to.deep.equal(own);
      }
    });

    it("spread the pods of one program over nodes and zones", () => {
      for (const { component, spec } of [pod("api"), pod("dispatcher")]) {
        expect(spec.topologySpreadConstraints?.length).to.be.greaterThan(0);
        for (const { labelSelector } of spec.topologySpreadConstraints ?? [])
          expect(chosen(pods, labelSelector.matchLabels)).to.deep.equal([component]);
      }
    });

    it("use Secrets, ConfigMaps and ServiceAccounts that exist in time", () => {
      const known = file === "existing" ? existing : others;
      for (const one of pods) {
        const weight = hookWeight(one.maker);
        for (const need of needsOf(one)) {
          const object = objects.find(({ kind, metadata }) => `${kind} ${metadata.name}` === need);
          if (object === undefined) expect(known, `${one.component} needs it`).to.include(need);
          // A test runs when all objects exist.
          else if (isHook(one.maker, "test") || weight === undefined)
            expect(hookWeight(object), need).to.equal(undefined);
          // Hooks run before any object of the release is created, the lightest first.
          else expect(hookWeight(object), `the Job needs ${need}`).to.be.lessThan(weight);
        }
      }
    });

    it("migrate before an installation, an upgrade and a rollback, and leave nothing but the Job", () => {
      const { maker, container } = pod("migrate");

      expect(maker.kind).to.equal("Job");
      expect(container.args?.slice(0, 2)).to.deep.equal(["svc-admin", "migrate"]);
      for (const object of objects.filter((one) => hookWeight(one) !== undefined)) {
        for (const hook of ["pre-install", "pre-upgrade", "pre-rollback"])
          expect(isHook(object, hook), `${object.metadata.name}, ${hook}`).to.equal(true);
        const policy = object.kind === "Job" ? "before-hook-creation" : "before-hook-creation,hook-succeeded";
        expect(object.metadata.annotations?.["helm.sh/hook-delete-policy"]).to.equal(policy);
      }
    });

    it("migrate to the settings and mapping files that the programs then read", () => {
      for (const name of ["settings", "resources"]) {
        const [own, forJob] = [pod("api"), pod("migrate")].map(({ spec }) => {
          const wanted = spec.volumes?.find((volume) => volume.name === name)?.configMap?.name;
          return wanted !== undefined &&
            (existing.has(`ConfigMap ${wanted}`) || others.has(`ConfigMap ${wanted}`))
            ? wanted
            : of("ConfigMap").find(({ metadata }) => metadata.name === wanted)?.data;
        });
        expect(own).to.not.equal(undefined);
        expect(forJob).to.deep.equal(own);
      }
    });

    it("keep to the restricted Pod Security Standard, with a read-only root", () => {
      for (const { spec, container } of pods) {
        expect(spec.securityContext).to.deep.include({
          runAsNonRoot: true,
          runAsUser: 1000,
          seccompProfile: { type: "RuntimeDefault" },
        });
        expect(container.securityContext).to.deep.equal({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
        expect(spec.automountServiceAccountToken).to.equal(false);
        expect(spec.enableServiceLinks).to.equal(false);
        expect(container.resources).to.have.keys("requests", "limits");
        for (const volume of spec.volumes ?? [])
          expect(Object.keys(volume)).to.have.members(["name", volume.emptyDir ? "emptyDir" : "configMap"]);
      }
    });

    it("refer probes, Services, policies and monitors to existing ports", () => {
      for (const { component, container } of [pod("api"), pod("dispatcher")]) {
        const ports = new Set(container.ports?.map(({ name }) => name));
        for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"] as const)
          expect(container[probe]?.httpGet.port).to.equal("metrics");
        expect(container["livenessProbe"]?.httpGet.path).to.equal("/livez");
        // Events wait in the outbox while RabbitMQ is away, so the API stays in service.
        const ready = component === "api" ? "/readyz?exclude=broker" : "/readyz";
        expect(container["readinessProbe"]?.httpGet.path).to.equal(ready);
        const services = of("Service").filter(({ spec }) =>
          chosen(pods, spec?.selector ?? {}).includes(component),
        );
        expect(services).to.have.length(component === "api" ? 2 : 1);
        for (const { spec } of services)
          for (const { targetPort } of spec?.ports ?? []) expect(ports).to.include(targetPort);
        for (const { spec } of of("NetworkPolicy").filter((policy) =>
          chosen(pods, policy.spec?.podSelector?.matchLabels ?? {}).includes(component),
        ))
          for (const { port } of (spec?.ingress ?? []).flatMap((rule) => rule.ports))
            expect(ports).to.include(port);
      }
    });

    it("replace pods one by one, when another is ready", () => {
      for (const { spec } of of("Deployment"))
        expect(spec?.strategy?.rollingUpdate).to.deep.equal({ maxUnavailable: 0, maxSurge: "25%" });
    });

    it("have a fixed number of pods, or their own scaler, never both", () => {
      for (const { metadata, spec } of of("Deployment")) {
        const scalers = [...of("HorizontalPodAutoscaler"), ...of("ScaledObject")].filter(
          (scaler) => scaler.spec?.scaleTargetRef?.name === metadata.name,
        );
        expect(scalers, metadata.name).to.have.length(spec?.replicas === undefined ? 1 : 0);
      }
    });
  });
}

describe("the objects of ci/keda.yaml", () => {
  it("count the messages of every queue that a dispatcher works on", () => {
    const { spec } = find(render({ file: "keda" }), "ScaledObject");

    const work = Object.values(queues).filter((queue) => queue !== queues.dead);
    expect(spec?.triggers?.map(({ metadata }) => metadata.queueName)).to.have.members(work);
  });
});

/** Returns the paths that the ingress routes with these settings of the console. */
function pathsOf(console: object): readonly string[] {
  const objects = render({ file: "full", values: { config: { settings: { console } } } });
  return (find(objects, "Ingress").spec?.rules?.[0]?.http.paths ?? []).map(({ path }) => path);
}

describe("the objects of ci/existing.yaml", () => {
  it("route every path to settings that the chart does not see", () => {
    const objects = render({
      file: "existing",
      values: {
        ingress: { enabled: true, hosts: ["a.b"] },
        api: { extraEnv: [{ name: "SVC_ROUTE_PREFIX", value: "/v1" }] },
      },
    });

    const paths = find(objects, "Ingress").spec?.rules?.[0]?.http.paths ?? [];
    expect(paths.map(({ path }) => path)).to.deep.equal(["/"]);
    expect(podOf(objects, "test").container.args?.[0]).not.to.include("whoami");
  });
});

describe("the objects of ci/full.yaml", () => {
  it("route the prefix of the settings and the console, and nothing else", () => {
    const objects = render({ file: "full" });

    const rules = find(objects, "Ingress").spec?.rules ?? [];
    expect(rules.map(({ host }) => host)).to.deep.equal(["hooks.example.com", "*.hooks.example.org"]);
    for (const { http } of rules) {
      expect(http.paths.map(({ path }) => path)).to.deep.equal(["/api/v1", "/console"]);
      expect(
        objects.filter(({ kind }) => kind === "Service").map(({ metadata }) => metadata.name),
      ).to.include(http.paths[0]?.backend.service.name);
    }
  });

  for (const routePrefix of ["", "/"])
    it(`route every path for the prefix "${routePrefix}", which is none`, () => {
      const objects = render({ file: "full", values: { config: { settings: { http: { routePrefix } } } } });

      const [api] = find(objects, "Ingress").spec?.rules?.[0]?.http.paths ?? [];
      expect(api?.path).to.equal("/");
      expect(podOf(objects, "test").container.args?.[0]).to.match(/:\d+\/whoami"/);
    });

  it("request no path that comes from a variable, which the chart does not see", () => {
    const http = { routePrefix: "${PREFIX:-/v1}" };
    const values = { ingress: { enabled: false }, config: { settings: { http } } };

    expect(podOf(render({ file: "full", values }), "test").container.args?.[0]).not.to.include("whoami");
  });

  it("route no console that is off, and a moved one by its path", () => {
    expect(pathsOf({ enabled: false })).to.deep.equal(["/api/v1"]);
    expect(pathsOf({ path: "/desk/" })).to.deep.equal(["/api/v1", "/desk"]);
  });

  it("let Prometheus find the metrics Services of both programs, and no other", () => {
    const objects = render({ file: "full" });
    const { spec } = find(objects, "ServiceMonitor");

    const selected = objects.filter(
      ({ kind, metadata }) =>
        kind === "Service" &&
        Object.entries(spec?.selector?.matchLabels ?? {}).every(
          ([key, value]) => metadata.labels[key] === value,
        ),
    );
    expect(selected.map(({ metadata }) => metadata.name)).to.have.members([
      "release-webhooks-api-metrics",
      "release-webhooks-dispatcher-metrics",
    ]);
    for (const service of selected)
      expect(service.spec?.ports?.map(({ name }) => name)).to.include(spec?.endpoints?.[0]?.port);
  });

  it("have the dashboards as they are in the chart", () => {
    const { data = {} } = find(render({ file: "full" }), "ConfigMap", "dashboard");

    expect(Object.keys(data).length).to.be.greaterThan(0);
    for (const text of Object.values(data)) expect(JSON.parse(text)).to.have.property("panels");
  });
});
