const secret = /passw|pwd|secret|token|api_?key|private_?key|\bsalt|_salt|(?:^|_)hash|digest|(?:^|_)otp/i;

/** Returns whether the name of a column indicates a secret. */
export function isSecret(column: string): boolean {
  return secret.test(column);
}
