import type { Static } from 'elysia'
import type { Actor } from '../accounts/actors'
import * as blueprints from '../blueprints/blueprints'
import { type Blueprint, BlueprintChange, type BlueprintDryRun, NewBlueprint } from '../blueprints/shapes'
import * as updates from '../blueprints/update'
import type { HttpContext } from '../core/etag'
import { tryParseJson } from '../core/json'
import { Problem } from '../core/problem'
import { parseWithShape } from '../core/shapes'
import { getTenant } from '../tenancy/tenants'

const PAGE = 100

/** What a survey says of a change: `entities` are all of the blueprint, `breaking` those that would become invalid. */
export type Survey = Static<typeof BlueprintDryRun>
/** `version` is undefined while a change of entities is under way. */
type Stored = { version?: string }

/** A tenant whose definitions are read and written. `version` is an ETag; another one is 412. */
export type DefinitionTarget = {
  /** Tells targets apart in `.atoll.json`. */
  id: string
  list(): Promise<{ blueprint: Blueprint; version: string }[]>
  create(blueprint: NewBlueprint): Promise<Stored>
  survey(key: string, change: BlueprintChange): Promise<Survey>
  change(key: string, change: BlueprintChange, version?: string): Promise<Stored>
  remove(key: string, force: boolean, version?: string): Promise<void>
}

/** The actor of commands that work on the data here. */
export const OPERATOR: Actor = {
  ...{ user: 'operator', roles: ['admin'], privileged: true, workspace: null, via: 'bearer', scopes: [] },
}

/** Returns a tenant of the data here, through the operations of its API. @throws 404 TENANT_NOT_FOUND */
export async function openLocalTarget(tenant: string): Promise<DefinitionTarget> {
  const ctx = { ...(await getTenant(tenant)), actor: OPERATOR }
  const answerTo = (version?: string): HttpContext => ({
    request: new Request('http://localhost/', { headers: version ? { 'if-match': version } : {} }),
    set: { headers: {} },
  })
  const versionOf = ({ set }: HttpContext) => `${set.headers.etag}`
  return {
    id: `tenant ${tenant}`,
    async list() {
      const models = await blueprints.listVisible(ctx)
      return Promise.all(
        models.map(async ({ key }) => {
          const answer = answerTo()
          const blueprint = await blueprints.get(ctx, key, answer)
          return { blueprint, version: versionOf(answer) }
        }),
      )
    },
    async create(blueprint) {
      const answer = answerTo()
      await blueprints.create(ctx, parseWithShape(NewBlueprint, blueprint), answer)
      return { version: versionOf(answer) }
    },
    survey: (key, change) => updates.dryRun(ctx, key, parseWithShape(BlueprintChange, change), answerTo()),
    async change(key, change, version) {
      const answer = answerTo(version)
      const { status } = await updates.update(ctx, key, parseWithShape(BlueprintChange, change), answer)
      return status === 202 ? {} : { version: versionOf(answer) }
    },
    async remove(key, force, version) {
      await blueprints.remove(ctx, key, force, answerTo(version))
    },
  }
}

/** Returns a tenant of a server, which is asked by its API with an API token. */
export function openRemoteTarget(url: string, token: string, tenant?: string): DefinitionTarget {
  const base = url.replace(/\/+$/, '')
  async function call<Body>(method: string, path: string, body?: unknown, version?: string) {
    const headers = {
      'x-api-key': token,
      ...(tenant && { tenant }),
      ...(version && { 'if-match': version }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const sent = body === undefined ? undefined : JSON.stringify(body)
    const response = await fetch(`${base}/api/blueprints${path}`, { method, headers, body: sent }).catch((cause) => {
      throw new Problem(502, 'SERVER_UNREACHABLE', `${url} cannot be reached: ${cause.message}`, { cause })
    })
    const answer = tryParseJson(await response.text()) as Body & { code?: string; message?: string; details?: never }
    if (response.ok && answer !== undefined)
      return { body: answer as Body, status: response.status, version: response.headers.get('etag') ?? '' }
    const unexpected = `${url} answered ${response.status}, but not as Atoll does. Check the address, and the proxy before the server.`
    const { code = 'UNEXPECTED_ANSWER', message = unexpected, details } = answer ?? {}
    throw new Problem(response.status, code, message, details && { details })
  }
  const pathOf = (key: string) => `/${encodeURIComponent(key)}`
  return {
    id: `${base} ${tenant ?? ''}`.trim(),
    async list() {
      const found: { blueprint: Blueprint; version: string }[] = []
      for (let page = 1; ; page++) {
        const { body } = await call<Blueprint[]>('GET', `?limit=${PAGE}&page=${page}`)
        const whole = await Promise.all(body.map(({ key }) => call<Blueprint>('GET', pathOf(key))))
        found.push(...whole.map(({ body, version }) => ({ blueprint: body, version })))
        if (body.length < PAGE) return found
      }
    },
    create: async (blueprint) => ({ version: (await call('POST', '', blueprint)).version }),
    survey: async (key, change) => (await call<Survey>('PATCH', `${pathOf(key)}?dryRun=true`, change)).body,
    async change(key, change, known) {
      const { status, version } = await call('PATCH', pathOf(key), change, known)
      return status === 202 ? {} : { version }
    },
    async remove(key, force, version) {
      await call('DELETE', `${pathOf(key)}${force ? '?force=true' : ''}`, undefined, version)
    },
  }
}
