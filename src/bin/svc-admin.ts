#!/usr/bin/env node
import { runAdmin } from "../cli/program.ts";
import { createTerminal } from "../kit/cli-output.ts";

// The reader of a pipe may close it early: `svc-admin users list | head -1`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
process.stderr.on("error", () => undefined);

const { argv, env, stdin, stdout, stderr } = process;
const terminal = createTerminal(stdin, stdout, stderr);
const status = await runAdmin({ args: argv.slice(2), env, cwd: process.cwd(), terminal });
// A pipe takes 64 KiB at a time, and an exit drops the output that waits for its reader.
for (const stream of [stdout, stderr]) await new Promise((resolve) => stream.write("", resolve));
process.exit(status);
