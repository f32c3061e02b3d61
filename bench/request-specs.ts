import type { RequestSpec } from "./load.ts";

export const collections = {
  notes: "/svc-api/resources/notes",
  orders: "/svc-api/resources/orders",
  tasks: "/svc-api/resources/tasks",
  openTasks: "/svc-api/resources/open_tasks",
} as const;

const note = { title: "A note", body: "Lorem ipsum dolor. ".repeat(10) };
const ids = [1, 10_000] as const;

export const noteBody = JSON.stringify(note);
/** `{unique}` is a different text in each request. */
export const orderBody = JSON.stringify({ reference: "B-{unique}", amount: 12.5, customer_id: 77 });
const taskBody = JSON.stringify({ title: "A task", project_id: 77 });
export const batchSize = 100;
export const batchBody = JSON.stringify({
  operations: Array.from({ length: batchSize }, () => ({ method: "create", data: note })),
});
/** All notes but the first 2,000, newest first; a page by cursor follows. */
export const filteredPath = `${collections.notes}?filter[id][gte]=2000&filter[title][contains]=note&sort=-id&per_page=15&cursor=`;

const get = (path: string): RequestSpec => ({ method: "GET", path, status: 200 });
const showOf = (collection: string): RequestSpec => ({ ...get(`${collection}/{id}`), ids });
const post = (path: string, body: string): RequestSpec => ({ method: "POST", path, body, status: 201 });

export const listRequest = get(collections.notes);
/** Concurrent requests mostly differ, unlike those for one page. */
export const pagesRequest: RequestSpec = { ...get(`${collections.notes}?page={id}`), ids: [1, 20] };
export const showRequest = showOf(collections.notes);
export const createRequest = post(collections.notes, noteBody);
export const batchRequest: RequestSpec = {
  ...post(`${collections.notes}/batch`, batchBody),
  status: 200,
};
export const orderRequests = {
  list: get(collections.orders),
  show: showOf(collections.orders),
  create: post(collections.orders, orderBody),
};
/** Requests of the resource with a rule of access, or of the one without. */
export const taskRequests = (
  collection: string,
): Readonly<Record<"list" | "show" | "create", RequestSpec>> => ({
  list: get(collection),
  show: showOf(collection),
  create: post(collection, taskBody),
});
