import type { Ctx } from '../../accounts/guard'
import { within } from '../../accounts/permissions'
import * as blueprints from '../../blueprints/blueprints'
import { Problem } from '../../core/problem'

const START = 'atoll://blueprints/'

/** Verbs that answer requests speak HTTP; nobody reads what they say by it here. */
const unheard = () => ({ request: new Request('http://mcp/'), set: { headers: {} } })

/** The definitions of blueprints that a caller may know. */
export async function definitions(ctx: Ctx) {
  if (!mayRead(ctx)) return []
  const all: Awaited<ReturnType<typeof blueprints.list>> = []
  for (let page = 1; ; page++) {
    const some = await blueprints.list(ctx, { limit: '1000', page: `${page}` }, unheard())
    all.push(...some)
    if (some.length < 1_000) break
  }
  return all.map(({ key, name, description }) => ({
    ...{ uri: `${START}${key}`, name: key, title: name, description, mimeType: 'application/json' },
  }))
}

/** One of them, as JSON; undefined for what is not there for the caller. */
export async function definition(ctx: Ctx, uri: string): Promise<string | undefined> {
  if (!uri.startsWith(START) || !mayRead(ctx)) return
  try {
    return JSON.stringify(await blueprints.get(ctx, uri.slice(START.length), unheard()))
  } catch (error) {
    if (!(error instanceof Problem && error.status === 404)) throw error
  }
}

const mayRead = ({ actor }: Ctx) => within(actor.scopes, 'blueprints', 'read')
