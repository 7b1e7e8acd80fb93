import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { hmac } from '../../core/crypto'
import { tryParseJson } from '../../core/json'
import { Problem } from '../../core/problem'
import { deriveKey } from '../../tenancy/installation-keys'
import type { BackupEncryption } from '../encryption'

/** The name of the file with the seal, which is encrypted as the backup is. */
export const SEAL_FILE_NAME = 'contents.key'

/** What names and decrypts the contents of an encrypted backup: an age identity, and a key of names (hex). */
const ContentSeal = t.Object({
  identity: t.String({ pattern: '^AGE-SECRET-KEY-1[0-9A-Z]{58}$' }),
  nameKey: t.String({ pattern: '^[0-9a-f]{64}$' }),
})
export type ContentSeal = typeof ContentSeal.static

/**
 * Returns the seal of a tenant's contents in backups with this encryption. It is always the same one, so that a content
 * is stored once; another passphrase or other recipients make another one.
 */
export async function createContentSeal(tenant: string, { scope }: BackupEncryption): Promise<ContentSeal> {
  const { bech32 } = await import('@scure/base')
  const key = await deriveKey(tenant, 'backup-contents')
  const derive = (purpose: string) => hmac('sha256', key, `${purpose} ${scope}`)
  const identity = bech32.encodeFromBytes('AGE-SECRET-KEY-', derive('identity')).toUpperCase()
  return { identity, nameKey: derive('name').toString('hex') }
}

/** Returns the seal in a text. @throws 409 BACKUP_DAMAGED */
export function parseContentSeal(text: string): ContentSeal {
  const value = tryParseJson(text)
  if (Value.Check(ContentSeal, value)) return value
  throw new Problem(409, 'BACKUP_DAMAGED', 'The keys of the contents of files in this backup are not readable.')
}

/** Returns the name of a content in a target. Without the seal, the name of an encrypted one does not tell its hash. */
export const toStoredName = (sha256: string, seal: ContentSeal | undefined) =>
  seal ? `${hmac('sha256', Buffer.from(seal.nameKey, 'hex'), sha256).toString('hex')}.age` : sha256

/** Returns what encrypts contents for the holder of the seal. */
export async function createContentEncryption({ identity }: ContentSeal): Promise<Pick<BackupEncryption, 'encrypt'>> {
  const { Encrypter, identityToRecipient } = await import('age-encryption')
  const encrypter = new Encrypter()
  encrypter.addRecipient(await identityToRecipient(identity))
  return { encrypt: (content) => encrypter.encrypt(content) }
}
