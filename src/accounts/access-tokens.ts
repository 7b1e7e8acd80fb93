import { config } from '../config'
import type { Awaitable } from '../core/awaitable'
import { BoundedMap } from '../core/bounded-map'
import { now } from '../core/clock'
import type { Db } from '../storage/port'
import { deriveKey } from '../tenancy/installation-keys'
import type { Tenant } from '../tenancy/tenants'

/**
 * The claims of an access token: the user, the tenant, the session, the version of the user when it was issued, and its
 * expiry (s).
 */
export type AccessTokenClaims = { sub: string; tid: string; sid: string; ver: number; exp: number }

const MAX_CACHED_TOKENS = 10_000 // per tenant
const CLOCK_SKEW_S = 60 // s by which the clocks of two nodes may differ

type Signer = Awaited<ReturnType<typeof createSigner>>
const signersByDb = new WeakMap<Db, Promise<Signer>>()
const verifiedTokensByDb = new WeakMap<Db, BoundedMap<string, AccessTokenClaims>>()

/** Issues a JWT (RFC 7519, HS256) for a session. Returns it with its lifetime `expiresIn` in seconds. */
export async function issueAccessToken(tenant: Tenant, sid: string, user: { _id: string; version: number }) {
  const [expiresIn, time] = [config.ATOLL_ACCESS_TOKEN_TTL, Math.floor(now() / 1000)]
  const token = await (await getSigner(tenant)).sign({
    sub: user._id,
    tid: tenant.tenant,
    sid,
    ver: user.version,
    nbf: time - CLOCK_SKEW_S,
    exp: time + expiresIn,
    jti: Bun.randomUUIDv7(),
  })
  return { token, expiresIn }
}

/**
 * Returns the claims of a token that this installation signed for the tenant and that is still valid, otherwise
 * undefined; without a promise when it was verified before.
 */
export function verifyAccessToken(tenant: Tenant, token: string): Awaitable<AccessTokenClaims | undefined> {
  const verifiedTokens = getVerifiedTokens(tenant)
  const verifiedClaims = verifiedTokens.get(token)
  if (!verifiedClaims) return verifySignature(tenant, token)
  if (verifiedClaims.exp * 1000 > now()) return verifiedClaims
  verifiedTokens.delete(token)
}

async function verifySignature(tenant: Tenant, token: string): Promise<AccessTokenClaims | undefined> {
  const options = { algorithms: ['HS256'], currentDate: new Date(now()) }
  const payload = await (await getSigner(tenant)).verify(token, options)
  if (!payload || payload.tid !== tenant.tenant) return
  const { sub, sid, ver, exp } = payload
  if (typeof sub !== 'string' || typeof sid !== 'string' || typeof ver !== 'number' || typeof exp !== 'number') return
  const claims = { sub, tid: tenant.tenant, sid, ver, exp }
  // Verifying a token takes 70 µs, so verified tokens are cached.
  getVerifiedTokens(tenant).set(token, claims)
  return claims
}

// The library is loaded with the first token, because it would delay the start of the server.
const createSigner = async (key: Uint8Array) =>
  (await import('@elysiajs/jwt')).jwt({ secret: key, iat: false }).decorator.jwt

async function getSigner({ db, tenant }: Tenant): Promise<Signer> {
  const signer = signersByDb.get(db) ?? deriveKey(tenant, 'access-token').then(createSigner)
  signersByDb.set(db, signer)
  signer.catch(() => signersByDb.delete(db))
  return signer
}

function getVerifiedTokens({ db }: Tenant) {
  const tokens = verifiedTokensByDb.get(db) ?? new BoundedMap<string, AccessTokenClaims>(MAX_CACHED_TOKENS)
  verifiedTokensByDb.set(db, tokens)
  return tokens
}
