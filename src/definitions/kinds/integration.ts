import { badRequest } from '../../core/problem'
import * as integrations from '../../integrations/integrations'
import { NewIntegration } from '../../integrations/shapes'
import { validateTarget } from '../../integrations/targets'
import { parseTarget, parseTrigger, prefixPaths } from '../../integrations/validation'
import { type Definition, defineKind } from './definition-kind'
import { mapTargetReferences, plannedReferences, withoutStoreIds, withStoreIdsOf } from './target-references'

const DEFAULTS = { active: true, guest: false, roles: [], workspaceRoles: [], plugin: null }

/** An integration, except those that are agents. */
export const integration = defineKind({
  folder: 'integrations',
  nameKey: 'name',
  sharesNames: true,
  shape: NewIntegration,
  defaults: DEFAULTS,
  mapReferences: ({ target, plugin, ...definition }, map) => ({
    ...definition,
    target: mapTargetReferences(target as Definition, map),
    ...(typeof plugin === 'string' && { plugin: map('plugin', plugin) }),
  }),
  list: integrations.list,
  get: integrations.get,
  toStored({ _id, name, active, guest, trigger, target, roles, workspaceRoles, plugin }) {
    if (trigger.kind === 'chat' && target.kind === 'ai') return
    const fallback = trigger.kind === 'tool' ? trigger.name : `${trigger.kind}-${target.kind}`
    const definition = { active, guest, trigger, target: withoutStoreIds(target), roles, workspaceRoles, plugin }
    return { id: _id, name, fallback, definition }
  },
  async validate(_ctx, { trigger, target }, { before, planned }) {
    parseTrigger(trigger)
    const parsed = parseTarget(target)
    // As in the API, a reference that broke later must not block other changes.
    if (Bun.deepEquals(target, before?.definition.target)) return
    const errors = await validateTarget(plannedReferences(planned), parsed)
    if (errors.length) badRequest(...prefixPaths('/target', errors))
  },
  create: integrations.create,
  change: (ctx, id, { name = null, ...input }, { ifMatch }) =>
    integrations.change(
      ctx,
      id,
      ({ target }) => ({ ...DEFAULTS, ...input, name, target: withStoreIdsOf(input.target, target) }),
      { ifMatch },
    ),
  remove: (ctx, id, { ifMatch }) => integrations.remove(ctx, id, { ifMatch }),
})
