import { Value } from '@sinclair/typebox/value'
import { t } from 'elysia'
import { now } from '../../core/clock'
import { isTimingSafeEqual } from '../../core/crypto'
import { decrypt, encrypt } from '../../core/encryption'
import { Problem } from '../../core/problem'
import { requestAuthority } from '../../tenancy/client-connection'
import { deriveKey } from '../../tenancy/installation-keys'
import type { Tenant } from '../../tenancy/tenants'
import { COOKIE_PREFIX, readCookie, serializeCookie } from '../cookies'

const FLOW_TTL_S = 600
const shortText = t.String({ minLength: 1, maxLength: 100 })

/** The state that a browser keeps while it is at a provider, so that no other browser can complete the flow. */
const FlowState = t.Object({
  provider: shortText,
  state: shortText,
  nonce: shortText,
  verifier: t.String({ minLength: 1, maxLength: 200 }),
  returnUrl: t.Optional(t.String({ maxLength: 2_000 })),
  /** The `state` of the website, which it gets back. */
  passed: t.Optional(t.String({ maxLength: 500 })),
  /** The one-time token of a signed-in user who links an identity. */
  link: t.Optional(shortText),
})
export type FlowState = typeof FlowState.static

/** The state of a flow with its expiry, in ms. */
const StoredFlowState = t.Composite([FlowState, t.Object({ expires: t.Number() })])

const toFlowCookieName = ({ tenant }: Tenant) => `${COOKIE_PREFIX}${tenant}_auth`

/** Returns the Set-Cookie header of a flow. The cookie is encrypted: only this installation can make or read it. */
export async function serializeFlowCookie(request: Request, tenant: Tenant, flow: FlowState) {
  const text = JSON.stringify({ ...flow, expires: now() + FLOW_TTL_S * 1000 })
  const sealed = encrypt(await deriveKey(tenant.tenant, 'social-journey'), text, toAad(request, tenant))
  return serializeCookie(request, toFlowCookieName(tenant), sealed.toString('base64url'), FLOW_TTL_S)
}

/** Returns the Set-Cookie header that removes the cookie of a flow. */
export const serializeExpiredFlowCookie = (request: Request, tenant: Tenant) =>
  serializeCookie(request, toFlowCookieName(tenant), '', 0)

/** Binds a flow to the host where it began. */
const toAad = (request: Request, { tenant }: Tenant) => JSON.stringify([tenant, requestAuthority(request)])

/**
 * Returns the flow of this browser with a provider.
 * @throws 400 INVALID_STATE when it has none or another one
 */
export async function requireFlowState(
  request: Request,
  tenant: Tenant,
  provider: string,
  state: string | null,
): Promise<FlowState> {
  const flow = await decryptFlowState(request, tenant, readCookie(request, toFlowCookieName(tenant)))
  if (flow?.provider === provider && state && isTimingSafeEqual(flow.state, state)) return flow
  throw invalidState()
}

/** Returns the 400 INVALID_STATE for a flow that this browser has not begun, or that has expired. */
export const invalidState = () =>
  new Problem(400, 'INVALID_STATE', 'The sign-in has expired or was started in another browser. Start again.')

async function decryptFlowState(request: Request, tenant: Tenant, sealed = ''): Promise<FlowState | undefined> {
  const key = await deriveKey(tenant.tenant, 'social-journey')
  try {
    const flow: unknown = JSON.parse(decrypt(key, Buffer.from(sealed, 'base64url'), toAad(request, tenant)))
    if (!Value.Check(StoredFlowState, flow)) return
    const { expires, ...rest } = flow
    if (expires > now()) return rest
  } catch {
    // The cookie was not made by this installation.
  }
}
