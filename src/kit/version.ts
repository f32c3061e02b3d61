import { createRequire } from "node:module";

/** Version of the service, from package.json, which is two folders above `src` and `dist` alike. */
export const { version } = createRequire(import.meta.url)("../../package.json") as {
  readonly version: string;
};
