import { and, eq } from 'drizzle-orm'
import { generateToken, isTimingSafeEqual, sha256 } from '../core/crypto'
import { deriveKey } from '../tenancy/installation-keys'
import type { Tenant } from '../tenancy/tenants'
import { COOKIE_PREFIX, readCookie, serializeCookie } from './cookies'
import { sessionKeys, sessions } from './tables'

const DEVICE_COOKIE_MAX_AGE_S = 400 * 86_400 // s; browsers keep no cookie longer
const MAX_ACCOUNTS_PER_DEVICE = 10
const DEVICE_COOKIE_PATTERN = /^([\w-]{43})((?:\.[\w-]{43}){1,10})$/

/** Names of tenants contain no underscore, so this is never the name of a session cookie. */
const toDeviceCookieName = ({ tenant }: Pick<Tenant, 'tenant'>) => `${COOKIE_PREFIX}${tenant}_device`

/**
 * Returns an id of the device of a request if the account has signed in on it before, which its device cookie or a
 * refresh token of a current session proves. Wrong guesses of other devices do not lock this device out.
 */
export async function findKnownDevice(
  request: Request,
  tenant: Tenant,
  account: string,
  refreshToken?: string,
): Promise<string | undefined> {
  const { id, proofs } = readDeviceCookie(request, tenant)
  if (id) {
    const proof = await computeProof(tenant, id, account)
    if (proofs.some((one) => isTimingSafeEqual(one, proof))) return id
  }
  if (refreshToken) return findSessionByRefreshToken(tenant, account, refreshToken)
}

/**
 * Returns the Set-Cookie header that makes a browser a known device of an account. The cookie holds a random id and,
 * for each of up to ten accounts that signed in there, a MAC of the id and the account. So the server stores nothing,
 * and nobody can forge a cookie for the account of another user.
 * (OWASP, "Slow Down Online Guessing Attacks with Device Cookies")
 */
export async function issueDeviceCookie(request: Request, tenant: Tenant, account: string) {
  const { id = generateToken(), proofs } = readDeviceCookie(request, tenant)
  const proof = await computeProof(tenant, id, account)
  const accountProofs = [proof, ...proofs.filter((one) => one !== proof)].slice(0, MAX_ACCOUNTS_PER_DEVICE)
  const value = [id, ...accountProofs].join('.')
  return serializeCookie(request, toDeviceCookieName(tenant), value, DEVICE_COOKIE_MAX_AGE_S)
}

/** Returns the id and the proofs of the device cookie. If several cookies have its name, all are ignored. */
function readDeviceCookie(request: Request, tenant: Tenant): { id?: string; proofs: string[] } {
  const cookie = readCookie(request, toDeviceCookieName(tenant))
  const [, id, proofs = ''] = cookie?.match(DEVICE_COOKIE_PATTERN) ?? []
  return { id, proofs: proofs.split('.').filter(Boolean) }
}

async function computeProof({ tenant }: Tenant, id: string, account: string) {
  const key = await deriveKey(tenant, 'device-cookie')
  return new Bun.CryptoHasher('sha256', key).update(`${id}\n${account}`).digest('base64url')
}

async function findSessionByRefreshToken({ db }: Tenant, account: string, refreshToken: string) {
  const row = await db
    .select({ session: sessions._id })
    .from(sessionKeys)
    .innerJoin(sessions, eq(sessions._id, sessionKeys.session))
    .where(and(eq(sessionKeys.hash, sha256(refreshToken)), eq(sessions.user, account)))
    .get()
  return row?.session
}
