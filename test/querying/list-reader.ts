import { AppError, type FieldErrors } from "../../src/kit/errors.ts";
import { readListParameters, type ListParameters } from "../../src/querying/list-parameters.ts";
import type { ListShape } from "../../src/querying/shown-paths.ts";

/** Reads the parameters of lists of a shape. */
export function listReader(shape: ListShape): {
  readonly read: (query: string) => ListParameters;
  /** Returns the errors of a refused query; none for a valid one. */
  readonly errorsIn: (query: string) => FieldErrors;
} {
  const read = (query: string): ListParameters => readListParameters(query, shape, { maxPerPage: 100 });
  return {
    read,
    errorsIn(query) {
      try {
        read(query);
      } catch (error) {
        if (error instanceof AppError && error.status === 422) return error.errors ?? {};
        throw error;
      }
      return {};
    },
  };
}
