import { expect } from "chai";
import type { Definitions, Field } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";

type Shape = Partial<Field> & Pick<Field, "type">;

interface Cast {
  readonly from: Shape;
  readonly to: Shape;
  readonly value: string;
}

const list = { isList: true };
const short = { type: "Decimal", precision: 7, scale: 2 } as const;

/** Values that PostgreSQL cannot cast, or would make NULL. */
const broken: readonly Cast[] = [
  { from: { type: "Float" }, to: { type: "Int" }, value: "'NaN'" },
  { from: { type: "Float" }, to: { type: "Int" }, value: "2147483647.5" },
  { from: { type: "Decimal" }, to: { type: "Int" }, value: "'NaN'" },
  { from: { type: "Decimal" }, to: { type: "Int" }, value: "-2147483648.5" },
  { from: { type: "Float" }, to: { type: "BigInt" }, value: "'NaN'" },
  { from: { type: "Float" }, to: { type: "BigInt" }, value: "'-Infinity'" },
  { from: { type: "Float" }, to: { type: "BigInt" }, value: "9223372036854775807" },
  { from: { type: "Decimal" }, to: { type: "BigInt" }, value: "9223372036854775807.5" },
  { from: { type: "Float" }, to: short, value: "'Infinity'" },
  { from: { type: "Float" }, to: short, value: "-99999.995" },
  { from: { type: "Float" }, to: { type: "Decimal" }, value: "'-Infinity'" },
  { from: { type: "Float" }, to: { type: "Decimal" }, value: "1e35" },
  { from: { type: "Float", ...list }, to: { type: "Int", ...list }, value: "'{1,NaN}'" },
  { from: { type: "Json" }, to: { type: "String", length: 3 }, value: "'null'" },
  { from: { type: "Boolean" }, to: { type: "String", length: 3 }, value: "true" },
  { from: { type: "DateTime" }, to: { type: "Time" }, value: "'infinity'" },
  { from: { type: "Date" }, to: { type: "DateTime" }, value: "'294277-01-01'" },
];

/** Values that the cast changes. */
const lost: readonly Cast[] = [
  { from: { type: "DateTime" }, to: { type: "Date" }, value: "'2026-01-01 10:00:00+00'" },
  { from: { type: "String", ...list }, to: { type: "String" }, value: "'{a,b}'" },
  { from: { type: "DateTime", ...list }, to: { type: "Date", ...list }, value: "'{2026-01-01 10:00:00+00}'" },
  { from: { type: "DateTime" }, to: { type: "Time" }, value: "'2026-01-01 10:00:00+00'" },
  { from: { type: "BigInt" }, to: { type: "Float" }, value: "-9007199254740993" },
];

/** Values that stay the same. */
const fitting: readonly Cast[] = [
  { from: { type: "DateTime" }, to: { type: "Date" }, value: "'infinity'" },
  { from: { type: "DateTime" }, to: { type: "Date" }, value: "'2026-01-01 00:00:00+00'" },
  { from: { type: "DateTime" }, to: { type: "Time" }, value: "NULL" },
  { from: { type: "Date" }, to: { type: "DateTime" }, value: "'-infinity'" },
  { from: { type: "Date" }, to: { type: "DateTime" }, value: "'294276-12-31'" },
  { from: { type: "BigInt" }, to: { type: "Float" }, value: "9007199254740992" },
  { from: { type: "Json" }, to: { type: "String", length: 4 }, value: "'null'" },
  { from: { type: "String", ...list }, to: { type: "String", length: 3, ...list }, value: "'{}'" },
  { from: { type: "String", ...list }, to: { type: "String", length: 3, ...list }, value: "'{NULL,abc}'" },
];

/** Values that fit but that the engine does not know. It warns of the cast. */
const warned: readonly Cast[] = [
  { from: { type: "Float" }, to: short, value: "'NaN'" },
  { from: { type: "Decimal" }, to: short, value: "'NaN'" },
  { from: { type: "Decimal", ...list }, to: { ...short, ...list }, value: "'{NaN,NULL}'" },
  { from: { type: "Float" }, to: { type: "Int" }, value: "2147483647.4" },
  { from: { type: "Float" }, to: { type: "BigInt" }, value: "9223372036854774784" },
  { from: { type: "Float" }, to: { type: "Decimal" }, value: "9e34" },
];

function shown({ from, to, value }: Cast): string {
  return `${value} of ${from.type} in ${to.type}`;
}

/** One resource with a column for each cast. */
function itemsWith(casts: readonly Cast[], side: "from" | "to"): Definitions {
  const fields = casts.map((cast, index) => {
    const { type, ...rest } = cast[side];
    return field(`at_${index}`, type, { isOptional: true, ...rest });
  });
  return definitionsOf(definition({ name: "items", fields }));
}

