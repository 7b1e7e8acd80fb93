import type { AuthorizationServer, IDToken } from 'oauth4webapi'

/** The credentials of a tenant at a provider, and the address of the provider. */
export type ProviderConfig = {
  tenant: string
  name: string
  clientId: string
  clientSecret?: string
  issuer?: string
  baseUrl?: string
  teamId?: string
  keyId?: string
}

/** A user as the provider reports them. */
export type Profile = {
  /** The id of the user at the provider, which never changes. */
  subject: string
  email?: string
  /** Whether the provider has verified that the user reads mail at the address. */
  emailVerified: boolean
  username?: string
  firstName?: string
  lastName?: string
  fullName?: string
  profileImage?: string
}

/** Fetches JSON with the access token of the user. */
export type GetJson = (url: string) => Promise<Record<string, unknown>>

/** A sign-in provider: its endpoints, and how it reports a user. */
export type OAuthProvider = {
  scopes: string
  /** Whether an id_token is required, is checked if there is one, or is ignored. */
  idToken: 'required' | 'checked' | 'ignored'
  /** `form_post` for a provider that returns the browser by a form (OAuth 2.0 Form Post Response Mode). */
  responseMode?: 'form_post'
  /** Makes the secret of a token request, for a provider that takes a signed token instead of the secret itself. */
  signSecret?(setup: ProviderConfig, server: AuthorizationServer): Promise<string>
  server(
    setup: ProviderConfig,
    get: (url: string) => Promise<Response>,
  ): AuthorizationServer | Promise<AuthorizationServer>
  profile(getJson: GetJson, setup: ProviderConfig, server: AuthorizationServer, claims?: IDToken): Promise<Profile>
}

/** Returns the URL of an endpoint. A `baseUrl` replaces its origin. */
export function toEndpointUrl({ baseUrl }: ProviderConfig, url: string): string {
  const { origin } = new URL(url)
  return baseUrl ? baseUrl.replace(/\/+$/, '') + url.slice(origin.length) : url
}

/** Returns a trimmed text, or undefined for anything else and for an empty text. */
export const toText = (value: unknown) => (typeof value === 'string' && value.trim() ? value.trim() : undefined)

/** Returns the profile in the standard claims (OpenID Connect Core 1.0, §5.1). */
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
