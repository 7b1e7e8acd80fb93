import { apple } from './apple'
import { discord } from './discord'
import { facebook } from './facebook'
import { github } from './github'
import { gitlab } from './gitlab'
import { google } from './google'
import { linkedin } from './linkedin'
import { microsoft } from './microsoft'
import type { OAuthProvider } from './provider'
import { x } from './x'

/** The providers that are known by name; any other one uses OpenID Connect. */
export const providersByName: Record<string, OAuthProvider> = {
  ...{ apple, discord, facebook, github, gitlab, google, linkedin, microsoft, x },
}
