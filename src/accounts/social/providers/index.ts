import { facebook } from './facebook'
import { github } from './github'
import { google } from './google'
import { linkedin } from './linkedin'
import type { OAuthProvider } from './provider'

/** The built-in providers by name; all others use OpenID Connect. */
export const providersByName: Record<string, OAuthProvider> = { facebook, github, google, linkedin }
