import { defineConfig } from "rolldown";

/**
 * Bundles the programs into `dist/bin`: loading each file by itself took a start 0.5 s of CPU more,
 * and 12 MB (docs/decisions/0044).
 */
export default defineConfig({
  input: [
    "src/bin/svc.ts",
    "src/bin/svc-admin.ts",
    "src/bin/healthcheck.ts",
    "src/db/prisma-internals/describe-models-process.js",
  ],
  platform: "node",
  // What has files of its own that are not JavaScript, and what a start does not load.
  external: [
    /^@electric-sql\/pglite(\/|$)/,
    /^@prisma\/(client|client-runtime-utils|get-dmmf|param-graph-builder|schema-engine-wasm)(\/|$)/,
    "pg-native",
    "pino-pretty",
    // Reads the tables of encodings, half a megabyte, when it needs them.
    "raw-body",
  ],
  output: {
    dir: "dist/bin",
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    sourcemap: true,
    // V8 keeps a text with other letters in two bytes each.
    charset: "ascii",
    comments: false,
    cleanDir: true,
  },
  // `eval` is in a dependency of Koa: it makes a function with a given number of parameters.
  checks: { eval: false },
});
