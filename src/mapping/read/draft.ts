import { Ajv, type ValidateFunction } from "ajv";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { hint } from "../../kit/did-you-mean.ts";
import { messageOf, OperatorError } from "../../kit/errors.ts";
import { root } from "../../kit/root.ts";
import type { Trigger } from "../definition.ts";
import type { Fault, YamlPath, YamlSource } from "../../config/yaml-source.ts";
import type {
  AccessOperation,
  CodeModule,
  CountMode,
  DeleteAction,
  Field,
  FieldType,
  PrismaArgs,
  Relation,
  TableIndex,
} from "../definition.ts";
import type { TypeOptions } from "../type-options.ts";
import type { RuleSpecs } from "../../validation/syntax.ts";
import { schemaFaults } from "./schema-faults.ts";
import { isObject } from "../../kit/is-object.ts";

export interface FileField extends TypeOptions {
  readonly type: FieldType;
  readonly id?: boolean;
  readonly list?: boolean;
  readonly optional?: boolean;
  readonly unique?: boolean;
  readonly index?: boolean;
  readonly updatedAt?: boolean;
  readonly generated?: boolean;
  readonly native?: string;
  readonly column?: string;
  readonly default?: unknown;
  readonly references?: string;
  readonly as?: string;
  readonly onDelete?: DeleteAction;
}

/** A path, `{ value: ... }`, or an object of these. */
export type FileTransform = string | { readonly [name: string]: FileTransform };

/** A mapping file that matches the JSON Schema. */
interface MappingFile {
  readonly name: string;
  readonly model: string;
  readonly table?: string;
  readonly managed?: boolean;
  readonly view?: boolean;
  /** Undefined for a faulty field. */
  readonly fields: Readonly<Record<string, FileField | undefined>>;
  readonly triggers: readonly Trigger[];
  readonly previous?: boolean;
  readonly unique?: readonly (readonly string[])[];
  readonly indexes?: readonly {
    readonly fields: readonly string[];
    readonly where?: string;
    readonly type?: TableIndex["type"];
  }[];
  readonly transform?: Readonly<Record<string, FileTransform>>;
  readonly createRules?: RuleSpecs;
  readonly updateRules?: RuleSpecs;
  readonly ownerColumn?: string;
  readonly isAdmin?: "flag" | "nobody" | readonly string[];
  readonly access?: Readonly<Partial<Record<AccessOperation, string | PrismaArgs>>>;
  readonly searchableColumns?: readonly string[];
  readonly filterable?: readonly string[];
  readonly sortable?: readonly string[];
  readonly includes?: readonly string[];
  readonly count?: CountMode;
  readonly baseQuery?: {
    readonly include?: PrismaArgs;
    readonly orderBy?: PrismaArgs | readonly PrismaArgs[];
    readonly where?: PrismaArgs;
  };
  readonly supportsCreate?: boolean;
  readonly supportsUpdate?: boolean;
  readonly supportsDelete?: boolean;
  readonly webhookMaxAttempts?: number;
  readonly webhookBackoff?: readonly number[];
  readonly module?: string;
}

/**
 * The intermediate form of a mapping file before its definition. `content` leaves out faulty parts,
 * so that the rest can be checked and no fault causes another report.
 */
export interface Draft {
  readonly source: YamlSource;
  readonly content: Partial<MappingFile>;
  /** Keys of the top level with a fault in them. */
  readonly faultyKeys: ReadonlySet<string>;
  /** Fields by name; undefined for a faulty one. */
  readonly fields: Map<string, Field | undefined>;
  /** Relations by name; undefined for a faulty one. */
  readonly relations: Map<string, Relation | undefined>;
  /** Returns whether a relation of that name may be missing only because of a fault elsewhere. */
  mayHaveRelation: (name: string) => boolean;
  code: CodeModule;
  /** Hash of the code module's text; undefined without one. */
  codeHash?: string;
  readonly faults: Fault[];
  report(path: YamlPath, message: string, place?: "value" | "key"): void;
}

/** Drafts by their valid names. */
export type Drafts = ReadonlyMap<string, Draft>;

/** A part of a file, and its place. */
export interface DraftPart<T> {
  /** The draft that gets the reports. */
  readonly draft: Draft;
  readonly drafts: Drafts;
  readonly path: YamlPath;
  readonly given: T;
}

/**
 * Compiles the JSON Schema of a mapping file, which editors use too.
 *
 * @throws OperatorError when the schema's file is missing.
 */
export function compileMappingSchema(): ValidateFunction {
  const path = fileURLToPath(new URL("config/schema/resource.schema.json", root));
  let schema: object;
  try {
    schema = JSON.parse(readFileSync(path, "utf8")) as object;
  } catch (error) {
    throw new OperatorError(
      `${path} cannot be read (${messageOf(error)}). The folder is part of the program: a configuration of your own ` +
        "goes into another folder, which SVC_CONFIG_DIR names.",
      { cause: error },
    );
  }
  const ajv = new Ajv({ allErrors: true, verbose: true, strictTypes: false });
  // Used by editors, and by schema-faults.ts.
  ajv.addKeyword("errorMessage");
  return ajv.compile(schema);
}

/** Checks a file against the schema, and returns its draft. */
export function createDraft(source: YamlSource, validate: ValidateFunction): Draft {
  const faults = [...source.faults];
  const isReadable = source.faults.length === 0;
  const found = isReadable && !validate(source.value) ? schemaFaults(validate.errors ?? []) : [];
  faults.push(...found.map(({ path, message, place }) => source.faultAt(path, message, place)));
  return {
    source,
    content: isReadable
      ? soundPart(
          source.value,
          found.map(({ path }) => path),
        )
      : {},
    faultyKeys: new Set(found.flatMap(({ path }) => (path.length > 0 ? [String(path[0])] : []))),
    fields: new Map(),
    relations: new Map(),
    mayHaveRelation: () => false,
    code: {},
    faults,
    report: (path, message, place) => void faults.push(source.faultAt(path, message, place)),
  };
}

function soundPart(value: unknown, faulty: readonly YamlPath[]): Partial<MappingFile> {
  if (!isObject(value)) return {};
  const sound: Record<string, unknown> = { ...value };
  for (const [key, field] of faulty) {
    if (key === undefined) continue;
    const fields = sound["fields"];
    if (key === "fields" && field !== undefined && typeof fields === "object") {
      sound["fields"] = { ...fields, [field]: undefined };
    } else delete sound[key];
  }
  return sound;
}

/** Returns whether the file's fields are known, because only then is an unknown name a fault. */
export function hasFields(draft: Draft): boolean {
  return draft.content.fields !== undefined;
}

/**
 * Finds a field by a name in the file. When the fields are known, reports an unknown field and
 * returns undefined.
 */
export function findField(
  draft: Draft,
  name: string,
  path: YamlPath,
  place?: "value" | "key",
): Field | undefined {
  if (hasFields(draft) && !draft.fields.has(name)) {
    draft.report(path, `there is no field "${name}"${hint(name, draft.fields.keys())}`, place);
  }
  return draft.fields.get(name);
}

/** Returns the fields of the key without a fault. */
export function keysOf(draft: Draft | undefined): readonly Field[] {
  return [...(draft?.fields.values() ?? [])].filter((field) => field?.isKey === true) as readonly Field[];
}
