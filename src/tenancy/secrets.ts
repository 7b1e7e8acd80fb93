import { hkdfSync } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { secret } from '../core/secret'
import { registry } from './registry'

const file = join(config.ATOLL_TENANTS, 'secrets.json')

type Secrets = {
  signingKey: string
  vaultKey: string
  /** 1 unless told. */
  vaultKeyNumber?: number
  /** By number, as long as something may be encrypted with them. */
  formerVaultKeys?: Record<string, string>
}
let known: Promise<Secrets> | undefined

type Purpose =
  | 'access-token'
  | 'refresh-token'
  | 'social-journey'
  | 'changes'
  | 'cursor'
  | 'idempotency-fingerprint'
  | 'idempotency-answer'

/** A key of 32 bytes for one purpose of one tenant. Keys of others, and for other purposes, tell nothing about it. */
export async function keyOf(tenant: string, purpose: Purpose): Promise<Uint8Array> {
  known ??= config.ATOLL_DATABASE_URL ? shared() : Promise.resolve(ownFile())
  const { signingKey } = await known.catch((error) => {
    known = undefined
    throw error
  })
  return new Uint8Array(hkdfSync('sha256', config.ATOLL_SIGNING_KEY || signingKey, tenant, purpose, 32))
}

/** The keys that the vault's are derived from, by number. */
export type VaultKeys = { current: number; all: Map<number, string> }

/** As they are now: another process may have changed them, and who encrypts with one that is gone loses what it keeps. */
export async function vaultKeys(): Promise<VaultKeys> {
  if (!config.ATOLL_DATABASE_URL) return keysIn(ownFile())
  const [[value] = []] = await registry.db.ask('select value from secrets where name = ?', ['keys'])
  return keysIn(value === undefined ? await shared() : JSON.parse(value as string))
}

/** Whether what the files here keep encrypted is kept by other keys than those of the database. */
export const hasOwnKeys = async () => existsSync(file) && ownFile().vaultKey !== (await shared()).vaultKey

/** Begins to use a new key beside the old ones; or goes on with the one that was begun with. */
export const addVaultKey = () =>
  changeSecrets((before) => {
    if (before.formerVaultKeys) return before
    const { current } = keysIn(before)
    const former = { formerVaultKeys: { [current]: before.vaultKey } }
    return { ...before, vaultKey: secret(), vaultKeyNumber: current + 1, ...former }
  })

/** Forgets all keys before this one. */
export const forgetVaultKeys = (before: number) =>
  changeSecrets(({ formerVaultKeys = {}, ...secrets }) => {
    const left = Object.entries(formerVaultKeys).filter(([number]) => Number(number) >= before)
    return { ...secrets, ...(left.length && { formerVaultKeys: Object.fromEntries(left) }) }
  })

function keysIn({ vaultKey, vaultKeyNumber = 1, formerVaultKeys = {} }: Secrets): VaultKeys {
  const former = Object.entries(formerVaultKeys).map(([number, key]) => [Number(number), key] as const)
  return { current: vaultKeyNumber, all: new Map([...former, [vaultKeyNumber, vaultKey]]) }
}

/** A write of the registry keeps others from doing the same meanwhile, also where the secrets are a file. */
async function changeSecrets(change: (before: Secrets) => Secrets): Promise<VaultKeys> {
  if (config.ATOLL_DATABASE_URL) await shared() // makes them, where nothing needed any until now
  return registry.write(async (tx) => {
    if (!config.ATOLL_DATABASE_URL) return keysIn(replaceFile(change(ownFile())))
    const [[value] = []] = await tx.ask('select value from secrets where name = ?', ['keys'])
    const secrets = change(JSON.parse(value as string))
    await tx.ask('update secrets set value = ? where name = ?', [JSON.stringify(secrets), 'keys'])
    return keysIn(secrets)
  })
}

/** All of it or nothing, whenever the machine stops. */
function replaceFile(secrets: Secrets): Secrets {
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify(secrets, null, 2)}\n`, { mode: 0o600, flush: true })
  renameSync(draft, file)
  const folder = openSync(config.ATOLL_TENANTS, 'r')
  fsyncSync(folder)
  closeSync(folder)
  return secrets
}

/** Nodes that share a database share its secrets, or a sign-in would be good on one of them only. */
async function shared(): Promise<Secrets> {
  return registry.write(async (tx) => {
    // Those of an installation that was on files until now go on being good.
    const fresh = JSON.stringify(existsSync(file) ? ownFile() : { signingKey: secret(), vaultKey: secret() })
    await tx.ask('insert into secrets (name, value) values (?, ?) on conflict ("name") do nothing', ['keys', fresh])
    const [[value] = []] = await tx.ask('select value from secrets where name = ?', ['keys'])
    return JSON.parse(value as string) as Secrets
  })
}

/** Made at the first start. Whoever comes second finds those of the first, never half of them. */
function ownFile(): Secrets {
  const read = () => JSON.parse(readFileSync(file, 'utf8')) as Secrets
  try {
    return read()
  } catch (error) {
    if ((error as { code?: string }).code !== 'ENOENT') throw error
  }
  mkdirSync(config.ATOLL_TENANTS, { recursive: true, mode: 0o700 })
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${JSON.stringify({ signingKey: secret(), vaultKey: secret() }, null, 2)}\n`, { mode: 0o600 })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
  return read()
}
