import { hkdfSync } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { config } from '../config'
import { secret } from '../core/secret'

type Secrets = { signingKey: string; vaultKey: string }
let known: Secrets | undefined

/** A key of 32 bytes for one purpose of one tenant. Keys of others, and for other purposes, tell nothing about it. */
export function keyOf(tenant: string, purpose: 'access-token'): Uint8Array {
  known ??= stored()
  const master = config.ATOLL_SIGNING_KEY || known.signingKey
  return new Uint8Array(hkdfSync('sha256', master, tenant, purpose, 32))
}

/** Made at the first start. Whoever comes second finds those of the first, never half of them. */
function stored(): Secrets {
  const file = join(config.ATOLL_TENANTS, 'secrets.json')
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
