import { config } from '../config'
import { now } from '../core/clock'
import type { Db } from '../storage/port'
import { keyOf } from '../tenancy/secrets'
import type { Tenant } from '../tenancy/tenants'

/** What an access token vouches for: the user, the tenant, the session, and the user's version then. */
export type Claims = { sub: string; tid: string; sid: string; ver: number; exp: number }

const REMEMBERED = 10_000 // tokens of a tenant
const SKEW = 60 // s; the clocks of two nodes may differ

type Signer = Awaited<ReturnType<typeof signer>>
const signers = new WeakMap<Db, Promise<Signer>>()
const verified = new WeakMap<Db, Map<string, Claims>>()

/** A JWT (RFC 7519, HS256) for a session, good for `expiresIn` seconds. */
export async function issueAccess(tenant: Tenant, sid: string, user: { _id: string; version: number }) {
  const [expiresIn, time] = [config.ATOLL_ACCESS_TOKEN_TTL, Math.floor(now() / 1000)]
  const token = await (await signerOf(tenant)).sign({
    sub: user._id,
    tid: tenant.tenant,
    sid,
    ver: user.version,
    nbf: time - SKEW,
    exp: time + expiresIn,
    jti: Bun.randomUUIDv7(),
  })
  return { token, expiresIn }
}

/** The claims of a token that we signed for this tenant and that is good now, else undefined. */
export async function verifyAccess(tenant: Tenant, token: string): Promise<Claims | undefined> {
  const known = verifiedBy(tenant)
  const remembered = known.get(token)
  if (remembered) {
    if (remembered.exp * 1000 > now()) return remembered
    known.delete(token)
    return
  }
  const options = { algorithms: ['HS256'], currentDate: new Date(now()) }
  const payload = await (await signerOf(tenant)).verify(token, options)
  if (!payload || payload.tid !== tenant.tenant || typeof payload.exp !== 'number') return
  const claims = payload as unknown as Claims
  // Verifying takes 70 µs, remembering nothing.
  if (known.size >= REMEMBERED) known.delete(known.keys().next().value!)
  known.set(token, claims)
  return claims
}

// A start shall not wait for what the first token needs.
const signer = async (key: Uint8Array) => (await import('@elysiajs/jwt')).jwt({ secret: key, iat: false }).decorator.jwt

async function signerOf({ db, tenant }: Tenant): Promise<Signer> {
  const known = signers.get(db) ?? keyOf(tenant, 'access-token').then(signer)
  signers.set(db, known)
  known.catch(() => signers.delete(db))
  return known
}

function verifiedBy({ db }: Tenant) {
  const known = verified.get(db) ?? new Map<string, Claims>()
  verified.set(db, known)
  return known
}
