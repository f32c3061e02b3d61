import type { ErrorObject } from "ajv";
import { hint, questionOf } from "../../kit/did-you-mean.ts";
import type { YamlPath } from "../../config/yaml-source.ts";

/** A fault from the JSON Schema, in the words of the mapping file. */
interface SchemaFault {
  readonly path: YamlPath;
  readonly message: string;
  readonly place: "value" | "key";
}

/**
 * Converts ajv's errors (`allErrors`, `verbose`) into one fault for each problem. The schema's
 * `errorMessage`, which editors show too, contains the expected form.
 */
export function schemaFaults(errors: readonly ErrorObject[]): readonly SchemaFault[] {
  const choices = errors.filter(({ keyword }) => keyword === "anyOf");
  const faults = errors
    // Leaves out errors that wrap other errors, and the branches of a choice, which is one fault.
    .filter(({ keyword }) => keyword !== "propertyNames" && keyword !== "if")
    .filter((error) => !choices.some((choice) => isBranchOf(error, choice)))
    .map(toFault);
  // A value that breaks several constraints has one `errorMessage`.
  return [...new Map(faults.map((fault) => [JSON.stringify(fault), fault])).values()];
}

function isBranchOf(error: ErrorObject, choice: ErrorObject): boolean {
  return (
    error.instancePath.startsWith(choice.instancePath) && error.schemaPath.startsWith(`${choice.schemaPath}/`)
  );
}

function toFault(error: ErrorObject): SchemaFault {
  const path = pathOf(error);
  const schema = (error.parentSchema ?? {}) as {
    readonly errorMessage?: string;
    readonly properties?: object;
  };
  const params = error.params as Readonly<Record<string, unknown>>;
  if (error.propertyName !== undefined) {
    return {
      path: [...path, error.propertyName],
      message: messageOf(error, schema.errorMessage),
      place: "key",
    };
  }
  if (error.keyword === "additionalProperties") {
    const key = String(params["additionalProperty"]);
    const message = `unknown key${hint(key, Object.keys(schema.properties ?? {}))}`;
    return { path: [...path, key], message, place: "key" };
  }
  if (error.keyword === "required") {
    return { path, message: `expected the key "${String(params["missingProperty"])}"`, place: "value" };
  }
  if (error.keyword === "enum") {
    const words = (params["allowedValues"] as readonly unknown[]).map(String);
    const question = typeof error.data === "string" ? questionOf(error.data, words) : "";
    return { path, message: `expected one of ${words.join(", ")}${question}`, place: "value" };
  }
  return { path, message: messageOf(error, schema.errorMessage), place: "value" };
}

function messageOf(error: ErrorObject, errorMessage: string | undefined): string {
  return errorMessage ?? `expected another value: ${error.message ?? error.keyword}`;
}

/**
 * Returns the steps of a JSON pointer. Digits are an index, since no key of a mapping file starts
 * with one.
 */
function pathOf({ instancePath }: ErrorObject): YamlPath {
  return instancePath
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}
