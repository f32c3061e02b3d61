import { rowOfSnapshot } from "../events/capture.ts";
import type { OutboxEvent } from "../events/outbox.ts";
import type { Presented } from "../events/relay.ts";
import { messageOf } from "../errors.ts";
import type { Log } from "../log.ts";
import type { ModelsClient } from "../db/models-client.ts";
import type { Definition, Definitions, Relation, Row, TransformNode } from "./definition.ts";
import { createTransform } from "./transform.ts";

/**
 * Turns captured events into the JSON that the API would answer for the same row: the snapshot, with the relations
 * that the transform names read now (null when they are gone).
 */
export function createEventPresenter({
  definitions,
  models,
  log,
}: {
  readonly definitions: Definitions;
  readonly models: ModelsClient;
  readonly log: Log;
}): (events: readonly OutboxEvent[]) => Promise<readonly Presented[]> {
  const presenters = new Map(
    [...definitions.values()].map((definition) => [
      definition.name,
      createPresenter({ definition, definitions, models }),
    ]),
  );

  return async (events) => {
    const answers = new Map<string, Presented>();
    for (const resource of new Set(events.map((event) => event.resource))) {
      const group = events.filter((event) => event.resource === resource);
      const present = presenters.get(resource);
      if (present === undefined) {
        for (const { id } of group)
          answers.set(id, refused(`The resource ${resource} is not in the mapping files.`));
        continue;
      }
      const presented = await present(group);
      group.forEach((event, index) => {
        const answer = presented[index] ?? refused("not presented");
        if (answer.kind === "refused")
          log.error({ resource, eventUuid: event.uuid, reason: answer.reason }, "transform failed");
        answers.set(event.id, answer);
      });
    }
    return events.map(({ id }) => answers.get(id) ?? refused("not presented"));
  };
}

function createPresenter({
  definition,
  definitions,
  models,
}: {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly models: ModelsClient;
}): (events: readonly OutboxEvent[]) => Promise<readonly Presented[]> {
  const transform = createTransform(definition, definitions);
  const loaders = relationsRead(definition).map((relation) => ({
    name: relation.name,
    load: createRelationLoader({
      relation,
      include: includeOf(definition)[relation.name],
      definitions,
      models,
    }),
  }));

  return async (events) => {
    const decoded = events.map((event) => attempt(() => rowOfSnapshot(definition, event.snapshot)));
    const rows = decoded.flatMap((answer) => (answer.kind === "done" ? [answer.value] : []));
    const related = new Map<Row, Record<string, unknown>>(rows.map((row) => [row, {}]));
    for (const { name, load } of loaders) {
      const found = await load(rows);
      rows.forEach((row, index) => {
        (related.get(row) as Record<string, unknown>)[name] = found[index];
      });
    }
    return decoded.map((answer) => {
      if (answer.kind === "failed") return refused(answer.reason);
      const presented = attempt(() => transform({ ...answer.value, ...related.get(answer.value) }));
      return presented.kind === "done"
        ? { kind: "presented", data: presented.value }
        : refused(presented.reason);
    });
  };
}

type Attempted<T> =
  | { readonly kind: "done"; readonly value: T }
  | { readonly kind: "failed"; readonly reason: string };

function attempt<T>(act: () => T): Attempted<T> {
  try {
    return { kind: "done", value: act() };
  } catch (error) {
    return { kind: "failed", reason: messageOf(error) };
  }
}

function refused(reason: string): Presented {
  return { kind: "refused", reason };
}

function includeOf(definition: Definition): Readonly<Record<string, unknown>> {
  return (definition.code.baseQuery?.() ?? definition.baseQuery).include ?? {};
}

/** The included relations that the transform can see: all of them for a code module, else those that its paths begin with. */
function relationsRead(definition: Definition): readonly Relation[] {
  const include = includeOf(definition);
  const named = new Set<string>();
  const visit = (node: TransformNode): void => {
    if (node.kind === "path" && node.path[0] !== undefined) named.add(node.path[0]);
    if (node.kind === "object") for (const [, child] of node.entries) visit(child);
  };
  if (definition.transform !== undefined) visit(definition.transform);
  const isRead = ({ name }: Relation): boolean =>
    include[name] !== undefined &&
    include[name] !== false &&
    (definition.code.transform !== undefined || named.has(name));
  return definition.relations.filter(isRead);
}

/** Answers, per row, what `include` would have put under the relation's name. One statement per relation and turn for `one`. */
function createRelationLoader({
  relation,
  include,
  definitions,
  models,
}: {
  readonly relation: Relation;
  readonly include: unknown;
  readonly definitions: Definitions;
  readonly models: ModelsClient;
}): (rows: readonly Row[]) => Promise<readonly unknown[]> {
  const target = definitions.get(relation.resource);
  if (target === undefined)
    throw new Error(`The relation ${relation.name} leads to the unknown resource ${relation.resource}.`);
  const delegate = models.delegate(target.model);
  const { where, select, ...rest } = (
    typeof include === "object" && include !== null ? include : {}
  ) as Record<string, unknown>;
  const args = {
    ...rest,
    ...(select === undefined ? {} : { select: { ...select, [relation.foreignField]: true } }),
  };
  const whereOf = (value: unknown): Record<string, unknown> => ({
    AND: [...(where === undefined ? [] : [where]), { [relation.foreignField]: value }],
  });

  if (relation.kind === "many") {
    // Not batched: take and orderBy of the include count per record.
    return (rows) =>
      Promise.all(
        rows.map((row) => delegate.findMany({ ...args, where: whereOf(row[relation.localField]) })),
      );
  }
  return async (rows) => {
    const values = [
      ...new Set(rows.map((row) => row[relation.localField]).filter((value) => value !== null)),
    ];
    if (values.length === 0) return rows.map(() => null);
    const found = await delegate.findMany({ ...args, where: whereOf({ in: values }) });
    const byValue = new Map(found.map((row) => [row[relation.foreignField], row]));
    return rows.map((row) => byValue.get(row[relation.localField]) ?? null);
  };
}
