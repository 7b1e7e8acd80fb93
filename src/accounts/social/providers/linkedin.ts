import { at, type Kind, standard } from './kind'

/** https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2 */
export const linkedin: Kind = {
  scopes: 'openid profile email',
  // Its id_token leaves the nonce out, so its word is asked for where nobody can be in between.
  idToken: 'ignored',
  server: (setup) => ({
    issuer: at(setup, 'https://www.linkedin.com/oauth'),
    authorization_endpoint: at(setup, 'https://www.linkedin.com/oauth/v2/authorization'),
    token_endpoint: at(setup, 'https://www.linkedin.com/oauth/v2/accessToken'),
    userinfo_endpoint: at(setup, 'https://api.linkedin.com/v2/userinfo'),
  }),
  profile: async (ask, _, server) => standard(await ask(server.userinfo_endpoint!)),
}
