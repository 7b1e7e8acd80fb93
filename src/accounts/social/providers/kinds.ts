import { facebook } from './facebook'
import { github } from './github'
import { google } from './google'
import type { Kind } from './kind'
import { linkedin } from './linkedin'

/** The providers that are known by name; any other is one of OpenID Connect. */
export const kinds: Record<string, Kind> = { facebook, github, google, linkedin }
