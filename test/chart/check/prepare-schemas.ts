import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/**
 * Writes the schemas of Kubernetes and of custom resources for kubeconform:
 * `<out>/<version>/<kind>-<group>-<version>.json` and `<out>/custom/<group>/<kind>-<version>.json`.
 *
 * Arguments: the folder of schemas by version, the folder to write to, then versions of Kubernetes
 * and files of CustomResourceDefinitions.
 */
function main([schemas = "", out = "", ...rest]: readonly string[]): void {
  for (const one of rest) {
    if (one.endsWith(".yaml")) writeCustom(one, join(out, "custom"));
    else rewrite(join(schemas, `v${one}-local-strict`), join(out, `v${one}`));
  }
}

/** Rewrites the references from the published URL to the file beside. */
function rewrite(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), "utf8").replaceAll(
      "/api/_definitions.json#",
      "_definitions.json#",
    );
    const { $id: _, ...schema } = JSON.parse(text) as Record<string, unknown>;
    writeFileSync(join(to, file), JSON.stringify(schema));
  }
}

interface CustomResourceDefinition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
    }[];
  };
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly type?: string;
  readonly nullable?: boolean;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
}

function writeCustom(file: string, to: string): void {
  const { spec } = parse(readFileSync(file, "utf8")) as CustomResourceDefinition;
  mkdirSync(join(to, spec.group), { recursive: true });
  for (const { name, schema } of spec.versions) {
    const path = join(to, spec.group, `${spec.names.kind.toLowerCase()}-${name}.json`);
    writeFileSync(path, JSON.stringify(strict(schema.openAPIV3Schema)));
  }
}

/** Forbids unknown fields. An API server drops them. */
function strict(schema: Schema): unknown {
  const { properties, items, additionalProperties, type, nullable, ...rest } = schema;
  const isClosed =
    properties !== undefined &&
    additionalProperties === undefined &&
    schema["x-kubernetes-preserve-unknown-fields"] !== true;
  return {
    ...rest,
    ...(type !== undefined && { type: nullable === true ? [type, "null"] : type }),
    ...(properties !== undefined && {
      properties: Object.fromEntries(Object.entries(properties).map(([key, value]) => [key, strict(value)])),
    }),
    ...(items !== undefined && { items: strict(items) }),
    ...(typeof additionalProperties === "object" && { additionalProperties: strict(additionalProperties) }),
    ...(typeof additionalProperties === "boolean" && { additionalProperties }),
    ...(isClosed && { additionalProperties: false }),
  };
}

main(process.argv.slice(2));
