import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Challenge } from './challenges'
import type { passkeys } from './tables'

type Passkey = typeof passkeys.$inferSelect

/**
 * The library takes 150 ms to load, so it is loaded for whoever needs it first; by `require`, because the bundler of the
 * binary runs what it imports in another order than it needs.
 */
export const loadWebAuthn = () => require('@simplewebauthn/server') as typeof import('@simplewebauthn/server')

const loadWebAuthnHelpers = () =>
  require('@simplewebauthn/server/helpers') as typeof import('@simplewebauthn/server/helpers')

/** EdDSA, ES256 and RS256 (COSE algorithms of IANA), which every browser knows one of. */
export const SUPPORTED_ALGORITHMS = [-8, -7, -257]

/** What the library takes for the bytes that we know as base64url. */
export const toBytes = (text: string, encoding: BufferEncoding = 'base64url') =>
  Uint8Array.from(Buffer.from(text, encoding))

/** A passkey as a browser is told of it, with the ways to reach the authenticator. */
export const toDescriptor = ({ credential: id, transports }: Passkey) => ({ id, transports })

/** What the browser says that was signed, and for whom (WebAuthn §5.8.1); it is looked at before it is checked. */
function parseClientData(json: string): { challenge?: unknown; crossOrigin?: unknown } {
  try {
    return JSON.parse(Buffer.from(json, 'base64url').toString()) ?? {}
  } catch {
    return {}
  }
}

/** The challenge that an answer is to. */
export const readChallenge = (clientDataJSON: string) => `${parseClientData(clientDataJSON).challenge}`

/** Whether the page was shown within one of another site, where people don't see whom they answer. */
const isCrossOrigin = (clientDataJSON: string) => parseClientData(clientDataJSON).crossOrigin === true

const toExpectations = ({ origin }: Challenge, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: new URL(origin).hostname,
  requireUserVerification: true,
})

/**
 * The public key of a new passkey (WebAuthn §7.1), or nothing when anything is not as it should be. We ask nobody to vouch
 * for the authenticator; what comes nevertheless is refused, because to check it others would have to be asked.
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
 * What an authenticator says of itself when it proves to have a passkey (WebAuthn §7.2), or nothing when anything is not as
 * it should be: also when its counter has not gone on, for then there is a copy.
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

/** The library refuses by errors of no kind of their own; callers learn only that. */
async function undefinedOnError<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}
