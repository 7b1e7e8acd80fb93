import * as agents from '../../ai/agents'
import { AgentChange, NewAgent } from '../../ai/shapes'
import { badRequest } from '../../core/problem'
import { validateTarget } from '../../integrations/targets'
import { ECHO_SOURCE_ID } from '../../integrations/targets/ai'
import { defineKind } from './definition-kind'
import { mapTargetReferences, plannedReferences, withoutStoreIds, withStoreIdsOf } from './target-references'

const DEFAULTS = { active: true, description: '', tools: [], roles: [], workspaceRoles: [] }
const CLEARED = Object.fromEntries(
  Object.keys(AgentChange.properties)
    .filter((key) => !['name', 'sourceId', ...Object.keys(DEFAULTS)].includes(key))
    .map((key) => [key, null]),
)

export const agent = defineKind({
  folder: 'agents',
  nameKey: 'name',
  sharesNames: true,
  shape: NewAgent,
  defaults: DEFAULTS,
  mapReferences: mapTargetReferences,
  list: agents.list,
  get: agents.get,
  toStored({ _id, name, created: _, updated: __, ...definition }) {
    const stated = Object.entries(withoutStoreIds(definition)).filter(([, value]) => value !== undefined)
    return { id: _id, name, fallback: 'agent', definition: Object.fromEntries(stated) }
  },
  async validate(_ctx, { sourceId, name: _, active: __, roles: ___, workspaceRoles: ____, ...target }, { planned }) {
    const { findAnyConnection, ...referable } = plannedReferences(planned)
    const source = sourceId ?? findAnyConnection('openai') ?? ECHO_SOURCE_ID
    const errors = await validateTarget(referable, { kind: 'ai', ...target, sourceId: source })
    if (errors.length) badRequest(...errors)
  },
  create: agents.create,
  async change(ctx, id, { name = null, ...input }, { ifMatch }) {
    const target = withStoreIdsOf(input, (await agents.get(ctx, id)).value)
    return agents.change(ctx, id, { ...CLEARED, ...DEFAULTS, ...target, name }, { ifMatch })
  },
  remove: agents.remove,
})
