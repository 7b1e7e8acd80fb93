import type { AuthorizationServer } from 'oauth4webapi'
import { now } from '../../../core/clock'
import { type OAuthProvider, type ProviderConfig, toEndpointUrl, toProfile } from './provider'

const SECRET_LIFETIME_S = 300 // Apple allows six months

/** https://developer.apple.com/documentation/signinwithapplerestapi */
export const apple: OAuthProvider = {
  // Apple tells the name only on the first visit, and only unsigned.
  scopes: 'openid email',
  idToken: 'required',
  responseMode: 'form_post',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://appleid.apple.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://appleid.apple.com/auth/authorize'),
    token_endpoint: toEndpointUrl(setup, 'https://appleid.apple.com/auth/token'),
    jwks_uri: toEndpointUrl(setup, 'https://appleid.apple.com/auth/keys'),
  }),
  signSecret,
  profile: async (_getJson, _setup, _server, claims) => toProfile(claims!),
}

/** Signs a token with the private key that is the secret (PKCS #8, in PEM). */
async function signSecret({ teamId, keyId, clientId, clientSecret = '' }: ProviderConfig, server: AuthorizationServer) {
  const { importPKCS8, SignJWT } = await import('jose')
  const issuedAt = Math.floor(now() / 1_000)
  return new SignJWT()
    .setProtectedHeader({ alg: 'ES256', kid: keyId })
    .setIssuer(teamId ?? '')
    .setSubject(clientId)
    .setAudience(server.issuer)
    .setIssuedAt(issuedAt)
    .setExpirationTime(issuedAt + SECRET_LIFETIME_S)
    .sign(await importPKCS8(clientSecret, 'ES256'))
}
