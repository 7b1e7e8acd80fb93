import { type OAuthProvider, toEndpointUrl, toText } from './provider'

const GRAPH_API_URL = 'https://graph.facebook.com/v23.0'

/** https://developers.facebook.com/docs/facebook-login/guides/advanced/manual-flow */
export const facebook: OAuthProvider = {
  scopes: 'email public_profile',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://www.facebook.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://www.facebook.com/v23.0/dialog/oauth'),
    token_endpoint: toEndpointUrl(setup, `${GRAPH_API_URL}/oauth/access_token`),
  }),
  async profile(getJson, setup) {
    const user = await getJson(toEndpointUrl(setup, `${GRAPH_API_URL}/me?fields=id,name,email,first_name,last_name`))
    return {
      subject: toText(user.id) ?? '',
      email: toText(user.email),
      // Facebook does not report whether the address was verified.
      emailVerified: false,
      firstName: toText(user.first_name),
      lastName: toText(user.last_name),
      fullName: toText(user.name),
    }
  },
}
