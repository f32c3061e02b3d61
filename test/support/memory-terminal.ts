import type { Terminal } from "../../src/kit/cli-output.ts";

/** A terminal whose output can be read. */
export interface MemoryTerminal extends Terminal {
  /** Returns the output since the last call. */
  read(): { readonly stdout: string; readonly stderr: string };
  /** The questions that were asked. */
  readonly asked: readonly string[];
}

/** @param answers A person's answers, question by question. Undefined: no person is present. */
export function createMemoryTerminal(answers?: readonly string[]): MemoryTerminal {
  let stdout = "";
  let stderr = "";
  const asked: string[] = [];
  return {
    asked,
    stdout: (text) => void (stdout += text),
    stderr: (text) => void (stderr += text),
    ask:
      answers === undefined
        ? undefined
        : async (question) => {
            asked.push(question);
            const answer = answers[asked.length - 1];
            if (answer === undefined) throw new Error(`No answer was prepared for "${question}"`);
            return answer;
          },
    read() {
      const written = { stdout, stderr };
      stdout = "";
      stderr = "";
      return written;
    },
  };
}
