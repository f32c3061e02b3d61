import { generateKeyPairSync, randomBytes } from "node:crypto";

/**
 * Creates the key and certificates of a TLS server that cost a client much CPU time. After a
 * certificate with a real key, the chain has false ones of 3072 bits, each with a public exponent
 * of that length. A client verifies all of their signatures, and each is wrong.
 */
export function createFalseChain(count: number): { readonly key: string; readonly cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const chain = [certificate("localhost", "0", publicKey.export({ type: "spki", format: "der" }))];
  for (let index = 0; index < count; index += 1)
    chain.push(certificate(String(index), String(index + 1), falseKey()));
  const pem = chain.map((der) => `-----BEGIN CERTIFICATE-----\n${lines(der)}\n-----END CERTIFICATE-----\n`);
  return { key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), cert: pem.join("") };
}

const bytesOfKey = 384;

const lines = (der: Buffer): string => (der.toString("base64").match(/.{1,64}/g) ?? []).join("\n");

/** Returns a value of ASN.1 in DER. */
function tlv(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const value = Buffer.concat(parts);
  const { length } = value;
  const head = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 255];
  return Buffer.concat([Buffer.from([tag, ...head]), value]);
}

/** Returns a positive number of these bytes, the first of which is not zero. */
const integer = (bytes: Uint8Array): Buffer =>
  (bytes[0] ?? 0) < 0x80 ? tlv(2, bytes) : tlv(2, Buffer.of(0), bytes);
const bits = (bytes: Uint8Array): Buffer => tlv(3, Buffer.of(0), bytes);
const oid = (hex: string): Buffer => tlv(6, Buffer.from(hex, "hex"));
const sequence = (...parts: readonly Uint8Array[]): Buffer => tlv(0x30, ...parts);
const name = (text: string): Buffer =>
  sequence(tlv(0x31, sequence(oid("550403"), tlv(0x0c, Buffer.from(text)))));
const sha256WithRsa = sequence(oid("2a864886f70d01010b"), tlv(5));

/** Returns an odd number with this first byte. It belongs to no key. */
function odd(first: number): Buffer {
  const bytes = randomBytes(bytesOfKey);
  bytes[0] = first;
  bytes[bytes.length - 1] = 1;
  return bytes;
}

function falseKey(): Buffer {
  const key = sequence(integer(odd(0xff)), integer(odd(0x7f)));
  return sequence(sequence(oid("2a864886f70d010101"), tlv(5)), bits(key));
}

function certificate(subject: string, issuer: string, publicKey: Uint8Array): Buffer {
  const [from, to] = ["200101000000Z", "490101000000Z"].map((time) => tlv(0x17, Buffer.from(time)));
  const content = sequence(
    tlv(0xa0, tlv(2, Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), randomBytes(4)])),
    sha256WithRsa,
    name(issuer),
    sequence(from as Buffer, to as Buffer),
    name(subject),
    publicKey,
  );
  return sequence(content, sha256WithRsa, bits(odd(0)));
}
