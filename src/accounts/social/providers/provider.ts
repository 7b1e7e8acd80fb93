import type { AuthorizationServer, IDToken } from 'oauth4webapi'

/** How a tenant of this installation is known to a provider, and where that is. */
export type ProviderConfig = {
  tenant: string
  name: string
  clientId: string
  clientSecret?: string
  issuer?: string
  baseUrl?: string
}

/** Whom a provider says that it is. */
export type Profile = {
  /** What never changes about them. */
  subject: string
  email?: string
  /** Whether the provider has seen that they read its mail. */
  emailVerified: boolean
  username?: string
  firstName?: string
  lastName?: string
  fullName?: string
  profileImage?: string
}

/** Gets JSON with the access token of whom it is about. */
export type GetJson = (url: string) => Promise<Record<string, unknown>>

/** A kind of provider. */
export type OAuthProvider = {
  scopes: string
  /** Whether an id_token has to come, is checked when it comes, or is not looked at. */
  idToken: 'required' | 'checked' | 'ignored'
  server(
    setup: ProviderConfig,
    get: (url: string) => Promise<Response>,
  ): AuthorizationServer | Promise<AuthorizationServer>
  profile(ask: GetJson, setup: ProviderConfig, server: AuthorizationServer, claims?: IDToken): Promise<Profile>
}

/** An address of a provider: with a `baseUrl`, at that instead of its origin. */
export function toEndpointUrl({ baseUrl }: ProviderConfig, url: string): string {
  const { origin } = new URL(url)
  return baseUrl ? baseUrl.replace(/\/+$/, '') + url.slice(origin.length) : url
}

/** A text that says something. */
export const toText = (value: unknown) => (typeof value === 'string' && value.trim() ? value.trim() : undefined)

/** The standard claims (OpenID Connect Core 1.0, §5.1). */
export const toProfile = (claims: Record<string, unknown>): Profile => ({
  subject: toText(claims.sub) ?? '',
  email: toText(claims.email),
  emailVerified: claims.email_verified === true || claims.email_verified === 'true',
  username: toText(claims.preferred_username),
  firstName: toText(claims.given_name),
  lastName: toText(claims.family_name),
  fullName: toText(claims.name),
  profileImage: toText(claims.picture),
})
