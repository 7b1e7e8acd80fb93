import type { Ctx } from '../../accounts/context'
import * as configurations from '../../content/configurations'
import { NewConfiguration } from '../../content/shapes'
import { APP_CONFIGURATION } from '../../content/website-hosts'
import { Problem } from '../../core/problem'
import { templateSettings } from '../../platform/mail/template-settings'
import { toProviderSecretRef } from '../../platform/settings/provider-secrets'
import { openSecret } from '../../platform/vault/vault'
import { type Definition, defineKind, type MapSecret, replaceKeys } from './definition-kind'

const DEFAULTS = { public: false, kind: '', description: '', metadata: {} }

type Metadata = { providers?: Record<string, Definition>; paymentSourceId?: string }

/** A configuration, except the mail templates, which are a kind of their own. */
export const configuration = defineKind({
  folder: 'configurations',
  nameKey: 'key',
  shape: NewConfiguration,
  defaults: DEFAULTS,
  mapReferences: ({ metadata = {}, ...definition }, map) => {
    const { paymentSourceId, ...others } = metadata as Metadata
    const translated = paymentSourceId && { paymentSourceId: map('connection', paymentSourceId) }
    return { ...definition, metadata: { ...others, ...translated } }
  },
  mapSecrets: ({ metadata = {}, ...definition }, map) => {
    const { providers, ...others } = metadata as Metadata
    return { ...definition, metadata: { ...others, ...(providers && { providers: mapProviders(providers, map) }) } }
  },
  isKept: ({ name }) => name === APP_CONFIGURATION,
  list: configurations.list,
  get: configurations.get,
  async toStored({ key, public: isPublic, kind, description, metadata }, ctx) {
    if (key === templateSettings.key) return
    const definition = { public: isPublic, kind, description, metadata: await withProviderSecrets(ctx, metadata) }
    return { id: key, name: key, definition }
  },
  create: configurations.create,
  change(ctx, key, { key: _, metadata, ...input }, { before, answer }) {
    const replaced = replaceKeys(before.metadata as Definition, withClearedSecrets(metadata))
    return configurations.update(ctx, key, { ...DEFAULTS, ...input, metadata: replaced }, answer)
  },
  remove: (ctx, key, { answer }) => configurations.remove(ctx, key, answer),
})

const mapProviders = (providers: Record<string, Definition>, map: MapSecret) =>
  Object.fromEntries(
    Object.entries(providers).map(([name, { clientSecret, ...provider }]) => {
      const secret = typeof clientSecret === 'string' ? map([name, 'clientSecret'], clientSecret) : undefined
      return [name, { ...provider, ...(secret !== undefined && { clientSecret: secret }) }]
    }),
  )

/** The secret of a provider is kept when it is left out, and cleared when it is null. */
function withClearedSecrets(metadata: Definition = {}): Definition {
  const { providers, ...others } = metadata as Metadata
  if (!providers) return metadata
  const cleared = Object.entries(providers).map(([name, provider]) => [name, { clientSecret: null, ...provider }])
  return { ...others, providers: Object.fromEntries(cleared) }
}

/** Returns the metadata with the secrets of sign-in providers; those that no key decrypts any more are empty. */
async function withProviderSecrets(ctx: Ctx, metadata: Definition): Promise<Definition> {
  const { providers, ...others } = metadata as Metadata
  if (!providers) return metadata
  const entries = Object.entries(providers).map(async ([name, provider]) => {
    const secret = await openSecret(ctx, toProviderSecretRef(name)).catch((error) => {
      if (!(error instanceof Problem) || error.code !== 'SEALED_UNREADABLE') throw error
      return ''
    })
    return [name, secret === null ? provider : { ...provider, clientSecret: secret }] as const
  })
  return { ...others, providers: Object.fromEntries(await Promise.all(entries)) }
}
