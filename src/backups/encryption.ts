import { readFileSync } from 'node:fs'
import type { Decrypter, Encrypter } from 'age-encryption'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { sha256 } from '../core/crypto'
import { Problem } from '../core/problem'
import { parseList } from '../core/setting-types'
import { passphraseCost } from './passphrase-cost'

/** The name of the file with a backup's own key, which the passphrase encrypts. */
export const KEY_FILE_NAME = 'key.age'

/** Returns the name of the key of the segments of a log from a number on. */
export const toKeyFileName = (segment: number) => `key-${segment}.age`

/** Tells whether a file has a key that the passphrase encrypts. */
export const isKeyFile = (name: string) => /^key(-\d+)?\.age$/.test(name)

/** Encrypts the files of backups by age (https://age-encryption.org/v1). */
export type BackupEncryption = {
  encrypt(content: ReadableStream<Uint8Array>): Promise<ReadableStream<Uint8Array>>
  /** The key of these backups, encrypted with the passphrase, where they are encrypted with one. */
  keyFile?: Uint8Array
  /** Is equal for equal passphrases and recipients only. It must not be stored. */
  scope: string
}

/** What decrypts backups: a passphrase, or age identities (`AGE-SECRET-KEY-…`). */
export type BackupSecrets = { passphrase?: string; identities?: string[] }

/**
 * Returns the encryption for a passphrase or for age recipients (`age1…`), or undefined when neither is given. The
 * passphrase encrypts a key that is generated, because deriving a key from it takes most of a second.
 * @throws ConfigError for an invalid recipient
 */
export async function createEncryption(
  passphrase: string | undefined,
  recipients: string[],
): Promise<BackupEncryption | undefined> {
  if (!passphrase && !recipients.length) return
  const { Encrypter, generateIdentity, identityToRecipient } = await import('age-encryption')
  const encrypter = new Encrypter()
  for (const recipient of recipients) addRecipient(encrypter, recipient)
  let keyFile: Uint8Array | undefined
  if (passphrase) {
    const identity = await generateIdentity()
    encrypter.addRecipient(await identityToRecipient(identity))
    const keyEncrypter = new Encrypter()
    keyEncrypter.setScryptWorkFactor(passphraseCost.workFactor)
    keyEncrypter.setPassphrase(passphrase)
    keyFile = await keyEncrypter.encrypt(`${identity}\n`)
  }
  const scope = sha256(JSON.stringify([passphrase ?? '', ...recipients.toSorted()]))
  return { encrypt: (content) => encrypter.encrypt(content), ...(keyFile && { keyFile }), scope }
}

function addRecipient(encrypter: Encrypter, recipient: string) {
  try {
    encrypter.addRecipient(recipient)
  } catch (cause) {
    throw new ConfigError(`"${recipient}" is not an age recipient, which begins with age1.`, { cause })
  }
}

/**
 * Returns what decrypts the files of a backup. `readKeyFiles` returns its key files, if it has any.
 * @throws 403 WRONG_BACKUP_KEY when neither the passphrase nor an identity fits
 */
export async function createDecryption(
  secrets: BackupSecrets,
  readKeyFiles: () => Promise<Uint8Array[]>,
): Promise<(content: ReadableStream<Uint8Array>) => Promise<ReadableStream<Uint8Array>>> {
  const { Decrypter } = await import('age-encryption')
  const { passphrase, identities = [] } = secrets
  const decrypter = new Decrypter()
  for (const identity of identities) addIdentity(decrypter, identity)
  const keyFiles = passphrase ? await readKeyFiles() : []
  if (passphrase && keyFiles.length) {
    const keyDecrypter = new Decrypter()
    keyDecrypter.addPassphrase(passphrase)
    const keys = await Promise.allSettled(keyFiles.map((keyFile) => decryptKey(keyDecrypter, keyFile, secrets)))
    const known = keys.flatMap((key) => (key.status === 'fulfilled' ? [key.value.trim()] : []))
    if (!known.length) throwWrongKey((keys[0] as PromiseRejectedResult).reason)
    for (const identity of known) decrypter.addIdentity(identity)
  } else if (!identities.length)
    throw new Problem(
      403,
      'WRONG_BACKUP_KEY',
      passphrase
        ? 'This backup is encrypted for age recipients. Pass the file of an identity by --identity-file.'
        : 'This backup is encrypted. Set ATOLL_BACKUP_PASSPHRASE, or pass --passphrase-file or --identity-file.',
    )
  return (content) => decrypter.decrypt(content).catch(throwWrongKey)
}

/** The keys that were decrypted with secrets, by their files. The tenants of an installation share those of a backup. */
const decryptedKeys = new WeakMap<BackupSecrets, Map<string, Promise<string>>>()

function decryptKey(decrypter: Decrypter, keyFile: Uint8Array, secrets: BackupSecrets): Promise<string> {
  const keys = decryptedKeys.get(secrets) ?? new Map<string, Promise<string>>()
  decryptedKeys.set(secrets, keys)
  const name = keyFile.toBase64()
  const existing = keys.get(name)
  if (existing) return existing
  const key = decrypter.decrypt(keyFile, 'text')
  keys.set(name, key)
  return key
}

function addIdentity(decrypter: Decrypter, identity: string) {
  try {
    decrypter.addIdentity(identity)
  } catch (cause) {
    throw new ConfigError('The file of --identity-file holds no age identity (AGE-SECRET-KEY-…).', { cause })
  }
}

function throwWrongKey(cause: unknown): never {
  const message = 'The passphrase or the identity does not decrypt this backup.'
  throw new Problem(403, 'WRONG_BACKUP_KEY', message, { cause })
}

/** Returns the first line of a passphrase file. @throws ConfigError when it cannot be read or is empty */
export function readPassphraseFile(path: string): string {
  const [passphrase = ''] = readTextFile(path).split(/\r?\n/)
  if (!passphrase) throw new ConfigError(`The file "${path}" is empty. Its first line has to be the passphrase.`)
  return passphrase
}

/** Returns the age identities in a file. @throws ConfigError when it cannot be read or has none */
export function readIdentityFile(path: string): string[] {
  const identities = readTextFile(path)
    .split(/\r?\n/)
    .filter((line) => line.startsWith('AGE-SECRET-KEY-'))
  if (!identities.length) throw new ConfigError(`The file "${path}" holds no age identity (AGE-SECRET-KEY-…).`)
  return identities
}

function readTextFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ConfigError(`The file "${path}" cannot be read.`, { cause })
  }
}

/** The passphrase and the recipients of the settings. */
export const configuredEncryption = () => ({
  passphrase: config.ATOLL_BACKUP_PASSPHRASE || undefined,
  recipients: parseList(config.ATOLL_BACKUP_RECIPIENTS),
})
