import type { ApiContext } from "./state.ts";

/** Time for which the authentication of a head holds while the request waits for anything. */
const longestTrustMs = 1000;

/**
 * Authenticates a request again when its authentication is older than `longestTrustMs`. Meanwhile a
 * token may have been revoked, or a user disabled.
 *
 * @throws AppError 401 when the token is not valid any more; `user.forbidden` when the user is no
 *   admin any more.
 */
export async function checkSender({ state }: ApiContext): Promise<void> {
  if (performance.now() - state.identifiedAt > longestTrustMs) await state.identifyAgain();
}
