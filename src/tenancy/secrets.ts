import { hkdfSync } from 'node:crypto'
import { existsSync, linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { secret } from '../core/secret'
import { registry } from './registry'

const file = join(config.ATOLL_TENANTS, 'secrets.json')

type Secrets = { signingKey: string; vaultKey: string }
let known: Promise<Secrets> | undefined

type Purpose = 'access-token' | 'cursor' | 'idempotency-fingerprint' | 'idempotency-answer'

/** A key of 32 bytes for one purpose of one tenant. Keys of others, and for other purposes, tell nothing about it. */
export async function keyOf(tenant: string, purpose: Purpose): Promise<Uint8Array> {
  known ??= config.ATOLL_DATABASE_URL ? shared() : Promise.resolve(ownFile())
  const { signingKey } = await known.catch((error) => {
    known = undefined
    throw error
  })
  return new Uint8Array(hkdfSync('sha256', config.ATOLL_SIGNING_KEY || signingKey, tenant, purpose, 32))
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
