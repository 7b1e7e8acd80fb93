import { type OAuthProvider, toEndpointUrl, toText } from './provider'

/** https://docs.discord.com/developers/topics/oauth2 */
export const discord: OAuthProvider = {
  scopes: 'identify email',
  idToken: 'ignored',
  server: (setup) => ({
    issuer: toEndpointUrl(setup, 'https://discord.com'),
    authorization_endpoint: toEndpointUrl(setup, 'https://discord.com/oauth2/authorize'),
    token_endpoint: toEndpointUrl(setup, 'https://discord.com/api/oauth2/token'),
  }),
  async profile(getJson, setup) {
    const user = await getJson(toEndpointUrl(setup, 'https://discord.com/api/users/@me'))
    const [subject, avatar] = [toText(user.id) ?? '', toText(user.avatar)]
    return {
      subject,
      email: toText(user.email),
      emailVerified: user.verified === true,
      username: toText(user.username),
      fullName: toText(user.global_name),
      profileImage: avatar && `https://cdn.discordapp.com/avatars/${subject}/${avatar}.png`,
    }
  },
}
