import type { Ctx } from '../../accounts/context'
import { scopesAllow } from '../../accounts/permissions'
import * as blueprints from '../../blueprints/blueprints'
import { Problem } from '../../core/problem'

const URI_PREFIX = 'atoll://blueprints/'

/** Returns the blueprints that the caller may read, as resources. */
export async function listBlueprintResources(ctx: Ctx) {
  if (!mayRead(ctx)) return []
  const all: Awaited<ReturnType<typeof blueprints.list>>['items'] = []
  for (let page = 1; ; page++) {
    const { items, next } = await blueprints.list(ctx, { limit: '1000', page: `${page}` })
    all.push(...items)
    if (!next) break
  }
  return all.map(({ key, name, description }) => ({
    ...{ uri: `${URI_PREFIX}${key}`, name: key, title: name, description, mimeType: 'application/json' },
  }))
}

/** Returns a blueprint as JSON, or undefined if it does not exist or the caller may not read it. */
export async function readBlueprintResource(ctx: Ctx, uri: string): Promise<string | undefined> {
  if (!uri.startsWith(URI_PREFIX) || !mayRead(ctx)) return
  try {
    return JSON.stringify((await blueprints.get(ctx, uri.slice(URI_PREFIX.length))).value)
  } catch (error) {
    if (!(error instanceof Problem && error.status === 404)) throw error
  }
}

const mayRead = ({ actor }: Ctx) => scopesAllow(actor.scopes, 'blueprints', 'read')
