/**
 * A task as the API and the webhooks show it: `state` is worked out from two fields, which are not shown themselves.
 *
 * @param {Readonly<Record<string, any>>} task The record, dates as `Date`.
 */
export function transform(task) {
  return {
    id: task.id,
    title: task.title,
    tags: task.tags,
    state: task.is_done ? "done" : task.due_at === null ? "open" : "scheduled",
    due_at: task.due_at,
    created_at: task.created_at,
  };
}
