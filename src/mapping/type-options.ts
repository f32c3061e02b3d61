import type { Field } from "./definition.ts";

export type TypeOptions = Pick<Field, "length" | "precision" | "scale" | "values">;

/** Returns the options of a field's type, without missing ones. */
export function typeOptionsOf({
  length,
  precision,
  scale,
  values,
}: {
  readonly [Key in keyof TypeOptions]?: TypeOptions[Key] | undefined;
}): TypeOptions {
  return {
    ...(length !== undefined && { length }),
    ...(precision !== undefined && { precision }),
    ...(scale !== undefined && { scale }),
    ...(values !== undefined && { values }),
  };
}
