import { createHmac, randomBytes } from 'node:crypto'
import { open, type Place } from '../accounts/vault/vault'
import { DAY, now } from '../core/clock'
import type { Tenant } from '../tenancy/tenants'

/** How long a secret of before goes on signing beside the new one. */
export const OVERLAP = DAY
const PREFIX = 'whsec_'
const TOKEN = 60 // s that a caller's identity is good for

/** Where the vault has the secret that a plugin shares with us, and the one before it. */
export const secretOf = (plugin: string, name: 'secret' | 'former' = 'secret'): Place => ({
  purpose: 'plugin',
  owner: plugin,
  name,
})

export const newSecret = () => PREFIX + randomBytes(32).toString('base64')

/** The secrets by which a plugin is told things now, the newest first. */
export async function openSecrets(tenant: Tenant, plugin: string, former: boolean): Promise<string[]> {
  const names = former ? (['secret', 'former'] as const) : (['secret'] as const)
  const opened = await Promise.all(names.map((name) => open(tenant, secretOf(plugin, name))))
  return opened.filter((one) => one !== null)
}

const keyIn = (secret: string) => Buffer.from(secret.slice(PREFIX.length), 'base64')
const hmac = (secret: string, text: string) => createHmac('sha256', keyIn(secret)).update(text)

/** The headers of a message, signed by each of the secrets (https://www.standardwebhooks.com, 1.0.0). */
export function signed(id: string, body: string, secrets: string[]) {
  const timestamp = `${Math.floor(now() / 1000)}`
  const signatures = secrets.map((secret) => `v1,${hmac(secret, `${id}.${timestamp}.${body}`).digest('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/** Claims that only this plugin takes, for a minute: a JWT (RFC 7519) by HS256, whose key is what its secret encodes. */
export function tokenFor(plugin: string, secret: string, claims: Record<string, unknown>) {
  const iat = Math.floor(now() / 1000)
  const parts = [
    { alg: 'HS256', typ: 'JWT' },
    { iss: 'atoll', aud: plugin, iat, exp: iat + TOKEN, ...claims },
  ]
  const text = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${text}.${hmac(secret, text).digest('base64url')}`
}
