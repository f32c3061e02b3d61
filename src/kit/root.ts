/** The folder of package.json: two above `src/kit`, and two above the bundles of `dist/bin`. */
export const root = new URL("../../", import.meta.url);
