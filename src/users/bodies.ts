import { validationError, type FieldErrors } from "../kit/errors.ts";
import { maxScopes, scopeFault } from "../kit/scopes.ts";
import { refuseFields, unknownFields } from "../kit/refuse-fields.ts";
import { compileRules, validate, type CompiledRules } from "../validation/validate.ts";
import type { RuleSpecs } from "../validation/syntax.ts";
import { resolveDate } from "../validation/dates.ts";
import { emailFault, nameFault, subjectFault } from "./input.ts";
import type { UserChanges } from "./store.ts";

type Body = Readonly<Record<string, unknown>>;

export const newTokenRules: RuleSpecs = {
  name: "required|string|max:255",
  scopes: ["nullable", "list", { min: 1 }, { max: maxScopes }],
  "scopes.*": "required|string",
  expires_at: "nullable|string|date|after:now",
};

export const newUserRules: RuleSpecs = {
  name: "required|string|max:255",
  email: "required|string|max:254",
  is_admin: "boolean",
  subject: "nullable|string|max:255",
};

export const changedUserRules: RuleSpecs = {
  name: "sometimes|required|string|max:255",
  email: "sometimes|required|string|max:254",
  is_admin: "sometimes|required|boolean",
  is_disabled: "sometimes|required|boolean",
  subject: "sometimes|nullable|string|max:255",
};

const newToken = compileRules(newTokenRules);
const newUser = compileRules(newUserRules);
const changedUser = compileRules(changedUserRules);

export interface TokenBody {
  readonly name: string;
  /** Undefined: the scopes of the token of the request. */
  readonly scopes: readonly string[] | undefined;
  /** Undefined: the end of that token. */
  readonly expiresAt: Date | undefined;
}

/** The body of a user; missing keys are undefined. */
export interface UserBody extends Omit<UserChanges, "jwt"> {
  /** Subject of the user's JWTs. Null: the user has no JWTs. */
  readonly subject?: string | null;
}

/** Reads the body of a new token. Throws 422 `validation.failed`. */
export async function readTokenBody(body: Body, resources: Iterable<string>): Promise<TokenBody> {
  const values = await checked(newToken, body);
  const name = String(values["name"]);
  const scopes = values["scopes"] as readonly string[] | null | undefined;
  const errors: Record<string, readonly string[]> = { ...faultOf("name", nameFault(name)) };
  for (const [index, scope] of (scopes ?? []).entries())
    Object.assign(errors, faultOf(`scopes.${index}`, scopeFault(scope, resources)));
  refuseFields(body, fieldsOf(newToken), errors);
  const date = values["expires_at"];
  return {
    name,
    scopes: scopes === null || scopes === undefined ? undefined : [...new Set(scopes)],
    expiresAt: typeof date === "string" ? resolveDate(date, new Date()) : undefined,
  };
}

/**
 * Reads the body of a user. Throws 422 `validation.failed`.
 *
 * @param hasSubjects Whether the service accepts JWTs: without them a subject has no meaning.
 */
export async function readUserBody(
  body: Body,
  { isNew, hasSubjects }: { readonly isNew: boolean; readonly hasSubjects: boolean },
): Promise<UserBody> {
  const rules = isNew ? newUser : changedUser;
  const values = await checked(rules, body);
  const { name, email, subject } = values as { name?: string; email?: string; subject?: string | null };
  const errors: FieldErrors = {
    ...faultOf("name", name === undefined ? undefined : nameFault(name)),
    ...faultOf("email", email === undefined ? undefined : emailFault(email)),
    ...faultOf(
      "subject",
      subject === undefined || subject === null ? undefined : faultOfSubject(subject, hasSubjects),
    ),
  };
  refuseFields(body, fieldsOf(rules), errors);
  return {
    ...(name === undefined ? {} : { name }),
    ...(email === undefined ? {} : { email }),
    ...("is_admin" in values ? { isAdmin: isTrue(values["is_admin"]) } : {}),
    ...("is_disabled" in values ? { isDisabled: isTrue(values["is_disabled"]) } : {}),
    ...(subject === undefined ? {} : { subject }),
  };
}

/** Lookup for these rules, none of which queries the database. */
const exists = (): Promise<boolean> => Promise.resolve(false);

function fieldsOf({ keys }: CompiledRules): readonly string[] {
  return [...keys.children.keys()];
}

async function checked(rules: CompiledRules, body: Body): Promise<Body> {
  const result = await validate(rules, body, { lookup: { exists } });
  if (result.kind === "valid") return result.values;
  throw validationError({ ...result.errors, ...unknownFields(body, fieldsOf(rules)) });
}

function faultOf(field: string, fault: string | undefined): FieldErrors {
  return fault === undefined ? {} : { [field]: [fault] };
}

function faultOfSubject(subject: string, hasSubjects: boolean): string | undefined {
  return hasSubjects ? subjectFault(subject) : "A subject needs the setting auth.jwt.";
}

/** Returns whether a value that passed the rule `boolean` means true. */
function isTrue(value: unknown): boolean {
  return value === true || value === 1 || value === "1";
}
