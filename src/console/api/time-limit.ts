/**
 * How long an answer may take, in ms. A list may take less (`http.listTimeout`), and proxies give
 * up after 60 s: their answers say more, and come first.
 */
export const timeLimit = 90_000;
