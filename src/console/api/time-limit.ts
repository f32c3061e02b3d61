/**
 * How long an answer may take, in ms: longer than a list may (`http.listTimeout`), and than the 60 s
 * after which proxies give up, so that their answer comes first.
 */
export const timeLimit = 90_000;
