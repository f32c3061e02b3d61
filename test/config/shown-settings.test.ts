import { expect } from "chai";
import { loadConfig } from "../../src/config/load.ts";
import { settings } from "../../src/config/settings.ts";
import { shownSettings } from "../../src/config/shown-settings.ts";

const secrets = {
  DATABASE_URL: "postgres://svc:hunter1@db/svc",
  AMQP_URL: "amqp://svc:hunter2@mq",
  SVC_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
  SVC_PREVIOUS_SECRET_KEYS: Buffer.alloc(32, 8).toString("base64"),
};

describe("shownSettings", () => {
  const shown = shownSettings(loadConfig({ env: { ...secrets, SVC_PORT: "81" }, cwd: "/", program: "all" }));
  const of = (key: string): unknown => shown.find((one) => one.key === key);

  it("has every setting", () => {
    expect(shown.map(({ key }) => key)).to.deep.equal(Object.keys(settings));
  });

  it("only shows whether a secret is set", () => {
    const text = JSON.stringify(shown);

    for (const secret of ["hunter", ...Object.values(secrets), "Bwc", "CAg", '"data":[7'])
      expect(text).not.to.include(secret);
    for (const key of ["database.url", "broker.url", "secretKey", "previousSecretKeys"])
      expect(of(key), key).to.deep.include({ value: null, isSecret: true, isSet: true });
  });

  it("shows values in the form of the file", () => {
    expect(of("http.port")).to.deep.equal({
      key: "http.port",
      variable: "SVC_PORT",
      value: 81,
      default: 8080,
      isSecret: false,
      isSet: true,
      isFixed: true,
    });
    expect(of("webhooks.timeout")).to.deep.include({ value: 30, default: 30, isFixed: false });
    expect(of("webhooks.backoff")).to.deep.include({
      value: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400],
    });
    expect(of("http.authFailureLimit")).to.deep.include({ value: "600/60" });
    expect(of("http.rateLimit")).to.deep.include({ value: null, isSet: false });
    expect(of("http.trustedProxies")).to.deep.include({ value: null, isSet: false });
  });
});
