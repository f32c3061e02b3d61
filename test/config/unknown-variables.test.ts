import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { settings } from "../../src/config/settings.ts";
import { unknownVariables } from "../../src/config/unknown-variables.ts";

describe("unknownVariables", () => {
  let cwd: string;

  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), "svc-variables-"));
    mkdirSync(join(cwd, "config"));
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  const of = (env: NodeJS.ProcessEnv): readonly string[] => unknownVariables({ env, cwd });

  it("names a variable that is nearly correct, with the intended one", () => {
    expect(of({ SVC_PROT: "80", SVC_PREVIOUS_SECRET_KEY: "x" })).to.deep.equal([
      "SVC_PROT is not a variable of svc, and is ignored; did you mean SVC_PORT?",
      "SVC_PREVIOUS_SECRET_KEY is not a variable of svc, and is ignored; did you mean SVC_PREVIOUS_SECRET_KEYS?",
    ]);
  });

  it("accepts names of any characters, which Kubernetes may pass on", () => {
    expect(of({ "SVC_[": "1" })).to.have.length(1);
  });

  it("names an unknown variable, and a file for a variable that is no secret", () => {
    expect(of({ SVC_WEBHOOKS_CONCURRENCY: "3" })).to.deep.equal([
      "SVC_WEBHOOKS_CONCURRENCY is not a variable of svc, and is ignored",
    ]);
    expect(of({ SVC_LOG_LEVEL_FILE: "x" })).to.deep.equal([
      "SVC_LOG_LEVEL_FILE is not a variable of svc, and is ignored; did you mean SVC_LOG_LEVEL?",
    ]);
  });

  it("ignores the variables of the settings, and those of other programs", () => {
    const known = Object.values(settings).flatMap((setting) => ("env" in setting ? [setting.env] : []));
    const env = Object.fromEntries(
      [...known, "SVC_CONFIG_DIR", "SVC_SECRET_KEY_FILE", "PATH"].map((name) => [name, "x"]),
    );

    expect(of(env)).to.deep.equal([]);
  });

  it("ignores a variable that service.yaml uses", () => {
    writeFileSync(join(cwd, "config/service.yaml"), "http: { host: '${SVC_ADDRESS:-::1}' }\n");

    expect(of({ SVC_ADDRESS: "::" })).to.deep.equal([]);
    expect(of({ SVC_ADDR: "::" })).to.have.length(1);
  });

  it("ignores an unreadable service.yaml", () => {
    mkdirSync(join(cwd, "config/service.yaml"));

    expect(of({ SVC_PROT: "80" })).to.have.length(1);
  });

  it("ignores variables that Kubernetes sets for a Service", () => {
    const env = {
      SVC_API_SERVICE_HOST: "10.0.0.7",
      SVC_API_SERVICE_PORT_HTTP: "80",
      SVC_API_PORT: "tcp://10.0.0.7:80",
      SVC_API_PORT_80_TCP_ADDR: "10.0.0.7",
    };

    expect(of(env)).to.deep.equal([]);
  });
});
