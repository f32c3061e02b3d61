import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { canInstall, findExecutable, install } from "../support/apt.ts";

/** A request as a receiver has it; the body in base64. */
export interface Case {
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface Language {
  /** The program that runs the language. */
  readonly command: string;
  readonly candidates: readonly string[];
  /** The Debian package of the program; undefined for this process's own. */
  readonly debian?: string;
  readonly args: readonly string[];
  /** Reads cases from stdin, and prints `[true, false, …]`. Is in the folder of the tested file. */
  readonly driver: Readonly<Record<string, string>>;
}

/** The folder of the files that docs/webhooks.md and the console show. */
export const folder = fileURLToPath(new URL("../../src/console/verification/", import.meta.url));

const go = `package main

import ("encoding/json"; "os"; "time"; "try/webhook")

type header map[string]string

func (h header) Get(name string) string { return h[name] }

func main() {
	var cases []struct { Secret string; Headers header; Body []byte }
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil { panic(err) }
	verdicts := []bool{}
	for _, c := range cases {
		verdicts = append(verdicts, webhook.IsGenuine(c.Secret, c.Headers, c.Body, 5*time.Minute))
	}
	json.NewEncoder(os.Stdout).Encode(verdicts)
}
`;

/** By the ending of the tested file. */
export const languages: Readonly<Record<string, Language>> = {
  js: {
    command: "node",
    candidates: [process.execPath],
    args: ["try.mjs"],
    driver: {
      "package.json": '{"type":"module"}',
      "try.mjs": `import { isGenuine } from "./verify.js";
import { json } from "node:stream/consumers";
const cases = await json(process.stdin);
console.log(JSON.stringify(cases.map((c) => isGenuine(c.secret, c.headers, Buffer.from(c.body, "base64")))));
`,
    },
  },
  py: {
    command: "python3",
    candidates: ["/usr/bin/python3"],
    debian: "python3",
    args: ["-B", "try.py"],
    driver: {
      "try.py": `import base64, json, sys
from verify import is_genuine
cases = json.load(sys.stdin)
print(json.dumps([is_genuine(c["secret"], c["headers"], base64.b64decode(c["body"])) for c in cases]))
`,
    },
  },
  go: {
    command: "go",
    candidates: ["/usr/local/go/bin/go"],
    debian: "golang-go",
    args: ["run", "try.go"],
    driver: { "go.mod": "module try\n\ngo 1.19\n", "try.go": go },
  },
  php: {
    command: "php",
    candidates: ["/usr/bin/php"],
    debian: "php-cli",
    args: ["try.php"],
    driver: {
      "try.php": `<?php
require 'verify.php';
$try = fn($c) => is_genuine($c['secret'], $c['headers'], base64_decode($c['body']));
echo json_encode(array_map($try, json_decode(stream_get_contents(STDIN), true)));
`,
    },
  },
  rb: {
    command: "ruby",
    candidates: ["/usr/bin/ruby"],
    debian: "ruby",
    args: ["try.rb"],
    driver: {
      "try.rb": `require "json"
require_relative "verify"
cases = JSON.parse($stdin.read)
puts JSON.generate(cases.map { |c| genuine?(c["secret"], c["headers"], c["body"].unpack1("m")) })
`,
    },
  },
};

/** Installs the missing programs of the languages, all at once (test/support/apt.ts). */
export async function ensureLanguages(): Promise<void> {
  const missing = Object.values(languages).filter(
    ({ command, candidates }) => findExecutable(command, candidates) === undefined,
  );
  if (missing.length > 0 && canInstall()) await install(missing.flatMap(({ debian = [] }) => debian));
}

/** Returns the verdict of a language's file on each case. */
export async function verdicts(ending: string, cases: readonly Case[]): Promise<readonly boolean[]> {
  const language = languages[ending] as Language;
  const command = findExecutable(language.command, language.candidates);
  if (command === undefined)
    throw new Error(`The tests need ${language.command} (Debian: ${language.debian}).`);
  const place = await mkdtemp(join(tmpdir(), "svc-verify-"));
  try {
    const own = ending === "go" ? join(place, "webhook") : place;
    await mkdir(own, { recursive: true });
    await cp(join(folder, `verify.${ending}`), join(own, `verify.${ending}`));
    for (const [name, content] of Object.entries(language.driver))
      await writeFile(join(place, name), content);
    return JSON.parse(await run(command, language.args, place, JSON.stringify(cases))) as boolean[];
  } finally {
    await rm(place, { recursive: true });
  }
}

async function run(command: string, args: readonly string[], cwd: string, input: string): Promise<string> {
  const child = spawn(command, args, {
    cwd,
    // Go downloads nothing, and needs no C compiler.
    env: { ...process.env, GOPROXY: "off", GOTOOLCHAIN: "local", GOFLAGS: "", CGO_ENABLED: "0" },
    stdio: ["pipe", "pipe", "pipe"],
  });
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  // A program that fails may not have read all input: its status shows that.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [output, errors, status] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  if (status !== 0) throw new Error(`${command} ended with status ${status}: ${errors}${output}`);
  return output;
}
