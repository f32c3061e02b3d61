import type { Definition, TransformNode } from "../mapping/definition.ts";

type ObjectNode = Extract<TransformNode, { kind: "object" }>;

/** The part of a transform that shows the requested paths. */
interface ProjectedTransform {
  readonly transform: ObjectNode;
  /**
   * False when a path leads to a part of a node: the transform still contains the rest of the node.
   */
  readonly isExact: boolean;
}

/**
 * Returns the part of a resource's transform that shows the paths, in the order of the transform.
 *
 * @param paths Paths of the record's JSON. Undefined: all of it.
 * @param except Keys of the record to leave out.
 */
export function projectTransform(
  { transform, fields }: Definition,
  paths: readonly (readonly string[])[] | undefined,
  except: readonly string[],
): ProjectedTransform {
  const all: ObjectNode = transform ?? {
    kind: "object",
    entries: fields.map(({ name }) => [name, { kind: "path", path: [name] }]),
  };
  const entries = all.entries.filter(([key]) => !except.includes(key));
  const whole: ObjectNode = { kind: "object", entries };
  return paths === undefined ? { transform: whole, isExact: true } : projected(whole, paths);
}

function projected(node: ObjectNode, paths: readonly (readonly string[])[]): ProjectedTransform {
  let isExact = true;
  const entries = node.entries.flatMap(([key, child]): ObjectNode["entries"] => {
    const within = paths.flatMap(([first, ...rest]) => (first === key ? [rest] : []));
    if (within.length === 0) return [];
    if (within.some((rest) => rest.length === 0)) return [[key, child]];
    if (child.kind !== "object") {
      isExact = false;
      return [[key, child]];
    }
    const part = projected(child, within);
    isExact &&= part.isExact;
    return [[key, part.transform]];
  });
  return { transform: { kind: "object", entries }, isExact };
}
