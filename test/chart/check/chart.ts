import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments, stringify } from "yaml";
import { fileOf } from "../generated.ts";

/** The chart's root. */
export const chart = fileURLToPath(fileOf("helm"));

/** Names of the files of values with which the chart is rendered. */
export const cases = readdirSync(fileOf("helm/ci")).toSorted();

/** Returns a path or a list from `.ci/helm`. */
export function given(variable: `SVC_${string}`): string {
  const value = process.env[variable];
  if (value === undefined || value === "") throw new Error(`${variable} is not set: run .ci/helm`);
  return value;
}

/** Versions of Kubernetes, the oldest first. */
export const versions: readonly string[] = given("SVC_KUBERNETES").split(" ");

interface LabelSelector {
  readonly matchLabels: Readonly<Record<string, string>>;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly secretKeyRef?: { name: string; key: string; optional?: boolean } };
  }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: readonly string[] } } };
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly resources: { readonly requests?: object; readonly limits?: object };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

interface PodSpec {
  readonly containers: readonly [Container];
  readonly serviceAccountName: string;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly topologySpreadConstraints?: readonly { readonly labelSelector: LabelSelector }[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly configMap?: { name: string; items?: readonly { key: string; path: string }[] };
    readonly emptyDir?: object;
  }[];
}

interface Port {
  readonly port: number | string;
}

export interface Peer {
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
  readonly podSelector?: LabelSelector;
}

/** An object of Kubernetes, with the parts that the checks read. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: Partial<PodSpec> & {
    readonly replicas?: number;
    readonly strategy?: {
      readonly rollingUpdate: { readonly maxUnavailable: unknown; readonly maxSurge: unknown };
    };
    readonly selector?: LabelSelector & Readonly<Record<string, string>>;
    readonly podSelector?: LabelSelector;
    readonly template?: {
      readonly metadata: Pick<KubernetesObject["metadata"], "labels" | "annotations">;
      readonly spec: PodSpec;
    };
    readonly scaleTargetRef?: { readonly name: string };
    readonly minReplicas?: number;
    readonly ports?: readonly { readonly name: string; readonly port: number; readonly targetPort: string }[];
    readonly ingress?: readonly { readonly ports: readonly Port[]; readonly from?: readonly Peer[] }[];
    readonly egress?: readonly { readonly ports?: readonly Port[]; readonly to?: readonly Peer[] }[];
    readonly endpoints?: readonly { readonly port: string }[];
    readonly groups?: readonly { readonly rules: readonly Rule[] }[];
    readonly rules?: readonly {
      readonly host: string;
      readonly http: { readonly paths: readonly { path: string; backend: { service: { name: string } } }[] };
    }[];
    readonly triggers?: readonly { readonly metadata: { readonly queueName: string } }[];
  };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface Options {
  /** A file of `helm/ci`, without its ending. */
  readonly file?: string;
  /** Merged over the file. */
  readonly values?: object;
  readonly kubernetes?: string;
  /** Name of the release. */
  readonly release?: string;
  /** Another chart than this one. */
  readonly root?: string;
}

function run(
  command: string,
  {
    file = "minimal",
    values = {},
    kubernetes = versions.at(-1) ?? "",
    release = "release",
    root = chart,
  }: Options,
) {
  const names = command === "template" ? [release, root] : [root];
  const flags = ["--namespace", "team", "--kube-version", kubernetes, "--values", `${chart}/ci/${file}.yaml`];
  const strict = command === "lint" ? ["--strict"] : [];
  return spawnSync(given("SVC_HELM"), [command, ...names, ...strict, ...flags, "--values", "-"], {
    input: stringify(values),
    encoding: "utf8",
    maxBuffer: 64 * 1024 ** 2,
  });
}

/** Returns the complaints of `helm lint --strict`; empty without any. */
export function lint(options: Options): string {
  const { status, stdout, stderr } = run("lint", options);
  return status === 0 ? "" : `${stdout}${stderr}`;
}

/** Returns helm's message for values that it refuses; empty when it accepts them. */
export function refusal(options: Options): string {
  const { status, stderr } = run("template", options);
  return status === 0 ? "" : stderr;
}

/** The objects as text, hooks included. */
export function renderText(options: Options): string {
  const { status, stdout, stderr } = run("template", options);
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** The objects, hooks included. */
export function render(options: Options): readonly KubernetesObject[] {
  return parseAllDocuments(renderText(options)).flatMap((document) => {
    if (document.errors.length > 0) throw document.errors[0] as Error;
    return (document.toJS() as KubernetesObject | null) ?? [];
  });
}

/**
 * Returns kubeconform's complaints about the objects; empty without any. A kind without a schema is
 * a fault.
 */
export function schemaFaults(text: string, kubernetes: string): string {
  const schemas = given("SVC_CHART_SCHEMAS");
  const places = [
    "{{.NormalizedKubernetesVersion}}/{{.ResourceKind}}{{.KindSuffix}}",
    "custom/{{.Group}}/{{.ResourceKind}}-{{.ResourceAPIVersion}}",
  ];
  const flags = places.flatMap((place) => ["-schema-location", `${schemas}/${place}.json`]);
  const { status, stdout, stderr } = spawnSync(
    given("SVC_KUBECONFORM"),
    ["-strict", "-kubernetes-version", kubernetes, ...flags, "-"],
    { input: text, encoding: "utf8" },
  );
  return status === 0 ? "" : `${stdout}${stderr}` || "kubeconform failed without a word";
}

/** Runs promtool and returns its output. Throws the output when it finds a fault. */
export function promtool(args: readonly string[]): string {
  try {
    return execFileSync(given("SVC_PROMTOOL"), args, { encoding: "utf8", stdio: "pipe" });
  } catch (error) {
    const { stdout, stderr } = error as { readonly stdout: string; readonly stderr: string };
    throw new Error(`${stdout}${stderr}`, { cause: error });
  }
}

/** Returns the one object of a kind whose name ends in `suffix`. */
export function find(objects: readonly KubernetesObject[], kind: string, suffix = ""): KubernetesObject {
  const found = objects.filter((object) => object.kind === kind && object.metadata.name.endsWith(suffix));
  const [only] = found;
  if (only === undefined || found.length > 1)
    throw new Error(`${found.length} objects are ${kind} …${suffix}`);
  return only;
}

/** A pod that some object creates. */
export interface Pod {
  readonly component: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: PodSpec;
  readonly container: Container;
  /** The object that creates it, or the pod itself. */
  readonly maker: KubernetesObject;
}

export function podsOf(objects: readonly KubernetesObject[]): readonly Pod[] {
  return objects.flatMap((maker) => {
    const template =
      maker.kind === "Pod" ? { metadata: maker.metadata, spec: maker.spec as PodSpec } : maker.spec?.template;
    if (template === undefined) return [];
    const { labels, annotations = {} } = template.metadata;
    const [container] = template.spec.containers;
    return [
      {
        component: labels["app.kubernetes.io/component"] ?? "",
        labels,
        annotations,
        spec: template.spec,
        container,
        maker,
      },
    ];
  });
}

/** Returns the components of the pods that a selector matches. */
export function chosen(pods: readonly Pod[], selector: Readonly<Record<string, string>>): readonly string[] {
  return pods
    .filter(({ labels }) => Object.entries(selector).every(([key, value]) => labels[key] === value))
    .map(({ component }) => component);
}

/** Returns the pod of a component. */
export function podOf(objects: readonly KubernetesObject[], component: string): Pod {
  const pod = podsOf(objects).find((one) => one.component === component);
  if (pod === undefined) throw new Error(`no pod is the ${component}`);
  return pod;
}
