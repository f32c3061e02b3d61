import type { Definition, Definitions } from "../../src/mapping/definition.ts";
import { exampleOf as exampleIn } from "../../src/openapi/examples.ts";
import type { JsonSchema } from "../../src/openapi/json-schema.ts";
import { createJudge, resolve, type DocumentedOperation, type ServedDocument } from "../openapi/answers.ts";
import type { Answer, TestUser } from "./service.ts";

type Row = Readonly<Record<string, unknown>>;

interface Walker {
  readonly user: TestUser;
  readonly document: ServedDocument;
  /** Returns the faults of an answer. */
  readonly judged: (request: string, operation: DocumentedOperation, answer: Answer) => boolean;
  readonly say: (fault: string) => void;
}

/**
 * Calls everything that the document of a service describes for its resources: lists with each
 * parameter, each record by its id, and the writes of the examples.
 *
 * @param bodies Values that the examples cannot contain, such as references to existing records.
 * @returns Answers that a good resource does not give, and answers that the document lacks.
 */
export async function walkDocument(
  user: TestUser,
  definitions: Definitions,
  bodies: Readonly<Record<string, Row>> = {},
): Promise<{ readonly faults: readonly string[]; readonly created: readonly string[] }> {
  const document = (await user.request("GET", "/openapi.json")).body as ServedDocument;
  const judge = createJudge(document);
  const faults: string[] = [];
  const created: string[] = [];
  const say = (fault: string): void => void faults.push(fault.slice(0, 400));
  const judged: Walker["judged"] = (request, operation, answer) => {
    const wrong = answer.status >= 300 ? [JSON.stringify(answer.body)] : judge.faultsOf(operation, answer);
    for (const fault of wrong) say(`${request}: ${answer.status} ${fault}`);
    return wrong.length === 0;
  };
  const walker: Walker = { user, document, judged, say };
  for (const definition of definitions.values()) {
    const records = await walkList(definition, walker);
    for (const record of records) await walkRecord(definition, record, walker);
    if (await walkWrites(definition, bodies[definition.name] ?? {}, walker)) created.push(definition.name);
  }
  return { faults, created };
}

async function walkList(definition: Definition, walker: Walker): Promise<readonly Row[]> {
  const path = `/resources/${definition.name}`;
  const list = walker.document.paths[path]?.["get"] as DocumentedOperation;
  const ask = async (query: string): Promise<Answer> => {
    const answer = await walker.user.request("GET", `${path}?${query}`);
    walker.judged(`GET ${path}?${query}`, list, answer);
    return answer;
  };
  const whole = await ask("per_page=100");
  const parameters = (list.parameters ?? []).map((one) => resolve(walker.document, one));
  for (const { name: given, schema } of parameters) {
    const name = String(given);
    const { items } = (schema ?? {}) as { readonly items?: { readonly enum?: readonly string[] } };
    for (const value of name === "sort" || name === "include" ? (items?.enum ?? []) : []) {
      const { body } = await ask(`${name}=${value}&cursor=&per_page=1`);
      if (typeof body.next_cursor === "string")
        await ask(`${name}=${value}&per_page=1&cursor=${encodeURIComponent(body.next_cursor)}`);
    }
    const { properties = {} } = (name.startsWith("filter[") ? schema : {}) as {
      readonly properties?: Readonly<Record<string, JsonSchema>>;
    };
    for (const [operator, operand] of Object.entries(properties))
      await ask(`${name}[${operator}]=${encodeURIComponent(String(exampleIn(operand, "text")))}`);
  }
  return (whole.body.data ?? []) as readonly Row[];
}

async function walkRecord(definition: Definition, record: Row, walker: Walker): Promise<void> {
  const path = `/resources/${definition.name}/${addressOf(definition, record)}`;
  const operations = walker.document.paths[`/resources/${definition.name}/{id}`] ?? {};
  const shown = await walker.user.request("GET", path);
  walker.judged(`GET ${path}`, operations["get"] as DocumentedOperation, shown);
  if (JSON.stringify(shown.body) !== JSON.stringify(record)) walker.say(`${path} differs from the list`);
}

/** Returns the address that a client builds for a shown record. */
function addressOf({ keys }: Definition, record: Row): string {
  return keys.map(({ name }) => encodeURIComponent(String(record[name]))).join(",");
}

async function walkWrites(definition: Definition, body: Row, walker: Walker): Promise<boolean> {
  const path = `/resources/${definition.name}`;
  const create = walker.document.paths[path]?.["post"];
  if (create === undefined) return false;
  const made = await walker.user.request("POST", path, { ...(exampleOf(create) as Row), ...body });
  if (!walker.judged(`POST ${path} ${JSON.stringify(exampleOf(create))}`, create, made)) return false;
  const own = `${path}/${addressOf(definition, made.body as Row)}`;
  if (made.headers.get("location")?.endsWith(own) !== true)
    walker.say(`POST ${path}: Location ${made.headers.get("location")} is not ${own}`);
  const { put, delete: remove } = walker.document.paths[`${path}/{id}`] ?? {};
  if (put !== undefined) {
    const changed = await walker.user.request("PUT", own, { ...(exampleOf(put) as Row), ...body });
    walker.judged(`PUT ${own} ${JSON.stringify(exampleOf(put))}`, put, changed);
  }
  if (remove !== undefined) walker.judged(`DELETE ${own}`, remove, await walker.user.request("DELETE", own));
  return true;
}

function exampleOf({ requestBody }: DocumentedOperation): unknown {
  return requestBody?.content["application/json"]?.example;
}
