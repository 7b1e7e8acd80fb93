import { type OAuthProvider, toEndpointUrl, toProfile } from './provider'

/** https://docs.gitlab.com/integration/openid_connect_provider */
export const gitlab: OAuthProvider = {
  scopes: 'openid email profile',
  idToken: 'checked',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://gitlab.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://gitlab.com/oauth/authorize'),
    token_endpoint: toEndpointUrl(setup, 'https://gitlab.com/oauth/token'),
    userinfo_endpoint: toEndpointUrl(setup, 'https://gitlab.com/oauth/userinfo'),
    jwks_uri: toEndpointUrl(setup, 'https://gitlab.com/oauth/discovery/keys'),
  }),
  profile: async (getJson, _, server) => toProfile(await getJson(server.userinfo_endpoint!)),
}
