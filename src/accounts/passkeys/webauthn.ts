import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Challenge } from './challenges'
import type { passkeys } from './tables'

type Passkey = typeof passkeys.$inferSelect

/**
 * The library takes 150 ms to load, so it is loaded on first use. `require` is used because the bundler of the binary
 * runs its imports in the wrong order.
 */
export const loadWebAuthn = () => require('@simplewebauthn/server') as typeof import('@simplewebauthn/server')

const loadWebAuthnHelpers = () =>
  require('@simplewebauthn/server/helpers') as typeof import('@simplewebauthn/server/helpers')

/** EdDSA, ES256 and RS256 (COSE algorithms of IANA); every browser supports at least one of them. */
export const SUPPORTED_ALGORITHMS = [-8, -7, -257]

/** Returns decoded bytes in the type that the library requires. */
export const toBytes = (text: string, encoding: BufferEncoding = 'base64url') =>
  Uint8Array.from(Buffer.from(text, encoding))

/** Returns the descriptor of a passkey for browsers, with the transports of its authenticator. */
export const toDescriptor = ({ credential: id, transports }: Passkey) => ({ id, transports })

/** Parses the client data (WebAuthn §5.8.1), which has not been verified yet. */
function parseClientData(json: string): { challenge?: unknown; crossOrigin?: unknown } {
  try {
    return JSON.parse(Buffer.from(json, 'base64url').toString()) ?? {}
  } catch {
    return {}
  }
}

/** Returns the challenge that a response belongs to. */
export const readChallenge = (clientDataJSON: string) => `${parseClientData(clientDataJSON).challenge}`

/** Whether the page was embedded in a page of another site, where users cannot see whom they respond to. */
const isCrossOrigin = (clientDataJSON: string) => parseClientData(clientDataJSON).crossOrigin === true

const toExpectations = ({ origin }: Challenge, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: new URL(origin).hostname,
  requireUserVerification: true,
})

/**
 * Returns the public key of a new passkey (WebAuthn §7.1), or undefined when the response is invalid. Attestation is
 * not requested; certificates that come nevertheless are rejected, because checking them would require other servers.
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
 * Returns the authenticator data of a verified assertion (WebAuthn §7.2), or undefined when it is invalid, also when
 * its counter has not increased, which indicates a copy of the passkey.
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

/** The library throws plain errors for every rejection, so callers learn only that it failed. */
async function undefinedOnError<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}
