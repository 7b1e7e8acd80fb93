import { type OAuthProvider, toEndpointUrl, toText } from './provider'

type GithubEmail = { email?: unknown; primary?: unknown; verified?: unknown }

/** https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps */
export const github: OAuthProvider = {
  scopes: 'read:user user:email',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://github.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://github.com/login/oauth/authorize'),
    token_endpoint: toEndpointUrl(setup, 'https://github.com/login/oauth/access_token'),
  }),
  async profile(getJson, setup) {
    const user = await getJson(toEndpointUrl(setup, 'https://api.github.com/user'))
    const listed = (await getJson(toEndpointUrl(setup, 'https://api.github.com/user/emails'))) as unknown
    const addresses: GithubEmail[] = Array.isArray(listed) ? listed : []
    const primary = addresses.find((address) => address?.primary === true)
    return {
      // The id is a number, which stays when users change their name.
      subject: typeof user.id === 'number' ? `${user.id}` : '',
      email: toText(primary?.email),
      emailVerified: primary?.verified === true,
      username: toText(user.login),
      fullName: toText(user.name),
      profileImage: toText(user.avatar_url),
    }
  },
}
