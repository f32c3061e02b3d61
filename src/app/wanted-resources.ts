import { createHash } from "node:crypto";
import { quoteText } from "../db/names.ts";
import { captureBelow, captureOf, captureTriggerNames, removeCapture } from "../events/capture.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { tableModelOf } from "../mapping/models.ts";
import type { Step } from "../migration/core-migrations.ts";
import type { Installed, InstalledResource } from "../migration/installed.ts";
import { tableIndexesOf } from "../migration/table-indexes.ts";
import type { ValueCheck } from "../migration/value-checks.ts";

/** A resource in its wanted state, with the statements that install it. */
interface WantedResource extends InstalledResource {
  readonly installCapture: readonly string[];
  readonly captureBelow: string;
  /** Empty when the resource declares no triggers. */
  readonly triggerNames: readonly string[];
}

/**
 * Returns the resources in their wanted state. The hash has two halves: one for the table, one for
 * the capture.
 */
export function wantedResources(definitions: Definitions): readonly WantedResource[] {
  return [...definitions.values()].map((definition) => {
    const { name, table, isManaged } = definition;
    const capture = captureOf(definition);
    const hash = `${shapeHashOf(definition, definitions)} ${capture.hash}`;
    return {
      name,
      table,
      isManaged,
      hash,
      installCapture: capture.install,
      captureBelow: captureBelow(definition),
      triggerNames: captureTriggerNames(definition),
    };
  });
}

/** Hashes the mapping file's requirements for the table. */
export function shapeHashOf(definition: Definition, definitions: Definitions): string {
  const { isManaged, fields } = definition;
  const shape = isManaged
    ? [
        tableModelOf(definition, definitions),
        valueChecksOf(definition),
        // Adds nothing without indexes, so that hashes from before indexes existed stay valid.
        ...(definition.indexes.length > 0 ? [tableIndexesOf(definition)] : []),
      ]
    : fields.map(({ name, type, column, isList }) => [name, type, column, isList]);
  return createHash("sha256").update(JSON.stringify(shape)).digest("hex");
}

/** Returns the checks of the values of a definition's enum columns. */
export function valueChecksOf({ table, fields }: Definition): readonly ValueCheck[] {
  return fields.flatMap(({ column, isList, values }) =>
    values === undefined ? [] : [{ table, column, isList, values }],
  );
}

/** Why a resource needs a step, and the kind of step. */
export interface Due {
  readonly reason: string;
  /**
   * `capture`: install the capture again, which locks the table. `new partitions`: give them the
   * TRUNCATE trigger. Programs start without it, since other changes of new partitions are
   * captured.
   */
  readonly what: "capture" | "note" | "new partitions";
}

/** Returns the due step of a resource; undefined without one. */
export function dueOf(resource: WantedResource, { resources, triggers }: Installed): Due | undefined {
  const { name, table, isManaged, hash, triggerNames } = resource;
  const last = resources.find((one) => one.name === name);
  if (last === undefined) return { reason: "not installed yet", what: "capture" };
  const live = triggers.filter((one) => one.table === table && triggerNames.includes(one.name));
  const missing = live.flatMap((one) => one.missing);
  const silent = [
    ...(live.length < triggerNames.length ? [table] : []),
    ...new Set(missing.flatMap((one) => (one.isNew ? [] : [one.table]))),
  ];
  // The capture's statements contain the name of the table.
  const isCapture = silent.length > 0 || captureHashOf(last) !== captureHashOf(resource);
  if (last.hash !== hash || last.table !== table || last.isManaged !== isManaged)
    return { reason: "the mapping file changed", what: isCapture ? "capture" : "note" };
  if (silent.length > 0)
    return { reason: `its capture trigger on ${silent.join(", ")} is gone or disabled`, what: "capture" };
  if (missing.length > 0)
    return {
      reason: `capture trigger on ${[...new Set(missing.map((one) => one.table))].join(", ")}`,
      what: "new partitions",
    };
  return undefined;
}

function captureHashOf({ hash }: InstalledResource): string | undefined {
  return hash.split(" ")[1];
}

/** Returns the installed resources that no mapping file defines. */
export function removedResources(
  definitions: Definitions,
  { resources }: Installed,
): readonly InstalledResource[] {
  return resources.filter(({ name }) => !definitions.has(name));
}

/** Returns the step that brings a resource up to date. */
export function stepOf(resource: WantedResource, { what, reason }: Due): Step {
  const { name, table, triggerNames, installCapture } = resource;
  if (what === "note") return { title: `${name}: record the mapping`, sql: noteStatement(resource) };
  if (what === "new partitions") return { title: `${name}: ${reason}`, sql: resource.captureBelow };
  return {
    title: `${name}: ${triggerNames.length === 0 ? "no capture trigger" : `capture trigger on ${table}`}`,
    sql: [...installCapture, noteStatement(resource)].join(";\n"),
  };
}

function noteStatement({ name, table, isManaged, hash }: WantedResource): string {
  const values = [quoteText(name), quoteText(table), String(isManaged), quoteText(hash)].join(", ");
  return (
    `INSERT INTO svc.installed_resources (name, "table", is_managed, hash) VALUES (${values})\n` +
    `ON CONFLICT (name) DO UPDATE SET ("table", is_managed, hash, installed_at) = (excluded."table", excluded.is_managed, excluded.hash, now())`
  );
}

/** Returns the step that removes a resource's capture. */
export function removeStep({ name }: InstalledResource): Step {
  return {
    title: `${name}: remove the capture trigger`,
    sql: [
      ...removeCapture({ name }),
      `DELETE FROM svc.installed_resources WHERE name = ${quoteText(name)}`,
    ].join(";\n"),
  };
}
