import type { Definition, Field, FieldType } from "../mapping/definition.ts";
import { isTemporal, isTimeText } from "../mapping/temporal.ts";
import type { ReadDate } from "../validation/date-checks.ts";
import { parseDateText } from "../validation/dates.ts";
import type { CompiledRules } from "../validation/validate.ts";

type Values = Readonly<Record<string, unknown>>;

const dateTypes: readonly FieldType[] = ["DateTime", "Instant", "Date", "Time"];

/**
 * Converts dates that `date_format` reads in another form, such as `28.03.2026`, to ISO 8601 for
 * their columns. Cuts the digits that the columns of managed tables would round.
 */
export function withIsoDates(
  { fields, isManaged }: Pick<Definition, "fields" | "isManaged">,
  rules: CompiledRules,
  values: Values,
): Values {
  const given = fields.filter(({ name, type }) => dateTypes.includes(type) && values[name] !== undefined);
  const dates = given.flatMap((field): readonly [string, unknown][] => {
    const read = readerOf(field, rules);
    const isCut = isManaged && field.type === "Instant";
    if (read === undefined && !isCut) return [];
    const value = values[field.name];
    const date = read === undefined ? value : isoDateOf(field, value, read);
    return [[field.name, isCut ? inMilliseconds(date) : date]];
  });
  return dates.length === 0 ? values : { ...values, ...Object.fromEntries(dates) };
}

function readerOf({ name, type, isList }: Field, { fields }: CompiledRules): ReadDate | undefined {
  const wanted = isList ? `${name}.*` : name;
  const rules = fields.find(({ key, readDate }) => readDate !== undefined && key.join(".") === wanted);
  // A day, or a time of day, in a zone may be another one in UTC. The column's type refuses it.
  const isZoned = isTemporal({ type }) && rules?.dateFormats.some(hasZone) === true;
  return isZoned ? undefined : rules?.readDate;
}

/** Returns whether a format reads an offset or a zone. After a backslash, a letter is literal. */
function hasZone(format: string): boolean {
  return format.split("").some((letter, index) => "eTPOp".includes(letter) && format[index - 1] !== "\\");
}

/** Returns a value of a field of another type, and one that is no date, as it is. */
export function isoDateOf(field: Field, value: unknown, read: ReadDate): unknown {
  if (!dateTypes.includes(field.type)) return value;
  if (Array.isArray(value)) return value.map((item) => isoDateOf(field, item, read));
  const date = read(value);
  if (date === undefined) return value;
  const iso = date.toISOString();
  if (field.type === "Date") return iso.slice(0, 10);
  if (field.type === "Time") return isTimeText(String(value)) ? value : iso.slice(11, -1);
  // A Date has no microseconds. An unambiguous text keeps them.
  return parseDateText(String(value))?.getTime() === date.getTime() ? value : iso;
}

function inMilliseconds(value: unknown): unknown {
  return typeof value === "string" ? (parseDateText(value)?.toISOString() ?? value) : value;
}
