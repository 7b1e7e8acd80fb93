import { DAY_MS, now } from '../core/clock'
import { hmac } from '../core/crypto'
import { openSecret, type SecretRef } from '../platform/vault/vault'
import type { Tenant } from '../tenancy/tenants'

/** How long (ms) the former secret signs beside the new one. */
export const SECRET_OVERLAP_MS = DAY_MS
const SECRET_PREFIX = 'whsec_'
const USER_TOKEN_TTL_SECONDS = 60 // s

/** Returns where the vault keeps the secret shared with a plugin, or the former one. */
export const toSecretRef = (plugin: string, name: 'secret' | 'former' = 'secret'): SecretRef => ({
  purpose: 'plugin',
  owner: plugin,
  name,
})

export const generateSecret = () =>
  SECRET_PREFIX + Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64')

/** Returns the secrets that sign messages to a plugin now, newest first. */
export async function readSecrets(tenant: Tenant, plugin: string, hasFormer: boolean): Promise<string[]> {
  const names = hasFormer ? (['secret', 'former'] as const) : (['secret'] as const)
  const secrets = await Promise.all(names.map((name) => openSecret(tenant, toSecretRef(plugin, name))))
  return secrets.filter((secret) => secret !== null)
}

const decodeKey = (secret: string) => Buffer.from(secret.slice(SECRET_PREFIX.length), 'base64')
const sign = (secret: string, text: string) => hmac('sha256', decodeKey(secret), text)

/** Returns the headers of a message, signed with each secret (https://www.standardwebhooks.com, 1.0.0). */
export function signWebhook(id: string, body: string, secrets: string[]) {
  const timestamp = `${Math.floor(now() / 1000)}`
  const signatures = secrets.map((secret) => `v1,${sign(secret, `${id}.${timestamp}.${body}`).toString('base64')}`)
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures.join(' ') }
}

/**
 * Returns claims as a JWT (RFC 7519) that only this plugin accepts, for 60 s. It is signed by HS256; the key is what
 * the secret encodes.
 */
export function signUserToken(plugin: string, secret: string, claims: Record<string, unknown>) {
  const iat = Math.floor(now() / 1000)
  const parts = [
    { alg: 'HS256', typ: 'JWT' },
    { iss: 'atoll', aud: plugin, iat, exp: iat + USER_TOKEN_TTL_SECONDS, ...claims },
  ]
  const signingInput = parts.map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signingInput}.${sign(secret, signingInput).toString('base64url')}`
}
