import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/**
 * Builds the console into `dist/console`. Its addresses are relative to `<base>`, which the server
 * sets to `console.path`.
 */
export default defineConfig({
  root: "src/console",
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../../dist/console",
    emptyOutDir: true,
    target: "es2022",
    // Inlined assets would be `data:` URLs, which the policy allows for pictures only.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // How long each plugin took is no warning.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
});
