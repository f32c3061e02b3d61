import type { ApiContext } from "./state.ts";

/** Time for which the authentication of a head holds while the request waits for anything. */
const longestTrustMs = 1000;

/**
 * Finds the sender of a request again when that was done long ago. Meanwhile a token may have been
 * revoked, or a user disabled.
 *
 * @throws AppError 401 when it is no longer who it was; `user.forbidden` when it is no admin any
 *   more.
 */
export async function checkSender({ state }: ApiContext): Promise<void> {
  if (performance.now() - state.identifiedAt > longestTrustMs) await state.identifyAgain();
}
