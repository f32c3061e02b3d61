import { request } from "../test/support/service.ts";

type Json = Readonly<Record<string, unknown>>;

/** Calls an API of the service. Throws unless the answer is a success. */
export type CallApi = (method: string, path: string, body?: unknown) => Promise<Json>;

export function callerOf({ port, token }: { readonly port: number; readonly token: string }): CallApi {
  return async (method, path, body) => {
    const url = `http://127.0.0.1:${port}${path}`;
    const answer = await request({ url, method, token, body });
    if (answer.status >= 200 && answer.status < 300) return answer.body ?? {};
    throw new Error(`${method} ${path} answered ${answer.status} ${JSON.stringify(answer.body)}`);
  };
}

/** Subscribes to the creates of notes. Returns the id of the webhook. */
export async function subscribe(callApi: CallApi, receiverPort: number): Promise<number> {
  const url = `http://127.0.0.1:${receiverPort}/`;
  return Number(
    (await callApi("POST", "/svc-api/webhooks", { url, resource: "notes", events: ["on_create"] }))["id"],
  );
}
