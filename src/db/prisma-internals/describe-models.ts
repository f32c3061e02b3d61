import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { GetPrismaClientConfig } from "@prisma/client/runtime/client";
import { OperatorError } from "../../kit/errors.ts";

/**
 * The description of a schema that Prisma's client needs beside the text: the models, and the
 * places of values in queries.
 */
export type ModelsDescription = Pick<GetPrismaClientConfig, "runtimeDataModel" | "parameterizationSchema">;

/** Answer of the child process; a refusal is Prisma's message. */
export type DescribeAnswer = ModelsDescription | { readonly refusal: string };

/** Kept for the next reload, which seldom changes the models. */
let last: { readonly schemaText: string; readonly answer: DescribeAnswer } | undefined;

const timeoutMs = 120_000;
const processFile = fileURLToPath(new URL("describe-models-process.js", import.meta.url));

/**
 * Returns the description that `prisma generate` would write for the schema, without the CLI. Calls
 * the same functions in a separate process. Prisma's parser takes a tenth of a gigabyte, which is
 * freed when the process ends. Requests are still served while mapping files are reloaded.
 *
 * @throws OperatorError with Prisma's own message when the schema is refused.
 */
export async function describeModels(schemaText: string): Promise<ModelsDescription> {
  if (last?.schemaText !== schemaText) last = { schemaText, answer: await ask(schemaText) };
  const { answer } = last;
  if ("refusal" in answer)
    throw new OperatorError(`The models cannot be made from the mapping files:\n${answer.refusal}`);
  return answer;
}

async function ask(schemaText: string): Promise<DescribeAnswer> {
  // Passes none of the service's secrets, and turns off colours in a message that may be logged.
  const child = fork(processFile, {
    env: { NO_COLOR: "1" },
    execArgv: [],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  let answer: DescribeAnswer | undefined;
  child.once("message", (message) => {
    answer = message as DescribeAnswer;
  });
  child.send(schemaText);
  // Messages may arrive after the exit, but never after the disconnect.
  const [[code, signal]] = (await Promise.all([once(child, "exit"), once(child, "disconnect")])) as [
    [number | null, NodeJS.Signals | null],
    unknown[],
  ];
  if (answer === undefined)
    throw new Error(
      `The process that reads the models ended without an answer (${signal ?? `exit code ${code}`})`,
    );
  return answer;
}
