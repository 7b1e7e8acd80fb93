import { and, eq } from 'drizzle-orm'
import { hashed, same, secret } from '../core/secret'
import { isSecure } from '../tenancy/caller'
import { keyOf } from '../tenancy/secrets'
import type { Tenant } from '../tenancy/tenants'
import { COOKIES } from './cookies'
import { sessionKeys, sessions } from './tables'

const MAX_AGE = 400 * 86_400 // s; browsers keep no cookie for longer
const MAX_ACCOUNTS = 10 // of one browser
const SHAPE = /^([\w-]{43})((?:\.[\w-]{43}){1,10})$/

/** Tenants have no underscore in their names, so this is never the name of a session cookie. */
const nameOf = ({ tenant }: Pick<Tenant, 'tenant'>) => `${COOKIES}${tenant}_device`

/**
 * Names the device behind a request, if this account has signed in on it before: by its device cookie, or by a refresh token
 * of a session that goes on. Nobody else's wrong guesses lock it out.
 */
export async function findKnownDevice(
  request: Request,
  tenant: Tenant,
  account: string,
  refreshToken?: string,
): Promise<string | undefined> {
  const { id, proofs } = deviceOf(request, tenant)
  if (id) {
    const proof = await proofOf(tenant, id, account)
    if (proofs.some((one) => same(one, proof))) return id
  }
  if (refreshToken) return findSession(tenant, account, refreshToken)
}

/**
 * The Set-Cookie that makes a browser known for an account. It holds a random id and, for each of up to ten accounts that
 * signed in there, a MAC of both: so the server keeps nothing, and nobody can make one for an account that is not theirs.
 * (OWASP, "Slow Down Online Guessing Attacks with Device Cookies")
 */
export async function deviceCookie(request: Request, tenant: Tenant, account: string) {
  const { id = secret(), proofs } = deviceOf(request, tenant)
  const proof = await proofOf(tenant, id, account)
  const all = [proof, ...proofs.filter((one) => one !== proof)].slice(0, MAX_ACCOUNTS)
  const secure = isSecure(request) ? '; Secure' : ''
  return `${nameOf(tenant)}=${[id, ...all].join('.')}; Path=/; Max-Age=${MAX_AGE}; HttpOnly; SameSite=Lax${secure}`
}

/** What the device cookie says; of several with its name none counts. */
function deviceOf(request: Request, tenant: Tenant): { id?: string; proofs: string[] } {
  const start = `${nameOf(tenant)}=`
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  const [only, ...others] = pairs.filter((pair) => pair.startsWith(start))
  const [, id, proofs = ''] = (!others.length && only?.slice(start.length).match(SHAPE)) || []
  return { id, proofs: proofs.split('.').filter(Boolean) }
}

async function proofOf({ tenant }: Tenant, id: string, account: string) {
  const key = await keyOf(tenant, 'device-cookie')
  return new Bun.CryptoHasher('sha256', key).update(`${id}\n${account}`).digest('base64url')
}

async function findSession({ db }: Tenant, account: string, refreshToken: string) {
  const known = await db
    .select({ session: sessions._id })
    .from(sessionKeys)
    .innerJoin(sessions, eq(sessions._id, sessionKeys.session))
    .where(and(eq(sessionKeys.hash, hashed(refreshToken)), eq(sessions.user, account)))
    .get()
  return known?.session
}
