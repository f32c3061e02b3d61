import { expect } from "chai";
import { loadConfig, type Config } from "../../src/config/load.ts";
import { readConfiguration, type CheckedConfiguration } from "../../src/app/configuration.ts";
import {
  differenceOf,
  partsOf,
  recordConfiguration,
  recordRefusal,
  type Parts,
} from "../../src/app/configuration-audit.ts";
import { fixedSettings, settings } from "../../src/config/settings.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf, type AuditEntry } from "../support/audit.ts";
import { coreOfSuite } from "../support/core-database.ts";

const read = (): Promise<CheckedConfiguration> =>
  readConfiguration({ env: {}, cwd: process.cwd(), program: "all" });

describe("partsOf", () => {
  it("has every setting that a reload can change, under its own key, and none that it cannot", async () => {
    const config: Config = loadConfig({ env: {}, cwd: "/", program: "all" });

    const keys = Object.keys(partsOf({ config, definitions: new Map() }).settings);

    expect([...keys, ...fixedSettings].toSorted()).to.deep.equal(Object.keys(settings).toSorted());
  });

  it("is the same for the same files, and another for another definition or value", async () => {
    const [one, other] = [await read(), await read()];
    const changed = { ...one, config: { ...one.config, log: { level: "trace" } } };
    const [name = "", definition] = [...one.definitions][0] ?? [];
    const remapped = new Map([...one.definitions, [name, { ...definition, table: "elsewhere" }]]) as never;

    expect(partsOf(one)).to.deep.equal(partsOf(other));
    expect(differenceOf(partsOf(one), partsOf(changed)).settings).to.deep.equal(["log.level"]);
    expect(differenceOf(partsOf(one), partsOf({ ...one, definitions: remapped })).resources).to.deep.equal({
      added: [],
      removed: [],
      changed: [name],
    });
  });
});

const parts = (resources: Parts["resources"], given: Parts["settings"] = { "log.level": "1" }): Parts => ({
  resources,
  settings: given,
});

describe("differenceOf", () => {
  it("names what was added, removed and changed", () => {
    const before = parts({ b: "1", gone: "1", same: "1" }, { "http.hosts": "1", "log.level": "1" });
    const after = parts({ b: "2", new: "1", same: "1", also: "1" }, { "http.hosts": "2", "log.level": "1" });

    expect(differenceOf(before, after)).to.deep.equal({
      resources: { added: ["also", "new"], removed: ["gone"], changed: ["b"] },
      settings: ["http.hosts"],
    });
  });

  it("has a setting that another version knows, and none at first", () => {
    const before = parts({}, { "log.level": "1" });

    expect(differenceOf(before, parts({}, { "log.level": "1", "log.new": "1" })).settings).to.deep.equal([
      "log.new",
    ]);
    expect(differenceOf(parts({}, {}), before).settings).to.deep.equal([]);
  });
});

describe("recordConfiguration and recordRefusal", () => {
  const core = coreOfSuite();
  let checked: CheckedConfiguration;
  let hash: string;
  let count = 0;

  before(async () => {
    checked = await read();
  });

  beforeEach(() => {
    hash = `hash ${++count}`;
  });

  const entriesOf = (act: () => Promise<unknown>): Promise<readonly AuditEntry[]> => auditOf(core.sql, act);
  const load = (given = hash, action: "loaded" | "reloaded" = "loaded"): Promise<void> =>
    recordConfiguration({
      database: core.database,
      checked: { ...checked, hash: given },
      action: `configuration.${action}`,
      actor,
    });
  const refuse = (faults: readonly string[], given = hash): Promise<void> =>
    recordRefusal({ database: core.database, hash: given, faults, actor });

  it("leave one row for all processes that load the same configuration at once", async () => {
    const entries = await entriesOf(() => Promise.all(Array.from({ length: 20 }, () => load())));

    expect(entries).to.have.length(1);
    expect(entries[0]).to.include({
      action: "configuration.loaded",
      subject_kind: "configuration",
      subject_id: hash,
      actor_name: "ada",
    });
  });

  it("compare with the configuration that was in use last, also across a refusal", async () => {
    await load();

    const entries = await entriesOf(async () => {
      await refuse(["a: no"]);
      await load();
      await load(`${hash}, changed`, "reloaded");
      await load();
    });

    expect(entries.map(({ action, subject_id: id, details }) => [action, id, details.before])).to.deep.equal([
      ["configuration.refused", hash, undefined],
      ["configuration.reloaded", `${hash}, changed`, hash],
      ["configuration.loaded", hash, `${hash}, changed`],
    ]);
    expect(entries[1]?.details.resources).to.deep.equal({ added: [], removed: [], changed: [] });
  });

  it("leave one row for the same faults, with only their number", async () => {
    const entries = await entriesOf(async () => {
      await load();
      await Promise.all(Array.from({ length: 5 }, () => refuse(["secret: no", "b: no"])));
      await refuse(["c: no"]);
      await load(`${hash}, changed`);
      await refuse(["c: no"], `${hash}, changed`);
    });

    expect(entries.map(({ action, details }) => [action.split(".")[1], details.faults])).to.deep.equal([
      ["loaded", undefined],
      ["refused", 2],
      ["refused", 1],
      ["loaded", undefined],
      ["refused", 1],
    ]);
    expect(JSON.stringify(entries)).not.to.include("secret");
  });
});
