import { type TSchema, t } from 'elysia'
import type { Ctx } from '../../accounts/guard'
import { refuseBeyond } from '../../accounts/permissions'
import { invalid } from '../../core/problem'
import { fitting } from '../../core/shapes'
import type { Tool } from '../tools/tool'
import type { Draft, DraftKind } from './drafts'
import { type KindName, kinds } from './kinds'

const MOST = 20 // at once

/** What models are told of drafts of a kind, as JSON Schema. */
export function schemaOf(name: KindName): Record<string, unknown> {
  const { told, shape } = kinds[name] as DraftKind<TSchema>
  return JSON.parse(JSON.stringify(t.Object({ [name]: t.Array(told ?? shape, { minItems: 1, maxItems: MOST }) })))
}

/** Drafts as they can be sent to be made, without what is not their business. @throws 400 with all that is wrong with them */
export async function judged(ctx: Ctx, name: KindName, given: unknown): Promise<unknown[]> {
  const kind = kinds[name] as unknown as DraftKind<TSchema>
  const shape = t.Object({ [name]: t.Array(kind.shape, { maxItems: MOST }) })
  const drafts = (fitting(shape, given) as Record<string, unknown[]>)[name]!
  const flaws = await kind.flaws(ctx, drafts as never)
  if (flaws.length) invalid(...flaws.map(({ path, message }) => ({ path: `/${name}${path}`, message })))
  return drafts
}

/** Makes what was drafted, one after the other, with the caller's rights. @throws what making one throws */
export async function made(ctx: Ctx, name: KindName, drafts: unknown[], request: Request): Promise<Required<Draft>[]> {
  const { inOrder = (drafts: unknown[]) => drafts, make } = kinds[name] as unknown as DraftKind<TSchema>
  const all: Required<Draft>[] = []
  for (const draft of inOrder(drafts as never) as unknown[])
    all.push({
      kind: name,
      draft,
      created: await make(ctx, draft as never, { request: plain(request), set: { headers: {} } }),
    })
  return all
}

/** What a request says of one thing is not meant for those that are made by the way. */
const plain = ({ url }: Request) => new Request(url, { method: 'POST' })

/** @throws 403 where the caller, or their API token, may not make such things */
export async function refuseUnlessMayMake(ctx: Ctx, names: readonly KindName[]) {
  for (const name of names) {
    const { area, refuseUnlessMayMake } = kinds[name]
    await refuseUnlessMayMake(ctx)
    refuseBeyond(ctx.actor, area, 'write')
  }
}

/** A tool by which a model drafts. What is wrong with its drafts is told to the model; `drafts` takes those that are right. */
export function draftingTool(ctx: Ctx, name: KindName, drafts: Draft[], making?: Request): Tool {
  const { one } = kinds[name]
  const end = making ? 'They are made at once.' : 'They are shown to the user, and made by nobody yet.'
  return {
    name: `draft_${name}`,
    description: `Drafts ${name}, up to ${MOST} at once. ${end} Where it refuses some, correct them and draft all again.`,
    parameters: schemaOf(name),
    async run(_, input) {
      const fit = await judged(ctx, name, input)
      const all: Draft[] = making ? await made(ctx, name, fit, making) : fit.map((draft) => ({ kind: name, draft }))
      drafts.push(...all)
      return { [making ? 'made' : 'drafted']: all.length, what: fit.length === 1 ? one : name }
    },
  }
}
