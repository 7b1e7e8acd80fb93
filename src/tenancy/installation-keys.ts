import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { deriveKeyBytes, generateToken, sha256 } from '../core/crypto'
import { logError } from '../core/log'
import { Problem } from '../core/problem'
import type { RunQuery } from '../storage/port'
import { registry } from './registry'
import {
  createSecretsFile,
  isSecretsFileExposed,
  moveSecretsFileAside,
  parseSecrets,
  readSecretsFile,
  replaceSecretsFile,
  restrictSecretsFile,
  type Secrets,
  secretsFile,
} from './secrets-file'

const usesDatabase = !!config.ATOLL_DATABASE_URL
const KEYS_LOCATION = usesDatabase ? 'The row "keys" of the table atoll_registry.secrets' : secretsFile

let verifiedSecrets: Promise<Secrets> | undefined

type KeyPurpose =
  | 'access-token'
  | 'refresh-token'
  | 'social-journey'
  | 'changes'
  | 'cursor'
  | 'device-cookie'
  | 'setup-link'
  | 'idempotency-fingerprint'
  | 'idempotency-answer'
  | 'certificates'
  | 'file-link'
  | 'backup-contents'

/**
 * Returns a key of 32 bytes for one purpose of one tenant. Keys of other tenants and purposes reveal nothing about it.
 * @throws 503 KEYS_UNAVAILABLE when the installation's keys cannot be read
 */
export async function deriveKey(tenant: string, purpose: KeyPurpose): Promise<Uint8Array> {
  const { signingKey } = await getVerifiedSecrets().catch(throwKeysUnavailable)
  return deriveKeyBytes(config.ATOLL_SIGNING_KEY || signingKey, tenant, purpose)
}

/** The keys from which those of the vault are derived, by number. */
export type VaultKeys = { current: number; all: Map<number, string> }

/**
 * Returns the current keys, read again each time: another process may have changed them, and data that is encrypted
 * with a removed key is lost.
 * @throws 503 KEYS_UNAVAILABLE when they cannot be read
 */
export async function getVaultKeys(): Promise<VaultKeys> {
  await getVerifiedSecrets().catch(throwKeysUnavailable)
  const secrets = await readSecrets(registry.db.query).catch(throwKeysUnavailable)
  return toVaultKeys(secrets ?? throwKeysUnavailable(keysMissing()))
}

/**
 * Makes sure that the keys match the data, and creates keys when there is no tenant yet.
 * @throws ConfigError when they are missing, damaged or do not match
 */
export async function ensureSecrets(): Promise<void> {
  await getVerifiedSecrets()
}

