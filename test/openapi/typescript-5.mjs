// openapi-typescript writes types with the compiler of TypeScript 5, whose interface TypeScript 7 does not have.
import { register } from "node:module";

const hooks = `export const resolve = (name, context, next) => next(name === "typescript" ? "typescript-5" : name, context);`;

register(`data:text/javascript,${encodeURIComponent(hooks)}`);
