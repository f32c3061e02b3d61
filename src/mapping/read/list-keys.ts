import { hint } from "../../kit/did-you-mean.ts";
import type { Definition, Definitions } from "../definition.ts";
import { filterFault, findPlace, includedBy, shownPlaces, sortFault, unknown, type Found } from "../shown.ts";
import { hasFields, type Draft } from "./draft.ts";

/** Checks `includes`: relations of the resource, each once. */
export function checkIncludes(draft: Draft): void {
  const names = draft.content.includes ?? [];
  for (const [index, name] of names.entries()) {
    const path = ["includes", index];
    if (names.indexOf(name) < index) draft.report(path, `"${name}" is in the list already`);
    else if (draft.fields.has(name)) draft.report(path, `"${name}" is a field; expected a relation`);
    else if (!draft.relations.has(name) && hasFields(draft) && !draft.mayHaveRelation(name))
      draft.report(path, `there is no relation "${name}"${hint(name, draft.relations.keys())}`);
  }
}

/** Keys whose faults may be the reason why a path does not exist. */
const causes = /^(?:fields|transform|baseQuery|module)\b/;

/**
 * Checks `filterable` and `sortable` against the JSON of the record.
 *
 * @param definition The draft's definition; undefined when a fault prevents it.
 * @param definitions All definitions without faults.
 */
export function checkListPaths(
  draft: Draft,
  definition: Definition | undefined,
  definitions: Definitions,
): void {
  if (definition === undefined || draft.faults.some(({ key }) => causes.test(key))) return;
  const isCode = definition.code.transform !== undefined;
  const places = shownPlaces(definition, definitions, includedBy(definition));
  const keys = [
    { key: "filterable", verb: "filtered", faultOf: filterFaultOfAll },
    { key: "sortable", verb: "sorted", faultOf: sortFault },
  ] as const;
  for (const { key, verb, faultOf } of keys) {
    const paths = draft.content[key] ?? [];
    for (const [index, path] of paths.entries()) {
      const found = findPlace(places, path);
      const fault = found === undefined ? undefined : faultOf(found);
      const what = isCode ? `there is no field "${path}"` : `the record's JSON has no "${path}"`;
      if (paths.indexOf(path) < index) draft.report([key, index], `"${path}" is in the list already`);
      else if (fault !== undefined && fault !== unknown)
        draft.report([key, index], `"${path}" cannot be ${verb}: it is ${fault}`);
      else if (found === undefined && !isBelowUnknown(path, places))
        draft.report([key, index], `${what}${hint(path, usable(places, faultOf))}`);
    }
  }
}

/** Returns the fault for `filterable`, where a Json field stands for every path in it. */
function filterFaultOfAll(found: Found): string | undefined {
  const { field } = found.place;
  return field?.type === "Json" && !field.isList ? undefined : filterFault(found);
}

function usable(
  places: ReturnType<typeof shownPlaces>,
  faultOf: (found: Found) => string | undefined,
): readonly string[] {
  return [...places].flatMap(([path, place]) => (faultOf({ place }) === undefined ? [path] : []));
}

function isBelowUnknown(path: string, places: ReturnType<typeof shownPlaces>): boolean {
  const keys = path.split(".");
  return keys.some((_, index) => places.get(keys.slice(0, index).join("."))?.instead === unknown);
}
