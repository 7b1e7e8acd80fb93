import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { now } from '../../core/clock'
import { decrypted, encrypted } from '../../core/encryption'
import { Problem } from '../../core/problem'
import { same } from '../../core/secret'
import { authorityOf } from '../../tenancy/caller'
import { keyOf } from '../../tenancy/secrets'
import type { Tenant } from '../../tenancy/tenants'
import { COOKIES, readCookie, writeCookie } from '../cookies'

const SECONDS = 600
const short = t.String({ minLength: 1, maxLength: 100 })

/** What a browser keeps while it is at a provider, so that nobody else can end what it began. */
const Journey = t.Object({
  provider: short,
  state: short,
  nonce: short,
  verifier: t.String({ minLength: 1, maxLength: 200 }),
  returnUrl: t.Optional(t.String({ maxLength: 2_000 })),
  /** What the website wants to get back. */
  passed: t.Optional(t.String({ maxLength: 500 })),
  /** Who is signed in already and wants to be known by the provider, too: a token of theirs. */
  link: t.Optional(short),
})
export type Journey = typeof Journey.static

/** The same with its end, in ms. */
const Sealed = t.Composite([Journey, t.Object({ expires: t.Number() })])

const nameOf = ({ tenant }: Tenant) => `${COOKIES}${tenant}_auth`

/** A Set-Cookie that comes along when the provider sends the browser back. Only we can make or read it. */
export async function packed(request: Request, tenant: Tenant, journey: Journey) {
  const text = JSON.stringify({ ...journey, expires: now() + SECONDS * 1000 })
  const sealed = encrypted(await keyOf(tenant.tenant, 'social-journey'), text, placeOf(request, tenant))
  return writeCookie(request, nameOf(tenant), sealed.toString('base64url'), SECONDS)
}

/** A Set-Cookie that ends it. */
export const unpacked = (request: Request, tenant: Tenant) => writeCookie(request, nameOf(tenant), '', 0)

/** A journey goes on at the host where it began. */
const placeOf = (request: Request, { tenant }: Tenant) => JSON.stringify([tenant, authorityOf(request)])

/** The journey that this browser is on with a provider. @throws 400 INVALID_STATE when it is another one, or none */
export async function journeyOf(
  request: Request,
  tenant: Tenant,
  provider: string,
  state: string | null,
): Promise<Journey> {
  const journey = await opened(request, tenant, readCookie(request, nameOf(tenant)))
  if (journey?.provider === provider && state && same(journey.state, state)) return journey
  throw stale()
}

export const stale = () =>
  new Problem(400, 'INVALID_STATE', 'The sign-in has expired or was started in another browser. Start again.')

async function opened(request: Request, tenant: Tenant, sealed = ''): Promise<Journey | undefined> {
  const key = await keyOf(tenant.tenant, 'social-journey')
  try {
    const journey: unknown = JSON.parse(decrypted(key, Buffer.from(sealed, 'base64url'), placeOf(request, tenant)))
    if (!Value.Check(Sealed, journey)) return
    const { expires, ...rest } = journey
    if (expires > now()) return rest
  } catch {
    // It is not ours.
  }
}
