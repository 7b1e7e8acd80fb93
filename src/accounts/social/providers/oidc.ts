import { type AuthorizationServer, processDiscoveryResponse } from 'oauth4webapi'
import { type OAuthProvider, toProfile } from './provider'

/** Any provider of OpenID Connect, which is discovered by its issuer (OpenID Connect Discovery 1.0, §4). */
export const oidc: OAuthProvider = {
  scopes: 'openid email profile',
  idToken: 'required',
  async server({ issuer = '' }, get): Promise<AuthorizationServer> {
    const response = await get(`${issuer.replace(/\/+$/, '')}/.well-known/openid-configuration`)
    return processDiscoveryResponse(new URL(issuer), response)
  },
  async profile(getJson, _, { issuer, userinfo_endpoint }, claims) {
    const userinfo = claims!.email || !userinfo_endpoint ? {} : await getJson(userinfo_endpoint)
    // An answer about another subject must not be used (OpenID Connect Core 1.0, §5.3.2).
    const allClaims = userinfo.sub === claims!.sub ? { ...userinfo, ...claims } : claims!
    const profile = toProfile(allClaims)
    // The same subject at another issuer is another person.
    return { ...profile, subject: profile.subject && `${issuer} ${profile.subject}` }
  },
}
