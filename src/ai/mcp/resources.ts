import type { Ctx } from '../../accounts/context'
import { scopesAllow } from '../../accounts/permissions'
import * as blueprints from '../../blueprints/blueprints'
import { Problem } from '../../core/problem'

const URI_PREFIX = 'atoll://blueprints/'

/** Verbs that answer requests speak HTTP; nobody reads what they say by it here. */
const createDiscardedContext = () => ({ request: new Request('http://mcp/'), set: { headers: {} } })

/** The definitions of blueprints that a caller may know. */
export async function listBlueprintResources(ctx: Ctx) {
  if (!mayRead(ctx)) return []
  const all: Awaited<ReturnType<typeof blueprints.list>> = []
  for (let page = 1; ; page++) {
    const batch = await blueprints.list(ctx, { limit: '1000', page: `${page}` }, createDiscardedContext())
    all.push(...batch)
    if (batch.length < 1_000) break
  }
  return all.map(({ key, name, description }) => ({
    ...{ uri: `${URI_PREFIX}${key}`, name: key, title: name, description, mimeType: 'application/json' },
  }))
}

/** One of them, as JSON; undefined for what is not there for the caller. */
export async function readBlueprintResource(ctx: Ctx, uri: string): Promise<string | undefined> {
  if (!uri.startsWith(URI_PREFIX) || !mayRead(ctx)) return
  try {
    return JSON.stringify(await blueprints.get(ctx, uri.slice(URI_PREFIX.length), createDiscardedContext()))
  } catch (error) {
    if (!(error instanceof Problem && error.status === 404)) throw error
  }
}

const mayRead = ({ actor }: Ctx) => scopesAllow(actor.scopes, 'blueprints', 'read')
