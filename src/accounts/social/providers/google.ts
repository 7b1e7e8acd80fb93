import { type OAuthProvider, toEndpointUrl, toProfile } from './provider'

/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google: OAuthProvider = {
  scopes: 'openid email profile',
  idToken: 'checked',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://accounts.google.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://accounts.google.com/o/oauth2/v2/auth'),
    token_endpoint: toEndpointUrl(setup, 'https://oauth2.googleapis.com/token'),
    userinfo_endpoint: toEndpointUrl(setup, 'https://openidconnect.googleapis.com/v1/userinfo'),
    jwks_uri: toEndpointUrl(setup, 'https://www.googleapis.com/oauth2/v3/certs'),
  }),
  profile: async (getJson, _, server, claims) =>
    toProfile(claims?.email ? claims : await getJson(server.userinfo_endpoint!)),
}
