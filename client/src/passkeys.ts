import { type Proof, type SignInInit, startSession } from './accounts'
import { type PasskeyCredential, platform } from './platform'
import { type Init, type Transport, toSegment } from './transport'

export type AtollPasskey = {
  _id: string
  name: string
  host: string
  transports: string[]
  backedUp: boolean
  created: string
  lastUsedAt: string | null
}

/** Passkeys of the signed-in user. Browsers create and use them on pages with a host name, by HTTPS or on `localhost`. */
export function createPasskeys(transport: Transport) {
  const { get, post, put, remove, request } = transport
  return {
    /**
     * The user's passkeys.
     * @example
     * for (const passkey of await client.passkeys.list()) console.log(passkey.name, passkey.lastUsedAt)
     */
    list: (init: Init = {}) => get<AtollPasskey[]>('/api/me/passkeys', {}, init),
    /**
     * Creates a passkey in this browser, which asks the user.
     * @example
     * const passkey = await client.passkeys.register({ name: 'Laptop', currentPassword: password })
     */
    register: async ({ name, ...proof }: { name?: string } & Proof = {}, init: Init = {}): Promise<AtollPasskey> => {
      const options = await post<CreationOptions>('/api/me/passkeys/options', proof, init)
      const publicKey = {
        ...options,
        challenge: fromBase64(options.challenge),
        user: { ...options.user, id: fromBase64(options.user.id) },
        excludeCredentials: options.excludeCredentials?.map(withBinaryId),
      }
      const credential = await askAuthenticator('create', { publicKey, ...signalOf(init) })
      return post<AtollPasskey>('/api/me/passkeys', { ...(name && { name }), credential }, init)
    },
    /**
     * Signs in with a passkey. With `isAutofill` the browser offers it while somebody fills in a username.
     * @example
     * await client.passkeys.register({ currentPassword: password })
     * await client.signOut()
     * const { user } = await client.passkeys.signIn()
     */
    signIn: async (
      { isAutofill, ...input }: { workspace?: string; challenge?: string; isAutofill?: boolean } = {},
      init: SignInInit = {},
    ) => {
      const start = input.challenge ? { challenge: input.challenge } : {}
      const { signal, headers } = init
      const call = { ...(signal && { signal }), ...(headers && { headers }), json: start, isOpen: true }
      const options = await request<RequestOptions>('POST', '/api/signin/passkey/options', call)
      const publicKey = {
        ...options,
        challenge: fromBase64(options.challenge),
        allowCredentials: options.allowCredentials?.map(withBinaryId),
      }
      const mediation = isAutofill ? { mediation: 'conditional' } : {}
      const credential = await askAuthenticator('get', { publicKey, ...mediation, ...signalOf(init) })
      return startSession(transport, '/api/signin/passkey', { ...input, credential }, init)
    },
    /**
     * Renames a passkey.
     * @example
     * const passkey = await client.passkeys.register({ currentPassword: password })
     * await client.passkeys.rename(passkey._id, 'Phone')
     */
    rename: (id: string, name: string, init: Init = {}) =>
      put<AtollPasskey>(`/api/me/passkeys/${toSegment(id)}`, { name }, init),
    /**
     * Removes a passkey from the account.
     * @example
     * for (const passkey of await client.passkeys.list()) await client.passkeys.remove(passkey._id)
     */
    remove: (id: string, init: Init = {}) => remove(`/api/me/passkeys/${toSegment(id)}`, init),
  }
}

type CredentialId = { id: string }
type CreationOptions = { challenge: string; user: { id: string }; excludeCredentials?: CredentialId[] }
type RequestOptions = { challenge: string; allowCredentials?: CredentialId[] }

const signalOf = ({ signal }: Init) => (signal ? { signal } : {})
const withBinaryId = (credential: CredentialId) => ({ ...credential, id: fromBase64(credential.id) })

async function askAuthenticator(method: 'create' | 'get', options: object) {
  const credential = await platform.navigator?.credentials?.[method](options)
  if (!credential) throw new TypeError('Passkeys need a browser, and a page with a host name.')
  return toWire(credential)
}

/** Returns a credential as the server reads it (WebAuthn, "toJSON"). */
function toWire({ id, rawId, response }: PasskeyCredential) {
  const { clientDataJSON, attestationObject, authenticatorData, signature, userHandle } = response
  const parts = { clientDataJSON, attestationObject, authenticatorData, signature, userHandle }
  const texts = Object.entries(parts).flatMap(([name, part]) => (part ? [[name, toBase64(part)]] : []))
  const transports = response.getTransports?.()
  return {
    ...{ id, rawId: toBase64(rawId), type: 'public-key', clientExtensionResults: {} },
    response: { ...Object.fromEntries(texts), ...(transports && { transports }) },
  }
}

const fromBase64 = (text: string) =>
  Uint8Array.from(atob(text.replace(/-/g, '+').replace(/_/g, '/')), (one) => one.charCodeAt(0))

const toBase64 = (bytes: ArrayBuffer) =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')
