import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { Problem } from '../../core/problem'
import { same } from '../../core/secret'
import { isSecure } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'

const MINUTES = 10
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

const nameOf = ({ tenant }: Tenant) => `atoll_${tenant}_auth`

/** A Set-Cookie that comes along when the provider sends the browser back. */
export const packed = (request: Request, tenant: Tenant, journey: Journey) =>
  cookie(request, tenant, Buffer.from(JSON.stringify(journey)).toString('base64url'), MINUTES * 60)

/** A Set-Cookie that ends it. */
export const unpacked = (request: Request, tenant: Tenant) => cookie(request, tenant, '', 0)

function cookie(request: Request, tenant: Tenant, value: string, seconds: number) {
  const secure = isSecure(request) ? '; Secure' : ''
  return `${nameOf(tenant)}=${value}; Path=/api; Max-Age=${seconds}; HttpOnly; SameSite=Lax${secure}`
}

/** The journey that this browser is on with a provider. @throws 400 INVALID_STATE when it is another one, or none */
export function journeyOf(request: Request, tenant: Tenant, provider: string, state: string | null): Journey {
  const pairs = (request.headers.get('cookie') ?? '').split(';').map((pair) => pair.trim())
  const start = `${nameOf(tenant)}=`
  const journey = parsed(pairs.find((pair) => pair.startsWith(start))?.slice(start.length))
  if (journey?.provider === provider && state && same(journey.state, state)) return journey
  throw stale()
}

export const stale = () =>
  new Problem(400, 'INVALID_STATE', 'This sign-in was not begun in this browser, or long ago. Begin anew.')

function parsed(text = ''): Journey | undefined {
  try {
    const journey: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (Value.Check(Journey, journey)) return journey
  } catch {
    // It is not ours.
  }
}
