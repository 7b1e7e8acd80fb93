import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Challenge } from './challenges'
import type { passkeys } from './tables'

type Passkey = typeof passkeys.$inferSelect

/**
 * The library takes 150 ms to load, so it is only loaded when a request needs it. It is loaded by `require`, because
 * the bundler of the binary runs what it imports in the wrong order.
 */
export const loadWebAuthn = () => require('@simplewebauthn/server') as typeof import('@simplewebauthn/server')

const loadWebAuthnHelpers = () =>
  require('@simplewebauthn/server/helpers') as typeof import('@simplewebauthn/server/helpers')

/** EdDSA, ES256 and RS256 (COSE algorithms of IANA); every browser supports one of them. */
export const SUPPORTED_ALGORITHMS = [-8, -7, -257]

/** Returns the bytes of a text in the type that the library takes. */
export const toBytes = (text: string, encoding: BufferEncoding = 'base64url') =>
  Uint8Array.from(Buffer.from(text, encoding))

/** Returns a passkey as browsers take it, with the ways to reach the authenticator. */
export const toDescriptor = ({ credential: id, transports }: Passkey) => ({ id, transports })

/** Parses what the browser reports about the signature (WebAuthn §5.8.1). It is not verified yet. */
function parseClientData(json: string): { challenge?: unknown; crossOrigin?: unknown } {
  try {
    return JSON.parse(Buffer.from(json, 'base64url').toString()) ?? {}
  } catch {
    return {}
  }
}

/** Returns the challenge that a response answers. It is not verified yet. */
export const readChallenge = (clientDataJSON: string) => `${parseClientData(clientDataJSON).challenge}`

/** Returns whether the page was embedded in a page of another site, where users do not see whom they answer. */
const isCrossOrigin = (clientDataJSON: string) => parseClientData(clientDataJSON).crossOrigin === true

const toExpectations = ({ origin }: Challenge, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: new URL(origin).hostname,
  requireUserVerification: true,
})

/**
 * Returns the registration info of a new passkey with its public key (WebAuthn §7.1), or undefined when anything is
 * invalid. Authenticators are not asked for an attestation. One with certificates is rejected, because verifying it
 * would need third parties.
 */
export const verifyRegistration = (response: RegistrationResponseJSON, pending: Challenge, challenge: string) =>
  undefinedOnError(async () => {
    if (isCrossOrigin(response.response.clientDataJSON)) return
    const attestation = loadWebAuthnHelpers().decodeAttestationObject(toBytes(response.response.attestationObject))
    const format = attestation.get('fmt')
    if (format !== 'none' && !(format === 'packed' && !attestation.get('attStmt').get('x5c'))) return
    const options = { response, ...toExpectations(pending, challenge), supportedAlgorithmIDs: SUPPORTED_ALGORITHMS }
    return (await loadWebAuthn().verifyRegistrationResponse(options)).registrationInfo
  })

/**
 * Returns the authentication info of a passkey (WebAuthn §7.2), or undefined when anything is invalid. A counter that
 * has not grown is invalid, because it means that there is a copy of the passkey.
 */
export const verifyAssertion = (
  response: AuthenticationResponseJSON,
  passkey: Passkey,
  pending: Challenge,
  challenge: string,
) =>
  undefinedOnError(async () => {
    if (isCrossOrigin(response.response.clientDataJSON)) return
    const { credential: id, publicKey, counter } = passkey
    const credential = { id, publicKey: toBytes(publicKey), counter }
    const { verified, authenticationInfo } = await loadWebAuthn().verifyAuthenticationResponse({
      response,
      ...toExpectations(pending, challenge),
      credential,
    })
    return verified ? authenticationInfo : undefined
  })

/** The library throws errors of no particular class, so every error means that the response is invalid. */
async function undefinedOnError<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}
