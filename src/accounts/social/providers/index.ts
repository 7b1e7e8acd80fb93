import { facebook } from './facebook'
import { github } from './github'
import { google } from './google'
import { linkedin } from './linkedin'
import type { OAuthProvider } from './provider'

/** The providers that are known by name; any other one uses OpenID Connect. */
export const providersByName: Record<string, OAuthProvider> = { facebook, github, google, linkedin }
