import type { Ctx } from '../../accounts/context'
import { openSecret } from '../../platform/vault/vault'
import * as plugins from '../../plugins/plugins'
import { toSecretRef } from '../../plugins/secrets'
import { NewPlugin } from '../../plugins/shapes'
import { type Definition, defineKind, ifUnreadable } from './definition-kind'

const ANY_EVENT = { source: '*', kind: '*', eventName: '*', active: true }
const DEFAULTS = {
  ...{ description: '', manifestUrl: null, apiPath: null, proxyUrl: null, subscribedEvents: [], active: true },
}

/** A plugin, with the secret that it shares with the server. A file without one leaves it as it is. */
export const plugin = defineKind({
  folder: 'plugins',
  nameKey: 'name',
  shape: NewPlugin,
  defaults: DEFAULTS,
  normalize: ({ subscribedEvents, ...definition }) => ({
    ...definition,
    ...(Array.isArray(subscribedEvents) && { subscribedEvents: subscribedEvents.map(withoutAnyEvent) }),
  }),
  prepare: (definition, { before }) => ({
    ...(before?.secret !== undefined && { secret: before.secret }),
    ...definition,
  }),
  mapSecrets: ({ secret, ...definition }, map) => {
    const mapped = typeof secret === 'string' ? map(['secret'], secret) : undefined
    return { ...definition, ...(mapped !== undefined && { secret: mapped }) }
  },
  list: plugins.list,
  get: async (ctx, id) => ({ value: await plugins.get(ctx, id) }),
  async toStored({ _id, name, description, manifestUrl, apiPath, proxyUrl, subscribedEvents, active }, ctx) {
    const secret = await readSecret(ctx, _id)
    const definition = { description, manifestUrl, apiPath, proxyUrl, subscribedEvents, active, secret }
    return { id: _id, name, definition }
  },
  async validate(ctx, input, { before, planned }) {
    await plugins.validate(ctx, input, before?.stored.manifestUrl as string | undefined)
    const { name, apiPath } = input
    if (!apiPath) return
    const taken = planned.filter((other) => other.kind === 'plugin' && other.name !== name)
    plugins.assertPathAvailable(apiPath, !taken.some(({ definition }) => definition.apiPath === apiPath))
  },
  async create(ctx, input) {
    const { secret: _, ...created } = await plugins.create(ctx, { ...DEFAULTS, ...input })
    return { value: created }
  },
  async change(ctx, id, { secret, ...input }, { before }) {
    await plugins.change(ctx, id, { ...DEFAULTS, ...input })
    if (secret && secret !== before.secret) await plugins.rotateSecret(ctx, id, secret)
  },
  remove: (ctx, id) => plugins.remove(ctx, id),
})

const withoutAnyEvent = (subscription: Definition) =>
  Object.fromEntries(
    Object.entries(subscription).filter(([key, value]) => ANY_EVENT[key as keyof typeof ANY_EVENT] !== value),
  )

/** Returns the secret; one that no key decrypts any more is empty. */
const readSecret = async (ctx: Ctx, id: string): Promise<string> =>
  (await openSecret(ctx, toSecretRef(id)).catch(ifUnreadable(''))) ?? ''