/** Returns what is wrong with the keys, or undefined. Creates none. */
export async function findSecretsProblem(): Promise<string | undefined> {
  try {
    const secrets = await readSecrets(registry.db.query)
    if (!secrets) return (await hasDataThatNeedsSecrets(registry.db.query)) ? keysMissing().message : undefined
    requireMatch(secrets, await readFingerprint(registry.db.query))
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/** Tells whether the local files are encrypted with other keys than the database has. */
export async function hasOtherFileKeys(): Promise<boolean> {
  const own = readSecretsFile()
  return !!own && own.vaultKey !== (await getVerifiedSecrets()).vaultKey
}

/** Starts using a new vault key beside the old ones, or resumes a started change. Returns the keys. */
export const addVaultKey = () =>
  updateSecrets((before) => {
    if (before.formerVaultKeys) return before
    const { current } = toVaultKeys(before)
    const former = { formerVaultKeys: { [current]: before.vaultKey } }
    return { ...before, vaultKey: generateToken(), vaultKeyNumber: current + 1, ...former }
  })

/** Removes all vault keys with a lower number. Returns the remaining keys. */
export const removeVaultKeysBefore = (before: number) =>
  updateSecrets(({ formerVaultKeys = {}, ...secrets }) => {
    const remaining = Object.entries(formerVaultKeys).filter(([number]) => Number(number) >= before)
    return { ...secrets, ...(remaining.length && { formerVaultKeys: Object.fromEntries(remaining) }) }
  })

/** Creates new keys in place of lost ones. Returns where the rest of the old file was moved. */
export async function replaceLostSecrets(): Promise<{ aside?: string }> {
  // Data that is encrypted with the lost keys must not seem to be encrypted with these: they get a new number.
  const fresh = { ...newSecrets(), vaultKeyNumber: Math.floor(Date.now() / 1_000) }
  return registry.write(async (tx) => {
    const aside = usesDatabase ? undefined : moveSecretsFileAside()
    await writeSecrets(tx.query, fresh)
    return { ...(aside && { aside }) }
  })
}

function toVaultKeys({ vaultKey, vaultKeyNumber = 1, formerVaultKeys = {} }: Secrets): VaultKeys {
  const former = Object.entries(formerVaultKeys).map(([number, key]) => [Number(number), key] as const)
  return { current: vaultKeyNumber, all: new Map([...former, [vaultKeyNumber, vaultKey]]) }
}

/**
 * The write lock of the registry keeps other processes from changing the secrets meanwhile, also when they are a file.
 */
async function updateSecrets(change: (before: Secrets) => Secrets): Promise<VaultKeys> {
  await getVerifiedSecrets()
  return registry.write(async (tx) => {
    const before = (await readSecrets(tx.query)) ?? throwKeysUnavailable(keysMissing())
    return toVaultKeys(await writeSecrets(tx.query, change(before)))
  })
}

/** Returns the keys as they were when this process first needed them. */
function getVerifiedSecrets(): Promise<Secrets> {
  verifiedSecrets ??= loadAndVerifySecrets().catch((error) => {
    verifiedSecrets = undefined
    throw error
  })
  return verifiedSecrets
}

async function loadAndVerifySecrets(): Promise<Secrets> {
  if (!usesDatabase && isSecretsFileExposed()) {
    restrictSecretsFile()
    logError('SECRETS_FILE_WAS_OPEN', {
      file: secretsFile,
      message: 'Other users of this machine could read the file. Its mode was changed to 0600.',
    })
  }
  const [secrets, fingerprint] = [await readSecrets(registry.db.query), await readFingerprint(registry.db.query)]
  // Another process may have rotated the key between the two reads: the lock of the registry decides.
  if (secrets && fingerprint && isMatch(secrets, fingerprint)) return secrets
  return registry.write(async ({ query }) => {
    const stored = await readSecrets(query)
    if (!stored && (await hasDataThatNeedsSecrets(query))) throw keysMissing()
    // The keys of an installation that used files until now stay valid.
    const secrets = stored ?? (usesDatabase ? readSecretsFile() : undefined) ?? newSecrets()
    requireMatch(secrets, await readFingerprint(query))
    if (usesDatabase || stored) return writeSecrets(query, secrets, !stored)
    const created = createSecretsFile(secrets)
    await writeFingerprint(query, created)
    return created
  })
}

const newSecrets = (): Secrets => ({ signingKey: generateToken(), vaultKey: generateToken() })

/** Nodes that share a database share its secrets, because a sign-in has to be valid on all of them. */
async function readSecrets(query: RunQuery): Promise<Secrets | undefined> {
  if (!usesDatabase) return readSecretsFile()
  const text = await readRow(query, 'keys')
  return text === undefined ? undefined : parseSecrets(text, KEYS_LOCATION)
}

async function writeSecrets(query: RunQuery, secrets: Secrets, changed = true): Promise<Secrets> {
  if (changed && usesDatabase) await writeRow(query, 'keys', JSON.stringify(secrets))
  else if (changed) replaceSecretsFile(secrets)
  await writeFingerprint(query, secrets)
  return secrets
}

/** Identifies the keys without revealing anything about them, because they are 256 random bits. */
type Fingerprint = { signingKey: string; vaultKey: string }

const fingerprintOf = (key: string) => sha256(`fingerprint ${key}`)

/** Returns the fingerprints of all keys of the vault, by which a backup tells whether its secrets can be decrypted here. */
export async function getKeyFingerprints(): Promise<string[]> {
  const { all } = await getVaultKeys()
  return [...all.values()].map(fingerprintOf)
}

async function readFingerprint(query: RunQuery): Promise<Fingerprint | undefined> {
  const text = await readRow(query, 'fingerprint')
  return text === undefined ? undefined : JSON.parse(text)
}

function writeFingerprint(query: RunQuery, { signingKey, vaultKey }: Secrets) {
  const fingerprint: Fingerprint = { signingKey: fingerprintOf(signingKey), vaultKey: fingerprintOf(vaultKey) }
  return writeRow(query, 'fingerprint', JSON.stringify(fingerprint))
}

/** An interrupted change of the vault key leaves the known key beside the new one. */
function isMatch(secrets: Secrets, fingerprint: Fingerprint): boolean {
  const vaultKeys = [...toVaultKeys(secrets).all.values()].map(fingerprintOf)
  return fingerprint.signingKey === fingerprintOf(secrets.signingKey) && vaultKeys.includes(fingerprint.vaultKey)
}

/** @throws ConfigError when no key matches */
function requireMatch(secrets: Secrets, fingerprint?: Fingerprint): Secrets {
  if (!fingerprint || isMatch(secrets, fingerprint)) return secrets
  throw new ConfigError(`${KEYS_LOCATION} has other keys than the data requires. Restore the matching keys.`)
}

async function hasDataThatNeedsSecrets(query: RunQuery): Promise<boolean> {
  const [row] = await query("select 1 from tenants union all select 1 from secrets where name = 'fingerprint' limit 1")
  return !!row
}

const keysMissing = () =>
  new ConfigError(
    `${KEYS_LOCATION} is missing, though there are data that need its keys. Restore it from a backup. ` +
      'If it cannot be restored, run "atoll vault new-keys" to create new keys.',
  )

function throwKeysUnavailable(cause: unknown): never {
  if (!(cause instanceof ConfigError)) throw cause
  const message = 'The encryption keys of this server cannot be read. The operator has to restore them.'
  throw new Problem(503, 'KEYS_UNAVAILABLE', message, { cause })
}

async function readRow(query: RunQuery, name: string): Promise<string | undefined> {
  const [[value] = []] = await query('select value from secrets where name = ?', [name])
  return value as string | undefined
}

const writeRow = (query: RunQuery, name: string, value: string) =>
  query('insert into secrets (name, value) values (?, ?) on conflict ("name") do update set value = excluded.value', [
    name,
    value,
  ])
