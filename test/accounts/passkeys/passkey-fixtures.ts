import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { isoCBOR } from '@simplewebauthn/server/helpers'
import { type ApiClient, createTestTenant, type TestUser } from '../../test-tenant'
import { createSignedInClient } from '../session-fixtures'

/** Deviations of an authenticator or a browser from the protocol. */
export type AuthenticatorFault = {
  type?: string
  origin?: string
  challenge?: string
  host?: string
  flags?: number
  counter?: number
  userHandle?: string
  format?: string
  statement?: Map<string, unknown>
  /** The authenticator signs a self-attestation. */
  vouches?: boolean
  crossOrigin?: boolean
}

const [PRESENT, VERIFIED, ELIGIBLE, BACKED_UP, ATTESTED] = [1, 4, 8, 16, 64]
export const flags = { PRESENT, VERIFIED, ELIGIBLE, BACKED_UP }

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest()
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url')

/** Returns an authenticator with one passkey (ES256), together with the browser that shows a page of this origin. */
export function createAuthenticator(
  origin: string,
  { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  credential: Buffer = randomBytes(32),
) {
  const { x, y } = publicKey.export({ format: 'jwk' })
  const own = { counter: 0, userHandle: '' }

  const clientData = (type: string, challenge: string, fault: AuthenticatorFault) =>
    Buffer.from(
      JSON.stringify({
        type: fault.type ?? type,
        challenge: fault.challenge ?? challenge,
        origin: fault.origin ?? origin,
        crossOrigin: fault.crossOrigin ?? false,
      }),
    )

  function data(host: string, standard: number, fault: AuthenticatorFault, attested = Buffer.alloc(0)) {
    const counter = Buffer.alloc(4)
    counter.writeUInt32BE(fault.counter ?? own.counter)
    const bits = (fault.flags ?? standard) | (attested.length ? ATTESTED : 0)
    return Buffer.concat([sha256(fault.host ?? host), Buffer.from([bits]), counter, attested])
  }

  const key = new Map<number, unknown>([
    [1, 2],
    [3, -7],
    [-1, 1],
    [-2, Uint8Array.from(Buffer.from(x!, 'base64url'))],
    [-3, Uint8Array.from(Buffer.from(y!, 'base64url'))],
  ])

  const id = text(credential)
  return {
    id,
    own,
    /** Returns what `navigator.credentials.create` returns for these options. */
    // biome-ignore lint/suspicious/noExplicitAny: options are what the server answered
    create(options: any, fault: AuthenticatorFault = {}) {
      own.userHandle = options.user.id
      const length = Buffer.from([0, credential.length])
      const cose = Buffer.from(isoCBOR.encode(key as never))
      const attested = Buffer.concat([Buffer.alloc(16), length, credential, cose])
      const authData = Uint8Array.from(data(options.rp.id, PRESENT | VERIFIED, fault, attested))
      const client = clientData('webauthn.create', options.challenge, fault)
      const statement = fault.statement ?? new Map<string, unknown>()
      const signature = sign('sha256', Buffer.concat([authData, sha256(client)]), privateKey)
      if (fault.vouches) statement.set('alg', -7).set('sig', Uint8Array.from(signature))
      const object = new Map<string, unknown>([
        ['fmt', fault.format ?? 'none'],
        ['attStmt', statement],
        ['authData', authData],
      ])
      const clientDataJSON = text(client)
      return {
        ...{ id, rawId: id, type: 'public-key', clientExtensionResults: { credProps: { rk: true } } },
        response: {
          clientDataJSON,
          attestationObject: text(isoCBOR.encode(object as never)),
          transports: ['internal', 'hybrid'],
        },
      }
    },
    /** Returns what `navigator.credentials.get` returns for these options. */
    // biome-ignore lint/suspicious/noExplicitAny: options are what the server answered
    get(options: any, fault: AuthenticatorFault = {}) {
      const authenticatorData = data(options.rpId, PRESENT | VERIFIED, fault)
      const client = clientData('webauthn.get', options.challenge, fault)
      const signature = sign('sha256', Buffer.concat([authenticatorData, sha256(client)]), privateKey)
      return {
        ...{ id, rawId: id, type: 'public-key', clientExtensionResults: {} },
        response: {
          clientDataJSON: text(client),
          authenticatorData: text(authenticatorData),
          signature: text(signature),
          userHandle: fault.userHandle ?? own.userHandle,
        },
      }
    },
  }
}
export type Authenticator = ReturnType<typeof createAuthenticator>

/** Registers a passkey for the user of a client. */
export async function registerPasskey(client: ApiClient, device: Authenticator, name?: string) {
  const options = (await client.post('/me/passkeys/options')).body
  return client.post('/me/passkeys', { ...(name && { name }), credential: device.create(options) })
}

/** Signs in by a passkey. */
export async function signInWithPasskey(
  client: ApiClient,
  device: Authenticator,
  fault: AuthenticatorFault = {},
  more: Record<string, unknown> = {},
) {
  const options = (await client.post('/signin/passkey/options')).body
  return client.post('/signin/passkey', { credential: device.get(options, fault), ...more })
}

/** Creates a tenant and a user with a passkey. */
export async function createPasskeyFixture(name: TestUser = 'user') {
  const home = await createTestTenant()
  const device = createAuthenticator(home.origin)
  const person = await createSignedInClient(home, name)
  const made = await registerPasskey(person, device, 'Phone')
  return { ...home, device, person, made }
}
