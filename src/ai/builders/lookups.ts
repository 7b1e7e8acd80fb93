import type { Ctx } from '../../accounts/context'
import { assertScope, type ScopeArea } from '../../accounts/permissions'
import * as blueprints from '../../blueprints/blueprints'
import * as connections from '../../connections/connections'
import * as blocks from '../../content/blocks'
import type { ListPage } from '../../core/response-headers'
import * as integrations from '../../integrations/integrations'
import * as lambdas from '../../lambdas/lambdas'
import type { Tool } from '../tools/tool'

type Lookup = {
  description: string
  area: ScopeArea
  /** Whether only admins may use it. */
  administered?: true
  list: (ctx: Ctx, query: { limit: string; page?: string }) => Promise<Pick<ListPage<object>, 'items'>>
  /** The fields that models see. */
  fields: string[]
}

const lookups = {
  blueprints: {
    ...{ description: 'Lists the existing blueprints.', area: 'blueprints', list: blueprints.list },
    fields: ['key', 'name', 'description', 'fields'],
  },
  blocks: {
    ...{ description: 'Lists the existing blocks.', area: 'blocks', list: blocks.list },
    fields: ['_id', 'name', 'description', 'contentType'],
  },
  integrations: {
    ...{ description: 'Lists the existing integrations.', area: 'integrations', list: integrations.list },
    ...{ administered: true, fields: ['_id', 'name', 'active', 'trigger', 'target'] },
  },
  sources: {
    ...{
      description: 'Lists the integration sources that targets may use.',
      area: 'integrations',
      list: connections.list,
    },
    ...{ administered: true, fields: ['_id', 'name', 'kind'] },
  },
  lambdas: {
    ...{ description: 'Lists the existing lambdas.', area: 'lambdas', list: lambdas.list },
    ...{ administered: true, fields: ['_id', 'name', 'description'] },
  },
} satisfies Record<string, Lookup>
export type LookupName = keyof typeof lookups

const LOOKUP_PAGE_SIZE = '50'

/** Returns the tools with which a model lists the existing resources that the caller may see. */
export function buildLookupTools({ actor }: Ctx, names: readonly LookupName[]): Tool[] {
  const allowed = names.filter((name) => actor.privileged || !('administered' in lookups[name]))
  return allowed.map((name) => {
    const { description, area, list, fields }: Lookup = lookups[name]
    return {
      name: `list_${name}`,
      description: `${description} ${LOOKUP_PAGE_SIZE} on a page.`,
      parameters: { type: 'object', properties: { page: { type: 'integer', minimum: 1 } } },
      effect: 'reads' as const,
      async run({ ctx }, { page = 1 }) {
        assertScope(actor, area, 'read')
        const { items } = await list(ctx as Ctx, { limit: LOOKUP_PAGE_SIZE, page: String(page) })
        const isListed = ([name]: [string, unknown]) => fields.includes(name)
        return items.map((item) => Object.fromEntries(Object.entries(item).filter(isListed)))
      },
    }
  })
}