/** The casts whose columns are named in the sentences. */
function namedIn(casts: readonly Cast[], sentences: readonly string[]): readonly string[] {
  const isNamed = (index: number): boolean =>
    sentences.some((line) => line.includes(`The column at_${index} of the table items is to`));
  return casts.filter((_, index) => isNamed(index)).map(shown);
}

function noteWith(tag: Field): Definitions {
  return definitionsOf(definition({ name: "notes", fields: [tag] }));
}

function notesWith(isList: boolean): Definitions {
  return noteWith(field("tag", "String", { isList }));
}

/** Columns of types that Prisma lacks. */
function thingsWith(isUnique: boolean): Definitions {
  const mac = field("mac", "String", { native: "macaddr", isUnique });
  const lasts = field("lasts", "Interval", { isOptional: true, isUnique });
  return definitionsOf(definition({ name: "things", fields: [mac, lasts] }));
}

describe("planMigration of columns whose type changes", () => {
  let scene: Scene;

  beforeEach(async () => (scene = await openScene()));
  afterEach(() => scene.close());

  const fill = async (casts: readonly Cast[]): Promise<void> => {
    await scene.migrate(itemsWith(casts, "from"));
    await scene.client.query(`INSERT INTO items VALUES (1, ${casts.map(({ value }) => value).join(", ")})`);
  };
  it("names every value that PostgreSQL cannot cast", async () => {
    await fill(broken);

    const { impossible } = await scene.plan(itemsWith(broken, "to"));

    expect(namedIn(broken, impossible)).to.deep.equal(broken.map(shown));
    expect(impossible).to.have.length(broken.length);
  });

  it("names every value that the cast changes, and changes none without the flag", async () => {
    await fill(lost);
    const wanted = itemsWith(lost, "to");

    const { losses, impossible } = await scene.plan(wanted);

    expect([namedIn(lost, losses), losses.length, impossible]).to.deep.equal([
      lost.map(shown),
      lost.length,
      [],
    ]);
    expect(losses[0]).to.match(/is to hold days, and 1 row has a time of day, which would be lost\.$/);
    expect(await scene.apply(wanted)).to.match(/would lose data/);
    expect(await scene.apply(wanted, true)).to.equal("done");
  });

  it("names no value that stays the same", async () => {
    await fill(fitting);

    const { losses, impossible } = await scene.plan(itemsWith(fitting, "to"));

    expect([losses, impossible]).to.deep.equal([[], []]);
    expect(await scene.apply(itemsWith(fitting, "to"))).to.equal("done");
  });

  it("makes a column that is no longer a list NOT NULL", async () => {
    await scene.apply(notesWith(true));

    const { leftAlone } = await scene.migrate(notesWith(false));

    expect(leftAlone).to.deep.equal([]);
    expect(await scene.shape()).to.include("notes tag text t");
  });

  it("allows what PostgreSQL can cast", async () => {
    await fill(warned);

    const { impossible } = await scene.plan(itemsWith(warned, "to"));

    expect(impossible).to.deep.equal([]);
    expect(await scene.apply(itemsWith(warned, "to"), true)).to.equal("done");
  });

  it("keeps a type that Prisma lacks when its column becomes unique", async () => {
    await scene.migrate(thingsWith(false));
    await scene.client.query("INSERT INTO things (mac, lasts) VALUES ('08:00:2b:01:02:03', 'PT1H')");

    expect(await scene.apply(thingsWith(true))).to.equal("done");

    expect(await scene.columns("things")).to.include({ mac: "macaddr", lasts: "interval" });
    expect(await scene.shape()).to.match(/things_lasts_key .*\n.*things_mac_key /);
    expect((await scene.plan(thingsWith(true))).steps).to.deep.equal([]);
  });

  it("names a type to which PostgreSQL has no automatic cast, also in an empty table", async () => {
    const spans = noteWith(field("tag", "Interval"));
    await scene.apply(noteWith(field("tag", "String")));

    expect((await scene.plan(spans)).impossible).to.deep.equal([
      "The column tag of the table notes is text, which PostgreSQL casts to interval with USING only. Change the type in a migration by hand.",
    ]);
    expect(await scene.apply(spans, true)).to.match(/do not allow the migration.*with USING only/s);
    expect(await scene.apply(noteWith(field("tag", "String", { native: "bpchar" })))).to.equal("done");
  });

  it("casts a list of a domain to a list of any target of its type", async () => {
    await scene.client.query("CREATE DOMAIN posint AS int CHECK (VALUE > 0)");
    await scene.apply(noteWith(field("tag", "String", { native: "posint", isList: true })));

    expect(await scene.apply(noteWith(field("tag", "BigInt", { isList: true })), true)).to.equal("done");
  });
});
