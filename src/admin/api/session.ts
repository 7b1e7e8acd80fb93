import { observable } from './observable'

/** Whether a session has ended while somebody worked, so that they have to sign in again. */
export const signInRequest = observable<'none' | 'expired'>('none')

let signedInAgain: PromiseWithResolvers<void> | undefined

/** Asks for a sign-in over the current screen. Resolves when somebody has signed in. */
export function waitForSignIn(): Promise<void> {
  signedInAgain ??= Promise.withResolvers()
  signInRequest.set('expired')
  return signedInAgain.promise
}

/** Continues what waited for a sign-in. */
export function continueAfterSignIn() {
  signInRequest.set('none')
  signedInAgain?.resolve()
  signedInAgain = undefined
}

const TENANT_KEY = 'atoll-tenant'

/** Returns the tenant that requests name, because no host leads to it. */
export const getNamedTenant = (): string | undefined => sessionStorage.getItem(TENANT_KEY) ?? undefined

/** Where hosts lead to no tenant, as on a developer's machine, `?tenant=` of the first address names it. */
export function rememberNamedTenant() {
  const named = new URLSearchParams(location.search).get('tenant')
  if (named) nameTenant(named)
}

/** Names the tenant that this tab works with. */
export const nameTenant = (tenant: string) => sessionStorage.setItem(TENANT_KEY, tenant)

const IMPERSONATION_KEY = 'atoll-impersonation'

/** The user as whom an admin acts in this tab. */
export type Impersonation = { user: string; name: string; workspace?: string }

/** The user as whom requests of this tab are made, or undefined. */
export const impersonation = observable<Impersonation | undefined>(
  JSON.parse(sessionStorage.getItem(IMPERSONATION_KEY) ?? 'null') ?? undefined,
)
impersonation.subscribe(() => {
  const value = impersonation.get()
  if (value) sessionStorage.setItem(IMPERSONATION_KEY, JSON.stringify(value))
  else sessionStorage.removeItem(IMPERSONATION_KEY)
})

/** Begins to act as a user. The page starts anew, so that nothing which only the admin may see stays in it. */
export function startImpersonation(value: Impersonation) {
  sessionStorage.setItem(IMPERSONATION_KEY, JSON.stringify(value))
  location.assign('/admin/home')
}

/** Returns the headers that all requests have in common: the tenant, and the user as whom an admin acts. */
export function commonHeaders(): Record<string, string> {
  const tenant = getNamedTenant()
  const actingAs = impersonation.get()
  return {
    ...(tenant && { tenant }),
    ...(actingAs && { 'x-impersonate-user': actingAs.user }),
    ...(actingAs?.workspace && { 'x-impersonate-workspace': actingAs.workspace }),
  }
}
