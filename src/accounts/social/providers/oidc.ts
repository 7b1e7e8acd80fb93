import { type AuthorizationServer, processDiscoveryResponse } from 'oauth4webapi'
import { type Kind, standard } from './kind'

/** Any provider of OpenID Connect, found at its issuer (OpenID Connect Discovery 1.0, §4). */
export const oidc: Kind = {
  scopes: 'openid email profile',
  idToken: 'required',
  async server({ issuer = '' }, get): Promise<AuthorizationServer> {
    const found = await get(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`)
    return processDiscoveryResponse(new URL(issuer), found)
  },
  async profile(ask, _, { issuer, userinfo_endpoint }, claims) {
    const more = claims!.email || !userinfo_endpoint ? {} : await ask(userinfo_endpoint)
    // Who answers for somebody else is not believed (OpenID Connect Core 1.0, §5.3.2).
    const all = more.sub === claims!.sub ? { ...more, ...claims } : claims!
    const profile = standard(all)
    // What is the same name at another issuer is another person.
    return { ...profile, subject: profile.subject && `${issuer} ${profile.subject}` }
  },
}
