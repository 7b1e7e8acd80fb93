import { hkdfSync } from 'node:crypto'
import { config } from '../config'
import { ConfigError } from '../core/config-error'
import { report } from '../core/log'
import { Problem } from '../core/problem'
import { hashed, secret } from '../core/secret'
import type { Ask } from '../storage/port'
import { registry } from './registry'
import {
  closeSecretsFile,
  createSecretsFile,
  isSecretsFileOpen,
  parseSecrets,
  readSecretsFile,
  replaceSecretsFile,
  type Secrets,
  secretsFile,
  setSecretsFileAside,
} from './secrets-file'

const inDatabase = !!config.ATOLL_DATABASE_URL
const PLACE = inDatabase ? 'The row "keys" of the table atoll_registry.secrets' : secretsFile

let known: Promise<Secrets> | undefined

type Purpose =
  | 'access-token'
  | 'changes'
  | 'cursor'
  | 'device-cookie'
  | 'idempotency-fingerprint'
  | 'idempotency-answer'

/** A key of 32 bytes for one purpose of one tenant. Keys of others, and for other purposes, tell nothing about it. */
export async function keyOf(tenant: string, purpose: Purpose): Promise<Uint8Array> {
  const { signingKey } = await verified().catch(unavailable)
  return new Uint8Array(hkdfSync('sha256', config.ATOLL_SIGNING_KEY || signingKey, tenant, purpose, 32))
}

/** The keys that the vault's are derived from, by number. */
export type VaultKeys = { current: number; all: Map<number, string> }

/** As they are now: another process may have changed them, and who encrypts with one that is gone loses what it keeps. */
export async function vaultKeys(): Promise<VaultKeys> {
  await verified().catch(unavailable)
  const secrets = await readSecrets(registry.db.ask).catch(unavailable)
  return vaultKeysOf(secrets ?? unavailable(lost()))
}

/**
 * Makes sure that the keys are those of the data; new ones are made where there is no tenant yet.
 * @throws ConfigError when they are missing, damaged or others
 */
export async function requireSecrets(): Promise<void> {
  await verified()
}

