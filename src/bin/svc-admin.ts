#!/usr/bin/env node
import { runAdmin } from "../cli/program.ts";
import { createTerminal } from "../kit/cli-output.ts";

// The reader of a pipe may close it early: `svc-admin users list | head -1`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

const { argv, env, stdin, stdout, stderr } = process;
const terminal = createTerminal({ stdin, stdout, stderr });
process.exit(await runAdmin({ args: argv.slice(2), env, cwd: process.cwd(), terminal }));
