import type { Ctx } from '../../accounts/guard'
import { refuseBeyond } from '../../accounts/permissions'
import * as blueprints from '../../blueprints/blueprints'
import * as blocks from '../../content/blocks'
import type { Answer } from '../../core/etag'
import * as connections from '../../plugins/connections/connections'
import * as integrations from '../../plugins/integrations/integrations'
import * as lambdas from '../../plugins/lambdas/lambdas'
import type { Tool } from '../tools/tool'

type Lookup = {
  does: string
  area: string
  /** Whether only admins may. */
  administered?: true
  list: (ctx: Ctx, query: { limit: string; page?: string }, answer: Answer) => Promise<object[]>
  /** What models are told of each. */
  tells: string[]
}

const lookups = {
  blueprints: {
    ...{ does: 'Lists the blueprints that there are.', area: 'blueprints', list: blueprints.list },
    tells: ['key', 'name', 'description', 'fields'],
  },
  blocks: {
    ...{ does: 'Lists the blocks that there are.', area: 'blocks', list: blocks.list },
    tells: ['_id', 'name', 'description', 'contentType'],
  },
  integrations: {
    ...{ does: 'Lists the integrations that there are.', area: 'integrations', list: integrations.list },
    ...{ administered: true, tells: ['_id', 'name', 'active', 'trigger', 'target'] },
  },
  sources: {
    ...{ does: 'Lists the integration sources that targets go by.', area: 'integrations', list: connections.list },
    ...{ administered: true, tells: ['_id', 'name', 'kind'] },
  },
  lambdas: {
    ...{ does: 'Lists the lambdas that there are.', area: 'lambdas', list: lambdas.list },
    ...{ administered: true, tells: ['_id', 'name', 'description'] },
  },
} satisfies Record<string, Lookup>
export type LookupName = keyof typeof lookups

const PAGE = '50'

/** Tools by which a model sees what there is: of it what the caller may see. */
export function lookupTools({ actor }: Ctx, names: readonly LookupName[]): Tool[] {
  const allowed = names.filter((name) => actor.privileged || !('administered' in lookups[name]))
  return allowed.map((name) => {
    const { does, area, list, tells }: Lookup = lookups[name]
    return {
      name: `list_${name}`,
      description: `${does} ${PAGE} on a page.`,
      parameters: { type: 'object', properties: { page: { type: 'integer', minimum: 1 } } },
      async run({ ctx }, { page = 1 }) {
        refuseBeyond(actor, area, 'read')
        const answer = { request: new Request('http://list/'), set: { headers: {} } }
        const rows = await list(ctx as Ctx, { limit: PAGE, page: String(page) }, answer)
        const told = ([name]: [string, unknown]) => tells.includes(name)
        return rows.map((row) => Object.fromEntries(Object.entries(row).filter(told)))
      },
    }
  })
}
