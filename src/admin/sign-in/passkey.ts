import { api, fetchData } from '../api/client'

/** Passkeys belong to a host with a name, so a page at an IP address cannot use them. */
const IP_ADDRESS = /^[\d.]+$|^\[/

/** Returns why this browser or this address of the page cannot use passkeys, or undefined where they can be used. */
export function findPasskeyObstacle(): string | undefined {
  if (!window.isSecureContext) return 'Passkeys are not available here, because they need HTTPS.'
  if (IP_ADDRESS.test(location.hostname))
    return 'Passkeys are not available here, because they need a host name instead of an IP address.'
  if (typeof window.PublicKeyCredential !== 'function') return 'This browser does not support passkeys.'
}

/** Returns whether this browser and this address of the page can use passkeys. */
export const isPasskeyUsable = () => findPasskeyObstacle() === undefined

const loadWebAuthn = () => import('@simplewebauthn/browser')

/** Returns whether the browser offers passkeys while somebody fills in a username. */
export const isAutofillUsable = async () =>
  isPasskeyUsable() && (await (await loadWebAuthn()).browserSupportsWebAuthnAutofill())

/** The user closed the dialog of the browser, or another request replaced it. */
class PasskeyCancelled extends Error {
  constructor() {
    super('The browser did not get a passkey. Try again, or sign in another way.')
  }
}

function rethrowCancelled(error: unknown): never {
  const name = error instanceof Error ? error.name : ''
  throw name === 'NotAllowedError' || name === 'AbortError' ? new PasskeyCancelled() : error
}

/** `challenge`: of a sign-in by password that the passkey completes. `isAutofill`: offered in the username's input. */
type PasskeySignInOptions = { challenge?: string; isAutofill?: boolean }

/** Signs in with a passkey. @throws ApiProblem, PasskeyCancelled */
export async function signInByPasskey({ challenge, isAutofill = false }: PasskeySignInOptions = {}) {
  const { startAuthentication } = await loadWebAuthn()
  const body = challenge ? { challenge } : {}
  const options = await fetchData(api.POST('/api/signin/passkey/options', { body }))
  const optionsJSON = options as Parameters<typeof startAuthentication>[0]['optionsJSON']
  const credential = await startAuthentication({ optionsJSON, useBrowserAutofill: isAutofill }).catch(rethrowCancelled)
  return fetchData(api.POST('/api/signin/passkey', { body: { ...body, credential: credential as never } }))
}

/** Creates a passkey in this browser from the options of the server. @throws PasskeyCancelled */
export async function createPasskey(options: unknown) {
  const { startRegistration } = await loadWebAuthn()
  const optionsJSON = options as Parameters<typeof startRegistration>[0]['optionsJSON']
  return startRegistration({ optionsJSON }).catch(rethrowCancelled)
}