/** What is wrong with the keys, for a person; undefined when nothing is. Makes none. */
export async function secretsFlaw(): Promise<string | undefined> {
  try {
    const secrets = await readSecrets(registry.db.ask)
    if (!secrets) return (await needsSecrets(registry.db.ask)) ? lost().message : undefined
    requireMatch(secrets, await readFingerprint(registry.db.ask))
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/** Whether what the files here keep encrypted is kept by other keys than those of the database. */
export async function hasOwnKeys(): Promise<boolean> {
  const own = readSecretsFile()
  return !!own && own.vaultKey !== (await verified()).vaultKey
}

/** Begins to use a new key beside the old ones; or goes on with the one that was begun with. */
export const addVaultKey = () =>
  changeSecrets((before) => {
    if (before.formerVaultKeys) return before
    const { current } = vaultKeysOf(before)
    const former = { formerVaultKeys: { [current]: before.vaultKey } }
    return { ...before, vaultKey: secret(), vaultKeyNumber: current + 1, ...former }
  })

/** Forgets all keys before this one. */
export const forgetVaultKeys = (before: number) =>
  changeSecrets(({ formerVaultKeys = {}, ...secrets }) => {
    const left = Object.entries(formerVaultKeys).filter(([number]) => Number(number) >= before)
    return { ...secrets, ...(left.length && { formerVaultKeys: Object.fromEntries(left) }) }
  })

/** Makes new keys in the place of those that are lost. Returns where what was left of those is now. */
export async function renewSecrets(): Promise<{ aside?: string }> {
  // What is encrypted by the lost keys must not be taken for encrypted by these: they get a number of their own.
  const fresh = { ...newSecrets(), vaultKeyNumber: Math.floor(Date.now() / 1_000) }
  return registry.write(async (tx) => {
    const aside = inDatabase ? undefined : setSecretsFileAside()
    await writeSecrets(tx.ask, fresh)
    return { ...(aside && { aside }) }
  })
}

function vaultKeysOf({ vaultKey, vaultKeyNumber = 1, formerVaultKeys = {} }: Secrets): VaultKeys {
  const former = Object.entries(formerVaultKeys).map(([number, key]) => [Number(number), key] as const)
  return { current: vaultKeyNumber, all: new Map([...former, [vaultKeyNumber, vaultKey]]) }
}

/** A write of the registry keeps others from doing the same meanwhile, also where the secrets are a file. */
async function changeSecrets(change: (before: Secrets) => Secrets): Promise<VaultKeys> {
  await verified()
  return registry.write(async (tx) => {
    const before = (await readSecrets(tx.ask)) ?? unavailable(lost())
    return vaultKeysOf(await writeSecrets(tx.ask, change(before)))
  })
}

/** The keys as they were when this process first needed them. */
function verified(): Promise<Secrets> {
  known ??= verify().catch((error) => {
    known = undefined
    throw error
  })
  return known
}

async function verify(): Promise<Secrets> {
  if (!inDatabase && isSecretsFileOpen()) {
    closeSecretsFile()
    report('SECRETS_FILE_WAS_OPEN', { file: secretsFile, told: 'Others could read it. Now only its owner can.' })
  }
  const [secrets, fingerprint] = [await readSecrets(registry.db.ask), await readFingerprint(registry.db.ask)]
  if (secrets && fingerprint) return requireMatch(secrets, fingerprint)
  return registry.write(async ({ ask }) => {
    const found = await readSecrets(ask)
    if (!found && (await needsSecrets(ask))) throw lost()
    // Those of an installation that was on files until now go on being good.
    const secrets = found ?? (inDatabase ? readSecretsFile() : undefined) ?? newSecrets()
    requireMatch(secrets, await readFingerprint(ask))
    if (inDatabase || found) return writeSecrets(ask, secrets, !found)
    const made = createSecretsFile(secrets)
    await writeFingerprint(ask, made)
    return made
  })
}

const newSecrets = (): Secrets => ({ signingKey: secret(), vaultKey: secret() })

/** Nodes that share a database share its secrets, or a sign-in would be good on one of them only. */
async function readSecrets(ask: Ask): Promise<Secrets | undefined> {
  if (!inDatabase) return readSecretsFile()
  const text = await readRow(ask, 'keys')
  return text === undefined ? undefined : parseSecrets(text, PLACE)
}

async function writeSecrets(ask: Ask, secrets: Secrets, changed = true): Promise<Secrets> {
  if (changed && inDatabase) await writeRow(ask, 'keys', JSON.stringify(secrets))
  else if (changed) replaceSecretsFile(secrets)
  await writeFingerprint(ask, secrets)
  return secrets
}

/** By it we know the keys again, but nobody learns anything about them: they are 256 random bits. */
type Fingerprint = { signingKey: string; vaultKey: string }

const fingerprintOf = (key: string) => hashed(`fingerprint ${key}`)

async function readFingerprint(ask: Ask): Promise<Fingerprint | undefined> {
  const text = await readRow(ask, 'fingerprint')
  return text === undefined ? undefined : JSON.parse(text)
}

function writeFingerprint(ask: Ask, { signingKey, vaultKey }: Secrets) {
  const fingerprint: Fingerprint = { signingKey: fingerprintOf(signingKey), vaultKey: fingerprintOf(vaultKey) }
  return writeRow(ask, 'fingerprint', JSON.stringify(fingerprint))
}

/** Whoever was stopped while changing the vault's key has the one that was known beside the new one. @throws ConfigError */
function requireMatch(secrets: Secrets, fingerprint?: Fingerprint): Secrets {
  const vaultKeys = [...vaultKeysOf(secrets).all.values()].map(fingerprintOf)
  const same = fingerprint?.signingKey === fingerprintOf(secrets.signingKey) && vaultKeys.includes(fingerprint.vaultKey)
  if (!fingerprint || same) return secrets
  throw new ConfigError(`${PLACE} has other keys than those that the data here needs. Restore the right one.`)
}

async function needsSecrets(ask: Ask): Promise<boolean> {
  const [found] = await ask("select 1 from tenants union all select 1 from secrets where name = 'fingerprint' limit 1")
  return !!found
}

const lost = () =>
  new ConfigError(
    `${PLACE} is missing, though there are data that need its keys. Restore it from a backup. ` +
      'If it is lost for good, "atoll vault new-keys" makes new ones.',
  )

function unavailable(cause: unknown): never {
  if (!(cause instanceof ConfigError)) throw cause
  const message = 'The keys of this server cannot be read. Its operator has to restore them.'
  throw new Problem(503, 'KEYS_UNAVAILABLE', message, { cause })
}

async function readRow(ask: Ask, name: string): Promise<string | undefined> {
  const [[value] = []] = await ask('select value from secrets where name = ?', [name])
  return value as string | undefined
}

const writeRow = (ask: Ask, name: string, value: string) =>
  ask('insert into secrets (name, value) values (?, ?) on conflict ("name") do update set value = excluded.value', [
    name,
    value,
  ])
