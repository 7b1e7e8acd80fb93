import { type OAuthProvider, toEndpointUrl, toProfile } from './provider'

const LOGIN_URL = 'https://login.microsoftonline.com/common/oauth2/v2.0'

/** https://learn.microsoft.com/en-us/entra/identity-platform/v2-protocols-oidc */
export const microsoft: OAuthProvider = {
  scopes: 'openid email profile',
  // Its issuer differs for each organization, so the profile is fetched from the provider directly.
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://login.microsoftonline.com/common/v2.0'),
    authorization_endpoint: toEndpointUrl(setup, `${LOGIN_URL}/authorize`),
    token_endpoint: toEndpointUrl(setup, `${LOGIN_URL}/token`),
    userinfo_endpoint: toEndpointUrl(setup, 'https://graph.microsoft.com/oidc/userinfo'),
  }),
  // An organization's admins can put any address into its accounts.
  profile: async (getJson, _, server) => ({
    ...toProfile(await getJson(server.userinfo_endpoint!)),
    emailVerified: false,
    profileImage: undefined,
  }),
}
