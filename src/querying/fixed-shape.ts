import { countModes, type Field, type FieldType } from "../mapping/definition.ts";
import type { Shown } from "../mapping/shown.ts";
import type { Operator } from "./operators.ts";
import type { ListShape, PathTable, ShownPath } from "./shown-paths.ts";

/** A key of the JSON in one of the service's own lists. */
export interface ListedKey {
  /** Name of the key and of its column. */
  readonly name: string;
  readonly type: FieldType;
  readonly isList?: boolean;
  readonly isOptional?: boolean;
  /** Enum only. */
  readonly values?: readonly string[];
  /** Operators of its filters. Undefined: all operators of its type. */
  readonly operators?: readonly Operator[];
  readonly isSorted?: boolean;
  /** Reason why the key can be neither filtered nor sorted, to complete "it is ...". */
  readonly fault?: string;
}

/** Returns the shape of a list without a mapping file, such as that of webhooks or deliveries. */
export function fixedShape(
  keys: readonly ListedKey[],
  {
    own = {},
    ...rest
  }: Partial<Pick<ListShape, "hasGroups" | "counts">> & {
    /** Parameters that only this list has. Each function returns the fault of a text. */
    readonly own?: Readonly<Record<string, (text: string) => string | undefined>>;
  } = {},
): ListShape & { readonly places: ReadonlyMap<string, Shown> } {
  const shown = keys.map(({ operators, ...key }): readonly [ListedKey, ShownPath] => [
    key,
    { path: key.name, links: [], field: fieldOf(key), ...(operators !== undefined && { operators }) },
  ]);
  const tableOf = (isIn: (key: ListedKey) => boolean): PathTable => ({
    paths: new Map(shown.flatMap(([key, path]) => (isIn(key) ? [[key.name, path]] : []))),
    faults: new Map(keys.flatMap((key) => (isIn(key) ? [] : [[key.name, key.fault ?? ""]]))),
  });
  return {
    filterable: tableOf(({ fault }) => fault === undefined),
    sortable: tableOf(({ fault, isSorted, isList }) => fault === undefined && (isSorted ?? isList !== true)),
    places: new Map(shown.map(([{ name }, { field }]) => [name, { keys: [name], steps: [], field }])),
    includes: [],
    hasGroups: true,
    hasSearch: false,
    counts: countModes,
    own: new Map(Object.entries(own)),
    ...rest,
  };
}

function fieldOf({ name, type, isList = false, isOptional = false, values }: ListedKey): Field {
  return {
    name,
    type,
    column: name,
    isList,
    isOptional,
    isKey: name === "id",
    isUnique: false,
    isIndexed: false,
    isUpdatedAt: false,
    ...(values !== undefined && { values }),
  };
}
