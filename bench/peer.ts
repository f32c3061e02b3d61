import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { messageOf } from "../src/kit/errors.ts";

/**
 * Another process of the benchmark, which answers questions. It ends with this process, even when
 * this one is killed.
 */
export interface Peer<Question, Answer> {
  readonly pid: number;
  /**
   * Asks one question at a time: a question waits for the previous answer. Rejects with the peer's
   * message when it fails.
   */
  ask(question: Question): Promise<Answer>;
  end(): void;
}

type Reply<Answer> = { readonly answer: Answer } | { readonly failure: string };

/** Starts `file`, a module of this folder that calls `answerQuestions`. */
export function startPeer<Question extends object, Answer>(file: string): Peer<Question, Answer> {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(path, {
    execArgv: ["--import", "tsx"],
    env: { ...process.env, NODE_ENV: "production" },
    // Ctrl-C signals the process group; the benchmark ends its peers itself.
    detached: true,
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  const askNow = (question: Question): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const onExit = (): void => reject(new Error(`${file} ended before it answered`));
      child.once("exit", onExit);
      child.once("message", (reply: Reply<Answer>) => {
        child.off("exit", onExit);
        if ("answer" in reply) resolve(reply.answer);
        else reject(new Error(`${file}: ${reply.failure}`));
      });
      child.send(question);
    });
  let answered: Promise<unknown> = Promise.resolve();
  return {
    pid: child.pid ?? 0,
    ask(question) {
      const answer = answered.then(() => askNow(question));
      answered = answer.catch(() => undefined);
      return answer;
    },
    end() {
      child.kill("SIGKILL");
    },
  };
}

/** The other side of `startPeer`. */
export function answerQuestions(handle: (question: never) => Promise<unknown>): void {
  process.on("disconnect", () => process.exit(0));
  process.on("message", (question) => {
    handle(question as never).then(
      (answer) => process.send?.({ answer } satisfies Reply<unknown>),
      (error: unknown) => process.send?.({ failure: messageOf(error) } satisfies Reply<unknown>),
    );
  });
}
