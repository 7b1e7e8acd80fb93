import type { AuthorizationServer, IDToken } from 'oauth4webapi'

/** How a tenant of this installation is known to a provider, and where that is. */
export type Setup = {
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
export type Ask = (url: string) => Promise<Record<string, unknown>>

/** A kind of provider. */
export type Kind = {
  scopes: string
  /** Whether an id_token has to come, is checked when it comes, or is not looked at. */
  idToken: 'required' | 'checked' | 'ignored'
  server(setup: Setup, get: (url: string) => Promise<Response>): AuthorizationServer | Promise<AuthorizationServer>
  profile(ask: Ask, setup: Setup, server: AuthorizationServer, claims?: IDToken): Promise<Profile>
}

/** An address of a provider: with a `baseUrl`, at that instead of its origin. */
export function at({ baseUrl }: Setup, url: string): string {
  const { origin } = new URL(url)
  return baseUrl ? baseUrl.replace(/\/+$/, '') + url.slice(origin.length) : url
}

/** A text that says something. */
export const text = (value: unknown) => (typeof value === 'string' && value.trim() ? value.trim() : undefined)

/** The standard claims (OpenID Connect Core 1.0, §5.1). */
export const standard = (claims: Record<string, unknown>): Profile => ({
  subject: text(claims.sub) ?? '',
  email: text(claims.email),
  emailVerified: claims.email_verified === true || claims.email_verified === 'true',
  username: text(claims.preferred_username),
  firstName: text(claims.given_name),
  lastName: text(claims.family_name),
  fullName: text(claims.name),
  profileImage: text(claims.picture),
})
