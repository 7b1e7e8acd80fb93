import { type OAuthProvider, toEndpointUrl, toText } from './provider'

/** https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code */
export const x: OAuthProvider = {
  scopes: 'users.read tweet.read users.email',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://x.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://x.com/i/oauth2/authorize'),
    token_endpoint: toEndpointUrl(setup, 'https://api.x.com/2/oauth2/token'),
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
  }),
  async profile(getJson, setup) {
    const url = 'https://api.x.com/2/users/me?user.fields=confirmed_email,profile_image_url'
    const { data } = await getJson(toEndpointUrl(setup, url))
    const user = (data ?? {}) as Record<string, unknown>
    const email = toText(user.confirmed_email)
    return {
      subject: toText(user.id) ?? '',
      email,
      emailVerified: email !== undefined,
      username: toText(user.username),
      fullName: toText(user.name),
      profileImage: toText(user.profile_image_url),
    }
  },
}
