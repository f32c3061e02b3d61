import { expect } from "chai";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Definition } from "../../src/mapping/definition.ts";
import { checkDefinitions, type Check } from "../../src/mapping/load.ts";
import { faultText } from "../../src/config/yaml-source.ts";

/** Makes a configuration folder with these files, by their path in `resources/`. */
export function createMappingFolder(files: Readonly<Record<string, string>>): {
  readonly configDir: string;
  remove(): void;
} {
  const configDir = mkdtempSync(join(tmpdir(), "svc-mapping-"));
  mkdirSync(join(configDir, "resources"));
  for (const [name, text] of Object.entries(files)) {
    const path = join(configDir, "resources", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  return { configDir, remove: () => rmSync(configDir, { recursive: true }) };
}

/** Checks these mapping files in a folder of their own. */
export async function checkFiles(files: Readonly<Record<string, string>>): Promise<Check> {
  const folder = createMappingFolder(files);
  try {
    return await checkDefinitions(folder.configDir);
  } finally {
    folder.remove();
  }
}

/** A definition without its link to the file. */
export type DefinitionData = Omit<Definition, "remark" | "faultAt">;

/** Returns the definition of a resource in these files. */
export async function definitionOf(
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<DefinitionData> {
  const { definitions = new Map<string, Definition>(), faults } = await checkFiles(files);
  expect(faults).to.deep.equal([]);
  const { remark: _remark, faultAt: _faultAt, ...data } = definitions.get(name) as Definition;
  return data;
}

/** Returns the faults of these files, as text without the folder's name. */
export async function faultsOf(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const { faults } = await checkFiles(files);
  return faults.map((fault) => faultText(fault).replace(/^resources\//, ""));
}

/** Seven lines; the added lines of a case begin on line 8, with two spaces as a field. */
const orders = `name: orders
model: Order
triggers: [on_create]
fields:
  id: { type: Int, id: true }
  title: { type: String }
  customer_id: { type: Int, references: customers.id }
`;

const customers = `name: customers
model: Customer
triggers: []
fields:
  id: { type: Int, id: true }
  name: { type: String }
  email: { type: String, unique: true }
  code: { type: Uuid, unique: true }
`;

/** The fault in words, the added lines, and the reported faults: line, column, key and message. */
export type Case = readonly [fact: string, added: string, ...faults: string[]];

/**
 * One test for each case: a good mapping file with lines added to it, beside another good one and
 * `others`.
 */
export function itRefuses(cases: readonly Case[], others: Readonly<Record<string, string>> = {}): void {
  for (const [fact, added, ...faults] of cases) {
    it(`refuses ${fact}`, async () => {
      const found = await faultsOf({
        "orders.yaml": `${orders}${added}\n`,
        "customers.yaml": customers,
        ...others,
      });

      expect(found).to.deep.equal(faults.map((fault) => `orders.yaml:${fault}`));
    });
  }
}
