import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server'
import type { Challenge } from './challenges'
import type { passkeys } from './tables'

type Passkey = typeof passkeys.$inferSelect

/**
 * The library takes 150 ms to load, so it is loaded for whoever needs it first; by `require`, because the bundler of the
 * binary runs what it imports in another order than it needs.
 */
export const webauthn = () => require('@simplewebauthn/server') as typeof import('@simplewebauthn/server')

const helpers = () => require('@simplewebauthn/server/helpers') as typeof import('@simplewebauthn/server/helpers')

/** EdDSA, ES256 and RS256 (COSE algorithms of IANA), which every browser knows one of. */
export const ALGORITHMS = [-8, -7, -257]

/** What the library takes for the bytes that we know as base64url. */
export const bytesOf = (text: string, encoding: BufferEncoding = 'base64url') =>
  Uint8Array.from(Buffer.from(text, encoding))

/** A passkey as a browser is told of it, with the ways to reach the authenticator. */
export const described = ({ credential: id, transports }: Passkey) => ({ id, transports })

/** What the browser says that was signed, and for whom (WebAuthn §5.8.1); it is looked at before it is checked. */
function clientData(json: string): { challenge?: unknown; crossOrigin?: unknown } {
  try {
    return JSON.parse(Buffer.from(json, 'base64url').toString()) ?? {}
  } catch {
    return {}
  }
}

/** The challenge that an answer is to. */
export const challengeIn = (clientDataJSON: string) => `${clientData(clientDataJSON).challenge}`

/** Whether the page was shown within one of another site, where people don't see whom they answer. */
const isFramed = (clientDataJSON: string) => clientData(clientDataJSON).crossOrigin === true

const expected = ({ origin }: Challenge, challenge: string) => ({
  expectedChallenge: challenge,
  expectedOrigin: origin,
  expectedRPID: new URL(origin).hostname,
  requireUserVerification: true,
})

/**
 * The public key of a new passkey (WebAuthn §7.1), or nothing when anything is not as it should be. We ask nobody to vouch
 * for the authenticator; what comes nevertheless is refused, because to check it others would have to be asked.
 */
export const registered = (response: RegistrationResponseJSON, begun: Challenge, challenge: string) =>
  judged(async () => {
    if (isFramed(response.response.clientDataJSON)) return
    const attestation = helpers().decodeAttestationObject(bytesOf(response.response.attestationObject))
    const format = attestation.get('fmt')
    if (format !== 'none' && !(format === 'packed' && !attestation.get('attStmt').get('x5c'))) return
    const options = { response, ...expected(begun, challenge), supportedAlgorithmIDs: ALGORITHMS }
    return (await webauthn().verifyRegistrationResponse(options)).registrationInfo
  })

/**
 * What an authenticator says of itself when it proves to have a passkey (WebAuthn §7.2), or nothing when anything is not as
 * it should be: also when its counter has not gone on, for then there is a copy.
 */
export const proven = (response: AuthenticationResponseJSON, passkey: Passkey, begun: Challenge, challenge: string) =>
  judged(async () => {
    if (isFramed(response.response.clientDataJSON)) return
    const { credential: id, publicKey, counter } = passkey
    const credential = { id, publicKey: bytesOf(publicKey), counter }
    const { verified, authenticationInfo } = await webauthn().verifyAuthenticationResponse({
      response,
      ...expected(begun, challenge),
      credential,
    })
    return verified ? authenticationInfo : undefined
  })

/** The library refuses by errors of no kind of their own; callers learn only that. */
async function judged<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work()
  } catch {
    return undefined
  }
}
