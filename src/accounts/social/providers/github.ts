import { at, type Kind, text } from './kind'

type Address = { email?: unknown; primary?: unknown; verified?: unknown }

/** https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps */
export const github: Kind = {
  scopes: 'read:user user:email',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: at(setup, 'https://github.com'),
    authorization_endpoint: at(setup, 'https://github.com/login/oauth/authorize'),
    token_endpoint: at(setup, 'https://github.com/login/oauth/access_token'),
  }),
  async profile(ask, setup) {
    const user = await ask(at(setup, 'https://api.github.com/user'))
    const listed = (await ask(at(setup, 'https://api.github.com/user/emails'))) as unknown
    const addresses: Address[] = Array.isArray(listed) ? listed : []
    const primary = addresses.find((address) => address?.primary === true)
    return {
      // A number, which stays when they change their name.
      subject: typeof user.id === 'number' ? `${user.id}` : '',
      email: text(primary?.email),
      emailVerified: primary?.verified === true,
      username: text(user.login),
      fullName: text(user.name),
      profileImage: text(user.avatar_url),
    }
  },
}
