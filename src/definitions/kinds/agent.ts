import * as agents from '../../ai/agents'
import { AgentChange, NewAgent } from '../../ai/shapes'
import { defineKind } from './definition-kind'
import { mapTargetReferences, withoutStoreIds, withStoreIdsOf } from './target-references'

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
  create: agents.create,
  async change(ctx, id, { name = null, ...input }, { answer }) {
    const target = withStoreIdsOf(input, await agents.get(ctx, id, answer))
    return agents.change(ctx, id, { ...CLEARED, ...DEFAULTS, ...target, name }, answer)
  },
  remove: (ctx, id, { answer }) => agents.remove(ctx, id, answer),
})
