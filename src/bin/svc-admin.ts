#!/usr/bin/env node
import { runAdmin } from "../cli/program.ts";
import { createTerminal } from "../kit/cli-output.ts";

// Whoever reads the answer may have seen enough of it: `svc-admin users list | head -1`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));

const { argv, env, stdin, stdout, stderr } = process;
const terminal = createTerminal({ stdin, stdout, stderr });
process.exit(await runAdmin({ args: argv.slice(2), env, cwd: process.cwd(), terminal }));
