import { authSettings } from '../../accounts/auth-settings'
import type { Ctx } from '../../accounts/context'
import * as configurations from '../../content/configurations'
import { mergeMetadata } from '../../content/metadata'
import { NewConfiguration } from '../../content/shapes'
import { templateSettings } from '../../platform/mail/template-settings'
import { APP_CONFIGURATION } from '../../platform/settings/app-configuration'
import { toProviderSecretRef } from '../../platform/settings/provider-secrets'
import { openSecret } from '../../platform/vault/vault'
import { type Definition, defineKind, ifUnreadable, replaceKeys } from './definition-kind'

const DEFAULTS = { public: false, kind: '', description: '', metadata: {} }

type Metadata = { providers?: object; paymentSourceId?: string }

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
  mapSecrets: (definition, map) =>
    mapProviders(definition, ({ clientSecret, ...provider }, name) => {
      const secret = typeof clientSecret === 'string' ? map([name, 'clientSecret'], clientSecret) : undefined
      return { ...provider, ...(secret !== undefined && { clientSecret: secret }) }
    }),
  isKept: ({ name }) => name === APP_CONFIGURATION,
  list: configurations.list,
  get: configurations.get,
  async toStored({ key, public: isPublic, kind, description, metadata }, ctx) {
    if (key === templateSettings.key) return
    const definition = { public: isPublic, kind, description, metadata }
    // Only there they are secrets: elsewhere, a push would store them as they are.
    const secrets = key === authSettings.key ? await readProviderSecrets(ctx, metadata) : {}
    return {
      ...{ id: key, name: key },
      definition: mapProviders(definition, (provider, name) =>
        Object.hasOwn(secrets, name) ? { ...provider, clientSecret: secrets[name] } : provider,
      ),
    }
  },
  async validate(ctx, { key, metadata = {}, public: isPublic }, { before }) {
    // The connection may be one that the same push creates.
    const { paymentSourceId: _, ...others } = metadata as Metadata
    await configurations.validate(ctx, { key, public: isPublic, metadata: others })
    mergeMetadata(key, (before?.stored.metadata as Definition | undefined) ?? {}, metadata, '/metadata')
  },
  create: configurations.create,
  change(ctx, key, { key: _, ...change }, { before, ifMatch }) {
    // The secret of a provider is kept when it is left out, and cleared when it is null.
    const { metadata, ...input } = mapProviders(change, (provider) => ({ clientSecret: null, ...provider }))
    const replaced = replaceKeys(before.metadata as Definition, metadata)
    return configurations.update(ctx, key, { ...DEFAULTS, ...input, metadata: replaced }, { ifMatch })
  },
  remove: (ctx, key, { ifMatch }) => configurations.remove(ctx, key, { ifMatch }),
})

const isObject = (value: unknown): value is Definition =>
  value !== null && typeof value === 'object' && !Array.isArray(value)

/** Translates sign-in providers. Where there is something else in their place, it stays, for the API to refuse. */
function mapProviders<Configuration extends { metadata?: unknown }>(
  configuration: Configuration,
  map: (provider: Definition, name: string) => Definition,
): Configuration {
  const { metadata } = configuration
  if (!isObject(metadata) || !isObject(metadata.providers)) return configuration
  const providers = Object.entries(metadata.providers).map(([name, provider]) => [
    name,
    isObject(provider) ? map(provider, name) : provider,
  ])
  return { ...configuration, metadata: { ...metadata, providers: Object.fromEntries(providers) } }
}

/** Returns the secrets of sign-in providers by their names; those that no key decrypts any more are empty. */
async function readProviderSecrets(ctx: Ctx, { providers = {} }: Metadata): Promise<Record<string, string>> {
  const secrets: Record<string, string> = {}
  for (const name of Object.keys(providers)) {
    const secret = await openSecret(ctx, toProviderSecretRef(name)).catch(ifUnreadable(''))
    if (secret !== null) secrets[name] = secret
  }
  return secrets
}
