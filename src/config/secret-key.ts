import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { prepareDataDir } from "./data-dir.ts";
import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";

const keyBytes = 32;

/**
 * The key that webhook secrets are encrypted with: the configured one, else the one in `<dataDir>/secret.key`, which is
 * made (base64, mode 0600) when there is none. Processes that start at once end up with the same key.
 *
 * Throws an OperatorError when the file cannot be read or made, or does not hold a key.
 */
export async function loadSecretKey({
  configured,
  dataDir,
}: {
  readonly configured: Buffer | undefined;
  readonly dataDir: string;
}): Promise<Buffer> {
  if (configured !== undefined) return configured;
  const path = join(dataDir, "secret.key");
  try {
    const text = (await readKey(path)) ?? (await makeKey({ path, dataDir }));
    return parseKey({ text, path });
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`Cannot read or make the secret key ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** Undefined when there is no file. */
async function readKey(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // The second: a file is where the folder should be, and `makeKey` says so.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/**
 * Gives back what the file holds afterwards, which is another process's key when that one was first. A link and not a
 * rename, since a rename would put this key in place of one that is already in use; and never a file half written.
 */
async function makeKey({
  path,
  dataDir,
}: {
  readonly path: string;
  readonly dataDir: string;
}): Promise<string> {
  await prepareDataDir(dataDir);
  const draft = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    const file = await open(draft, "wx", 0o600);
    try {
      await file.writeFile(`${randomBytes(keyBytes).toString("base64")}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await link(draft, path).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  return await readFile(path, "utf8");
}

function parseKey({ text, path }: { readonly text: string; readonly path: string }): Buffer {
  const key = Buffer.from(text.trim(), "base64");
  // Node skips what is not base64, so that only writing the key again shows whether the text was one.
  if (key.length === keyBytes && key.toString("base64") === text.trim()) return key;
  throw new OperatorError(
    `The file ${path} does not hold a secret key (32 bytes, base64). ` +
      "Restore it: without its key the webhook secrets cannot be decrypted.",
  );
}
