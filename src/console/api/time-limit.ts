/**
 * Time limit of an answer, in ms. Lists have a shorter limit (`http.listTimeout`), and proxies give
 * up after 60 s. Their answers say more, and arrive first.
 */
export const timeLimit = 90_000;
