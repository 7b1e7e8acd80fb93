import { hkdfSync } from 'node:crypto'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { generateToken, sha256 } from '../core/crypto'
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
  | 'idempotency-fingerprint'
  | 'idempotency-answer'

/** A key of 32 bytes for one purpose of one tenant. Keys of others, and for other purposes, tell nothing about it. */
export async function deriveKey(tenant: string, purpose: KeyPurpose): Promise<Uint8Array> {
  const { signingKey } = await getVerifiedSecrets().catch(throwKeysUnavailable)
  return new Uint8Array(hkdfSync('sha256', config.ATOLL_SIGNING_KEY || signingKey, tenant, purpose, 32))
}

/** The keys that the vault's are derived from, by number. */
export type VaultKeys = { current: number; all: Map<number, string> }

/** As they are now: another process may have changed them, and who encrypts with one that is gone loses what it keeps. */
export async function getVaultKeys(): Promise<VaultKeys> {
  await getVerifiedSecrets().catch(throwKeysUnavailable)
  const secrets = await readSecrets(registry.db.query).catch(throwKeysUnavailable)
  return toVaultKeys(secrets ?? throwKeysUnavailable(keysMissing()))
}

/**
 * Makes sure that the keys are those of the data; new ones are made where there is no tenant yet.
 * @throws ConfigError when they are missing, damaged or others
 */
export async function ensureSecrets(): Promise<void> {
  await getVerifiedSecrets()
}

/** What is wrong with the keys, for a person; undefined when nothing is. Makes none. */
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

/** Whether what the files here keep encrypted is kept by other keys than those of the database. */
export async function hasOtherFileKeys(): Promise<boolean> {
  const own = readSecretsFile()
  return !!own && own.vaultKey !== (await getVerifiedSecrets()).vaultKey
}

/** Begins to use a new key beside the old ones; or goes on with the one that was begun with. */
export const addVaultKey = () =>
  updateSecrets((before) => {
    if (before.formerVaultKeys) return before
    const { current } = toVaultKeys(before)
    const former = { formerVaultKeys: { [current]: before.vaultKey } }
    return { ...before, vaultKey: generateToken(), vaultKeyNumber: current + 1, ...former }
  })

/** Forgets all keys before this one. */
export const removeVaultKeysBefore = (before: number) =>
  updateSecrets(({ formerVaultKeys = {}, ...secrets }) => {
    const remaining = Object.entries(formerVaultKeys).filter(([number]) => Number(number) >= before)
    return { ...secrets, ...(remaining.length && { formerVaultKeys: Object.fromEntries(remaining) }) }
  })

/** Makes new keys in the place of those that are lost. Returns where what was left of those is now. */
export async function replaceLostSecrets(): Promise<{ aside?: string }> {
  // What is encrypted by the lost keys must not be taken for encrypted by these: they get a number of their own.
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

/** A write of the registry keeps others from doing the same meanwhile, also where the secrets are a file. */
async function updateSecrets(change: (before: Secrets) => Secrets): Promise<VaultKeys> {
  await getVerifiedSecrets()
  return registry.write(async (tx) => {
    const before = (await readSecrets(tx.query)) ?? throwKeysUnavailable(keysMissing())
    return toVaultKeys(await writeSecrets(tx.query, change(before)))
  })
}

/** The keys as they were when this process first needed them. */
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
      told: 'Other users of this machine could read the file. Its mode was changed to 0600.',
    })
  }
  const [secrets, fingerprint] = [await readSecrets(registry.db.query), await readFingerprint(registry.db.query)]
  if (secrets && fingerprint) return requireMatch(secrets, fingerprint)
  return registry.write(async ({ query }) => {
    const stored = await readSecrets(query)
    if (!stored && (await hasDataThatNeedsSecrets(query))) throw keysMissing()
    // Those of an installation that was on files until now go on being good.
    const secrets = stored ?? (usesDatabase ? readSecretsFile() : undefined) ?? newSecrets()
    requireMatch(secrets, await readFingerprint(query))
    if (usesDatabase || stored) return writeSecrets(query, secrets, !stored)
    const created = createSecretsFile(secrets)
    await writeFingerprint(query, created)
    return created
  })
}

const newSecrets = (): Secrets => ({ signingKey: generateToken(), vaultKey: generateToken() })

/** Nodes that share a database share its secrets, or a sign-in would be good on one of them only. */
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

/** By it we know the keys again, but nobody learns anything about them: they are 256 random bits. */
type Fingerprint = { signingKey: string; vaultKey: string }

const fingerprintOf = (key: string) => sha256(`fingerprint ${key}`)

async function readFingerprint(query: RunQuery): Promise<Fingerprint | undefined> {
  const text = await readRow(query, 'fingerprint')
  return text === undefined ? undefined : JSON.parse(text)
}

function writeFingerprint(query: RunQuery, { signingKey, vaultKey }: Secrets) {
  const fingerprint: Fingerprint = { signingKey: fingerprintOf(signingKey), vaultKey: fingerprintOf(vaultKey) }
  return writeRow(query, 'fingerprint', JSON.stringify(fingerprint))
}

/** Whoever was stopped while changing the vault's key has the one that was known beside the new one. @throws ConfigError */
function requireMatch(secrets: Secrets, fingerprint?: Fingerprint): Secrets {
  const vaultKeys = [...toVaultKeys(secrets).all.values()].map(fingerprintOf)
  const isMatch =
    fingerprint?.signingKey === fingerprintOf(secrets.signingKey) && vaultKeys.includes(fingerprint.vaultKey)
  if (!fingerprint || isMatch) return secrets
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
