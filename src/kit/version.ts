import { readFileSync } from "node:fs";
import { root } from "./root.ts";

/** Version of the service, from package.json. */
export const { version } = JSON.parse(readFileSync(new URL("package.json", root), "utf8")) as {
  readonly version: string;
};
