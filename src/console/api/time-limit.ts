/**
 * Time limit of an answer, in ms. Lists have a shorter limit (`http.listTimeout`), and proxies give
 * up after 60 s. Their answers arrive first and contain more.
 */
export const timeLimit = 90_000;
