import { at, type Kind, text } from './kind'

const GRAPH = 'https://graph.facebook.com/v23.0'

/** https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow */
export const facebook: Kind = {
  scopes: 'email public_profile',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: at(setup, 'https://www.facebook.com'),
    authorization_endpoint: at(setup, 'https://www.facebook.com/v23.0/dialog/oauth'),
    token_endpoint: at(setup, `${GRAPH}/oauth/access_token`),
  }),
  async profile(ask, setup) {
    const user = await ask(at(setup, `${GRAPH}/me?fields=id,name,email,first_name,last_name`))
    return {
      subject: text(user.id) ?? '',
      email: text(user.email),
      // It does not say whether the address was ever proven.
      emailVerified: false,
      firstName: text(user.first_name),
      lastName: text(user.last_name),
      fullName: text(user.name),
    }
  },
}
