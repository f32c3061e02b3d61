import type { Definition, TransformNode } from "../mapping/definition.ts";

type ObjectNode = Extract<TransformNode, { kind: "object" }>;

/**
 * Returns the part of a resource's transform that shows the paths, in the order of the transform. A path that is not shown
 * adds nothing.
 *
 * @param fields Paths of the record's JSON, `customer.name`.
 */
export function projectTransform(definition: Definition, fields: readonly string[]): ObjectNode {
  const whole: ObjectNode = definition.transform ?? {
    kind: "object",
    entries: definition.fields.map(({ name }) => [name, { kind: "path", path: [name] }]),
  };
  return projected(
    whole,
    fields.map((path) => path.split(".")),
  );
}

function projected(node: ObjectNode, paths: readonly (readonly string[])[]): ObjectNode {
  const entries = node.entries.flatMap(([key, child]): ObjectNode["entries"] => {
    const within = paths.flatMap(([first, ...rest]) => (first === key ? [rest] : []));
    if (within.length === 0) return [];
    const isWhole = within.some((rest) => rest.length === 0) || child.kind !== "object";
    return [[key, isWhole ? child : projected(child, within)]];
  });
  return { kind: "object", entries };
}
