import { createRequire } from "node:module";
import type * as values from "@prisma/client-runtime-utils";

/**
 * Prisma's value classes without its client, which takes 95 ms and 18 MB to load. Uses `require`,
 * as the client does, since an import gives other classes of the same names.
 */
export const { Decimal, DbNull, JsonNull } = createRequire(import.meta.url)(
  "@prisma/client-runtime-utils",
) as typeof values;

export type Decimal = values.Decimal;
