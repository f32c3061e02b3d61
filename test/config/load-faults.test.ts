import { expect } from "chai";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/config/load.ts";
import type { ProgramName } from "../../src/config/programs.ts";
import { OperatorError } from "../../src/kit/errors.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");
const external = { DATABASE_URL: "postgres://svc:hunter2@db/svc", SVC_SECRET_KEY: secretKey };
const key = "expected 32 random bytes in base64, as `openssl rand -base64 32` gives them";

const at = (place: string, text: string): string => `config/service.yaml:${place}: ${text}`;

describe("loadConfig, of bad settings", () => {
  let cwd: string;

  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), "svc-config-"));
    mkdirSync(join(cwd, "config"));
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  function faultsOf(yaml?: string, env: NodeJS.ProcessEnv = {}, program: ProgramName = "all"): string[] {
    try {
      if (yaml !== undefined) writeFileSync(join(cwd, "config/service.yaml"), yaml);
      loadConfig({ env, cwd, program });
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error;
      const [head, ...lines] = error.message.split("\n");
      expect(head).to.match(new RegExp(`^${lines.length} faults? in the settings:$`));
      return lines.map((line) => line.trim().replaceAll(cwd, "<here>"));
    }
    return [];
  }

  it("names a file outside of the working folder by its whole path", () => {
    mkdirSync(join(cwd, "elsewhere"));
    writeFileSync(join(cwd, "config/service.yaml"), "prot: 1\n");
    const env = { SVC_CONFIG_DIR: join(cwd, "config") };

    expect(() => loadConfig({ env, cwd: join(cwd, "elsewhere"), program: "all" })).to.throw(
      `  ${join(cwd, "config/service.yaml")}:1:1: prot: unknown key`,
    );
  });

  const badFiles: readonly (readonly [fact: string, yaml: string, fault: string])[] = [
    ["an unknown key", "htpp:\n  port: 1\n", at("1:1", 'htpp: unknown key; did you mean "http"?')],
    [
      "an unknown key of a group",
      "http:\n  prot: 1\n",
      at("2:3", 'http.prot: unknown key; did you mean "port"?'),
    ],
    [
      "an unknown key like no other",
      "broker:\n  zzzzz: 1\n",
      at("2:3", "broker.zzzzz: unknown key; expected one of url"),
    ],
    ["a value in place of a group", "http: 8080\n", at("1:7", "http: expected keys and values")],
    ["a list in place of the settings", "- http\n", at("1:1", "expected keys and values")],
    [
      "a console over the API",
      "console: { path: /svc-api }\n",
      at("1:18", "console.path: expected a path that holds no path of the API, and is in none"),
    ],
    [
      "a console within the API",
      "console: { path: /svc-api/console }\n",
      at("1:18", "console.path: expected a path that holds no path of the API, and is in none"),
    ],
    [
      "a console over a list, where the API has no prefix",
      "http: { routePrefix: / }\nconsole: { path: /events }\n",
      at("2:18", "console.path: expected a path that holds no path of the API, and is in none"),
    ],
    [
      "a console everywhere",
      "console: { path: / }\n",
      at("1:18", "console.path: expected a path such as /console"),
    ],
    [
      "a port out of range",
      "http:\n  port: 70000\n",
      at("2:9", "http.port: expected a whole number from 0 to 65535"),
    ],
    [
      "a port that is no number",
      "http: { port: 80a }\n",
      at("1:15", "http.port: expected a whole number from 0 to 65535"),
    ],
    [
      "a fraction for a count",
      "webhooks: { concurrency: 1.5 }\n",
      at("1:26", "webhooks.concurrency: expected a whole number from 1 to 10000"),
    ],
    [
      "no attempts",
      "webhooks: { maxAttempts: 0 }\n",
      at("1:26", "webhooks.maxAttempts: expected a whole number from 1 to 1000"),
    ],
    [
      "no time",
      "webhooks: { timeout: 0 }\n",
      at("1:22", "webhooks.timeout: expected seconds, from 0.001 to 2147483"),
    ],
    [
      "jitter over 1",
      "webhooks: { jitter: 1.1 }\n",
      at("1:21", "webhooks.jitter: expected a number from 0 to 1"),
    ],
    [
      "an empty backoff",
      "webhooks: { backoff: [] }\n",
      at("1:22", "webhooks.backoff: expected a list of at least one of (seconds, from 0 to 31536000)"),
    ],
    [
      "a negative wait",
      "webhooks: { backoff: [5, -1] }\n",
      at("1:26", "webhooks.backoff[1]: expected seconds, from 0 to 31536000"),
    ],
    [
      "a network that is none",
      "webhooks: { allowedNetworks: ['${NONE:-}', 10.0.0.0] }\n",
      at("1:44", "webhooks.allowedNetworks[1]: expected a network such as 10.0.0.0/8 or fd00::/8"),
    ],
    [
      "a text in place of a network",
      "webhooks: { allowedNetworks: everything }\n",
      at("1:30", "webhooks.allowedNetworks: expected a list of (a network such as 10.0.0.0/8 or fd00::/8)"),
    ],
    [
      "a prefix without a slash",
      "http: { routePrefix: api }\n",
      at("1:22", "http.routePrefix: expected a path such as /svc-api, or / for none"),
    ],
    [
      "a prefix with a parameter",
      "http: { routePrefix: '/:a' }\n",
      at("1:22", "http.routePrefix: expected a path such as /svc-api, or / for none"),
    ],
    [
      "a public URL with a path",
      "http: { publicUrl: 'https://a/b' }\n",
      at("1:20", "http.publicUrl: expected an origin such as https://api.example.com, without a path"),
    ],
    [
      "a size without a number",
      "http: { bodyLimit: big }\n",
      at(
        "1:20",
        "http.bodyLimit: expected a size such as 1mb, 512kb or 1048576, at least 1 byte and at most 1gb",
      ),
    ],
    ...["600", "600/60s", "0/60", "10/0", "10/86401", "-1/5"].map(
      (rate) =>
        [
          `${rate} for a rate`,
          `http: { rateLimit: ${rate} }\n`,
          at("1:20", "http.rateLimit: expected requests per seconds such as 600/60, at most a day"),
        ] as const,
    ),
    [
      "a host with a port that there is not",
      "http: { hosts: [a.example.com, 'b:99999'] }\n",
      at("1:32", "http.hosts[1]: expected a host such as api.example.com or api.example.com:8443"),
    ],
    [
      "a page's URL for its origin",
      "http: { corsOrigins: ['*', 'https://a/b'] }\n",
      at(
        "1:28",
        "http.corsOrigins[1]: expected * or an origin such as https://app.example.com, without a path",
      ),
    ],
    [
      "an unknown level",
      "log: { level: loud }\n",
      at("1:15", "log.level: expected one of trace, debug, info, warn, error, fatal, silent"),
    ],
    [
      "a word for a switch",
      "database: { autoMigrate: yes }\n",
      at("1:26", "database.autoMigrate: expected true or false"),
    ],
    [
      "an unset variable",
      "http:\n  host: ${NONE}\n",
      at("2:9", "http.host: the variable NONE is not set; expected it, or ${NONE:-default}"),
    ],
    [
      "a variable with a bad name",
      "http:\n  host: ${a b}\n",
      at("2:9", "http.host: expected ${NAME} or ${NAME:-default}; $${ stands for ${ itself"),
    ],
    [
      "a variable without an end",
      "http:\n  host: ${a\n",
      at("2:9", "http.host: expected ${NAME} or ${NAME:-default}; $${ stands for ${ itself"),
    ],
    [
      "a key given twice",
      "http: {}\nhttp: {}\n",
      at("2:1", "the key is there already; expected each key once"),
    ],
    [
      "text that is no YAML",
      "http: { port: 1\n",
      at("2:1", "expected a }, for a { before this place is still open"),
    ],
    [
      "the two ports alike",
      "metrics: { port: 8080 }\n",
      at(
        "1:18",
        "metrics.port: expected two different ports for http.port (SVC_PORT), metrics.port (SVC_METRICS_PORT)",
      ),
    ],
    [
      "a memory budget in which a body has no room",
      "http: { bodyLimit: 2mb, memoryBudget: 40mb }\n",
      at(
        "1:39",
        "http.memoryBudget: expected at least 50331648 bytes, 24 times http.bodyLimit, so that two of the largest bodies have room",
      ),
    ],
    [
      "a database without a key",
      "database:\n  url: postgres://db/svc\n",
      at(
        "2:8",
        `database.url: needs secretKey (SVC_SECRET_KEY): ${key}; only the embedded database runs without one`,
      ),
    ],
    [
      "a variable in a list without quotes",
      "webhooks:\n  allowedNetworks: [10.0.0.0/8, ${NET}, ${NET:-x}]\n  timeout: 5\n",
      at("2:34", 'inside [ ] and { } a variable goes into quotes, as in ["${NAME}"]'),
    ],
    [
      "a variable in braces without quotes",
      "http: { host: ${HOST:-localhost}, port: 80 }\n",
      at("1:16", 'inside [ ] and { } a variable goes into quotes, as in ["${NAME}"]'),
    ],
  ];
  for (const [fact, yaml, fault] of badFiles) {
    it(`refuses ${fact}`, () => expect(faultsOf(yaml)).to.deep.equal([fault]));
  }

  const badSurroundings: readonly (readonly [string, NodeJS.ProcessEnv, ProgramName, string])[] = [
    [
      "a folder that is not there",
      { SVC_CONFIG_DIR: "nowhere" },
      "all",
      "SVC_CONFIG_DIR: expected the path of a folder; <here>/nowhere is none",
    ],
    [
      "two ports alike",
      { SVC_PORT: "9090" },
      "all",
      "http.port (SVC_PORT), metrics.port (SVC_METRICS_PORT): expected two different ports",
    ],
    ["a port", { SVC_PORT: "http" }, "all", "SVC_PORT: expected a whole number from 0 to 65535"],
    ["a key of another length", { SVC_SECRET_KEY: "c2hvcnQ=" }, "all", `SVC_SECRET_KEY: ${key}`],
    [
      "an external database without a key",
      { DATABASE_URL: external.DATABASE_URL },
      "all",
      `secretKey (SVC_SECRET_KEY): ${key}; only the embedded database runs without one`,
    ],
    ...(["api", "dispatcher"] as const).map(
      (program) =>
        [
          `${program} without a broker`,
          external,
          program,
          'broker.url (AMQP_URL): expected the URL of a RabbitMQ server; only "svc all" runs without one',
        ] as const,
    ),
    ...(["api", "dispatcher"] as const).map(
      (program) =>
        [
          `${program} without a database`,
          { AMQP_URL: "amqp://mq" },
          program,
          'database.url (DATABASE_URL): expected a URL that begins with postgresql:// or postgres:// (special characters in a password are percent-encoded); only "svc all" runs on the embedded database',
        ] as const,
    ),
    [
      "a secret given in both ways",
      { SVC_SECRET_KEY: secretKey, SVC_SECRET_KEY_FILE: "/dev/null" },
      "all",
      "SVC_SECRET_KEY, SVC_SECRET_KEY_FILE: expected one of the two",
    ],
    [
      "a secret's file that is missing",
      { AMQP_URL_FILE: "/nonexistent/amqp" },
      "all",
      "AMQP_URL_FILE: expected the path of a file that can be read (ENOENT)",
    ],
    [
      "a database that is no PostgreSQL",
      { ...external, DATABASE_URL: "mysql://db" },
      "all",
      "DATABASE_URL: expected a URL that begins with postgresql:// or postgres:// (special characters in a password are percent-encoded)",
    ],
    ...(
      [
        [
          "several hosts",
          "db1:5432,db2:5432/svc",
          "it names several hosts, and one address has to lead to the server",
        ],
        [
          "several hosts of one port",
          "svc@db1,db2/svc",
          "it names several hosts, and one address has to lead to the server",
        ],
        ["a password with #", "svc:12#hunter2@db/svc", "a # in it is written as %23"],
        ["a password with /", "svc:hunter/2@db/svc", "a / in a password is written as %2F"],
        ["a password with ?", "svc:hunter?2@db/svc", "a ? in a password is written as %3F"],
        [
          "an sslmode that pg does not know",
          "db/svc?sslmode=required",
          "its sslmode is none of disable, allow, prefer, require, verify-ca, verify-full, no-verify",
        ],
        ["a mistyped sslmode", "db/svc?sslmod=x", 'it has no parameter sslmod; did you mean "sslmode"?'],
      ] as const
    ).map(
      ([fact, rest, problem]) =>
        [
          `a URL of a database with ${fact}`,
          { ...external, DATABASE_URL: `postgresql://${rest}` },
          "all",
          `DATABASE_URL: expected a URL that begins with postgresql:// or postgres:// (special characters in a password are percent-encoded); ${problem}`,
        ] as const,
    ),
  ];
  for (const [fact, env, program, fault] of badSurroundings) {
    it(`refuses ${fact}`, () => expect(faultsOf(undefined, env, program)).to.deep.equal([fault]));
  }

  it("reports the faults of file and environment together, in the order of the file", () => {
    const faults = faultsOf(
      "log: { level: 1 }\nhttp: { port: x, host: '' }\n",
      { SVC_METRICS_PORT: "-1" },
      "api",
    );

    expect(faults.map((fault) => fault.split(" expected")[0])).to.deep.equal([
      "config/service.yaml:1:15: log.level:",
      "config/service.yaml:2:15: http.port:",
      "config/service.yaml:2:24: http.host:",
      "SVC_METRICS_PORT:",
      "broker.url (AMQP_URL):",
      "database.url (DATABASE_URL):",
    ]);
  });

  it("never shows a secret in any fault", () => {
    const attempts: readonly (readonly [string | undefined, NodeJS.ProcessEnv])[] = [
      [undefined, { DATABASE_URL: "hunter2", AMQP_URL: "hunter2", SVC_SECRET_KEY: "hunter2" }],
      ["secretKey: hunter2\ndatabase: { url: hunter2 }\nbroker: { url: [hunter2] }\n", {}],
      ["database: { url: 'postgres://a:hunter2@[b' }\n", {}],
      ["http: { host: '${PASS}', port: '${PASS}' }\n", { PASS: "hunter2" }],
      ["secretKey: hunter2\nhttp: { port: }\n port: 2", {}],
      ["secretKey: @hunter2", {}],
      ["secretKey: 'hunter2", {}],
      ['secretKey: "\\hunter2"', {}],
      ["secretKey: >hunter2\n a", {}],
      ["secretKey: !hunter2 a", {}],
      ["secretKey: *hunter2", {}],
      ["secretKey: %hunter2\n\thunter2: a: hunter2", {}],
      ["%hunter2\n---\na: b", {}],
    ];
    for (const [yaml, env] of attempts) {
      const message = faultsOf(yaml ?? "", env).join("\n");
      expect(message, yaml).to.match(/./);
      expect(message, yaml).not.to.contain("hunter2");
    }
  });

  it("refuses a file that would block the start", () => {
    const nested = `http: ${"[".repeat(100_000)}`;
    const layers = ["a: &a [x, x, x, x, x, x, x, x, x]"];
    for (let i = 1; i < 9; i++) {
      const before = String.fromCharCode(96 + i);
      const name = String.fromCharCode(97 + i);
      layers.push(`${name}: &${name} [${`*${before}, `.repeat(9)}]`);
    }

    expect(faultsOf(nested)).to.deep.equal([at("1:1", "expected at most 32 levels of nesting")]);
    expect(faultsOf(layers.join("\n"))).to.deep.equal([
      at("3:8", "expected an alias of a value that has no alias in it"),
    ]);
    expect(faultsOf(`# ${"x".repeat(300_000)}`)).to.deep.equal([at("1:1", "expected at most 256 KiB")]);
  });
});
