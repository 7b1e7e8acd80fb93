import { at, type Kind, standard } from './kind'

/** https://developers.google.com/identity/openid-connect/openid-connect */
export const google: Kind = {
  scopes: 'openid email profile',
  idToken: 'checked',
  server: (setup) => ({
    issuer: at(setup, 'https://accounts.google.com'),
    authorization_endpoint: at(setup, 'https://accounts.google.com/o/oauth2/v2/auth'),
    token_endpoint: at(setup, 'https://oauth2.googleapis.com/token'),
    userinfo_endpoint: at(setup, 'https://openidconnect.googleapis.com/v1/userinfo'),
    jwks_uri: at(setup, 'https://www.googleapis.com/oauth2/v3/certs'),
  }),
  profile: async (ask, _, server, claims) => standard(claims?.email ? claims : await ask(server.userinfo_endpoint!)),
}
