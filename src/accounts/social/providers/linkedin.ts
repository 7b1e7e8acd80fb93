import { type OAuthProvider, toEndpointUrl, toProfile } from './provider'

/** https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2 */
export const linkedin: OAuthProvider = {
  scopes: 'openid profile email',
  // The id_token of LinkedIn lacks the nonce, so the profile is fetched from the provider directly.
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://www.linkedin.com/oauth'),
    authorization_endpoint: toEndpointUrl(setup, 'https://www.linkedin.com/oauth/v2/authorization'),
    token_endpoint: toEndpointUrl(setup, 'https://www.linkedin.com/oauth/v2/accessToken'),
    userinfo_endpoint: toEndpointUrl(setup, 'https://api.linkedin.com/v2/userinfo'),
  }),
  profile: async (getJson, _, server) => toProfile(await getJson(server.userinfo_endpoint!)),
}
