import type { AuthorizationServer, IDToken } from 'oauth4webapi'

/** The credentials of a tenant at a provider, and the addresses of the provider. */
export type ProviderConfig = {
  tenant: string
  name: string
  clientId: string
  clientSecret?: string
  issuer?: string
  baseUrl?: string
}

/** The profile of a person, as a provider reports it. */
export type Profile = {
  /** The stable id of the person at the provider. */
  subject: string
  email?: string
  /** Whether the provider has verified the address. */
  emailVerified: boolean
  username?: string
  firstName?: string
  lastName?: string
  fullName?: string
  profileImage?: string
}

/** Fetches JSON with the person's access token. */
export type GetJson = (url: string) => Promise<Record<string, unknown>>

/** The implementation of a provider. */
export type OAuthProvider = {
  scopes: string
  /** Whether an id_token is required, checked if present, or ignored. */
  idToken: 'required' | 'checked' | 'ignored'
  server(
    setup: ProviderConfig,
    get: (url: string) => Promise<Response>,
  ): AuthorizationServer | Promise<AuthorizationServer>
  profile(getJson: GetJson, setup: ProviderConfig, server: AuthorizationServer, claims?: IDToken): Promise<Profile>
}

/** Returns the URL of a provider's endpoint; a `baseUrl` replaces its origin. */
export function toEndpointUrl({ baseUrl }: ProviderConfig, url: string): string {
  const { origin } = new URL(url)
  return baseUrl ? baseUrl.replace(/\/+$/, '') + url.slice(origin.length) : url
}

/** Returns the trimmed text, or undefined when it is empty or not a text. */
export const toText = (value: unknown) => (typeof value === 'string' && value.trim() ? value.trim() : undefined)

/** Returns the profile of standard claims (OpenID Connect Core 1.0, §5.1). */
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
