import { asc, inArray } from 'drizzle-orm'
import type { OpenCtx } from '../../accounts/guard'
import { isKnown } from '../../core/etag'
import { hashed } from '../../core/secret'
import { streamOf } from '../../core/stream'
import { waitsLong } from '../../tenancy/caller'
import type { Tenant } from '../../tenancy/tenants'
import { blueprints } from '../tables'
// @ts-expect-error it is read as text
import client from './client.ts' with { type: 'text' }
import { declarationOf } from './declaration'
import { namesFor } from './names'
// @ts-expect-error it is read as text
import wire from './wire.ts' with { type: 'text' }

/** The types alone, or with a client. */
export type What = 'types' | 'client'

const AT_ONCE = 20 // blueprints, whose definitions may be a megabyte each

type Known = { key: string; version: number; created: string; updated: string }

const known = ({ db }: Tenant): Promise<Known[]> => {
  const { key, version, created, updated } = blueprints
  return db.select({ key, version, created, updated }).from(blueprints)
}

/** TypeScript of a tenant's blueprints, piece by piece. */
export async function* written(tenant: Tenant, what: What, all?: Known[]): AsyncGenerator<string, void> {
  const found = all ?? (await known(tenant))
  // Who came first keeps its name.
  const byAge = found.toSorted((one, other) => (one.created + one.key < other.created + other.key ? -1 : 1))
  const names = namesFor(
    byAge.map(({ key }) => key),
    wire + client,
  )
  const keys = [...names.keys()].sort()
  yield `// The blueprints of the tenant "${tenant.tenant}", written by \`atoll types\`. Change them, not this file.\n\n${code(wire)}`
  for (let start = 0; start < keys.length; start += AT_ONCE) {
    const some = await tenant.db
      .select()
      .from(blueprints)
      .where(inArray(blueprints.key, keys.slice(start, start + AT_ONCE)))
      .orderBy(asc(blueprints.key))
    for (const one of some) {
      yield `\n${declarationOf(one, names.get(one.key)!)}`
      // Others get their turn.
      await new Promise(setImmediate)
    }
  }
  if (what === 'client') yield `\n${code(client)}`
}

/** What of a file of ours is for others. */
const code = (text: string) => text.replace(/^(import .*|\s*\/\/ biome-ignore.*)\n+/gm, '')

/** The same as a file, for those who edit blueprints. */
export async function file(ctx: OpenCtx, what: What, request: Request): Promise<Response> {
  const all = await known(ctx)
  const states = all.map(({ key, version, updated }) => `${key} ${version} ${updated}`).sort()
  const etag = `"${hashed([ctx.tenant, what, wire, client, ...states].join('\n')).slice(0, 32)}"`
  const headers = { 'content-type': 'text/plain;charset=utf-8', 'cache-control': 'private, no-cache', etag }
  if (isKnown(request, etag)) return new Response(null, { status: 304, headers })
  waitsLong(request)
  return new Response(streamOf(written(ctx, what, all)), { headers })
}
