import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { prepareDataDir } from "./data-dir.ts";
import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";

const keyBytes = 32;

/**
 * Returns the key that encrypts webhook secrets: the configured one, else that of
 * `<dataDir>/secret.key`. Creates a missing file (base64, mode 0600). Processes that start at the
 * same time get the same key.
 *
 * @throws OperatorError when the file cannot be read or created, or does not contain a key.
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
    const text = (await readKey(path)) ?? (await makeKey(path, dataDir));
    return parseKey(text, path);
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(
      `Cannot read or make the secret key ${path}: ${messageOf(error)}. Let the service read and write the file, or give the key in SVC_SECRET_KEY.`,
      { cause: error },
    );
  }
}

async function readKey(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // ENOTDIR: a file has the place of the folder, and `makeKey` reports it.
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/**
 * Creates the file, and returns its content afterwards: another process's key when that process was
 * first. Uses a link: a rename would replace a key that is in use, and a plain write could leave
 * half a file.
 */
async function makeKey(path: string, dataDir: string): Promise<string> {
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

function parseKey(text: string, path: string): Buffer {
  const key = Buffer.from(text.trim(), "base64");
  // Node skips characters that are not base64, so only encoding the key again shows whether the
  // text was valid.
  if (key.length === keyBytes && key.toString("base64") === text.trim()) return key;
  throw new OperatorError(
    `The file ${path} does not hold a secret key (32 bytes, base64). ` +
      "Restore it: without its key the webhook secrets cannot be decrypted.",
  );
}
