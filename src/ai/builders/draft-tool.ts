import { type TSchema, t } from 'elysia'
import type { Ctx } from '../../accounts/context'
import { assertScope } from '../../accounts/permissions'
import { badRequest } from '../../core/problem'
import { parseWithShape } from '../../core/shapes'
import type { Tool } from '../tools/tool'
import type { DraftKind } from './draft-kind'
import { type Draft, type DraftKindName, draftKinds } from './kinds/index'

const MAX_DRAFTS_PER_CALL = 20

/** Returns the JSON Schema of the drafts of a kind, for models. */
export function toDraftSchema(name: DraftKindName): Record<string, unknown> {
  const { modelSchema, shape } = draftKinds[name] as DraftKind<TSchema>
  return JSON.parse(
    JSON.stringify(t.Object({ [name]: t.Array(modelSchema ?? shape, { minItems: 1, maxItems: MAX_DRAFTS_PER_CALL }) })),
  )
}

/** Returns valid drafts, without unknown keys. @throws 400 INVALID_INPUT with all their errors */
export async function parseDrafts(ctx: Ctx, name: DraftKindName, input: unknown): Promise<unknown[]> {
  const kind = draftKinds[name] as unknown as DraftKind<TSchema>
  const shape = t.Object({ [name]: t.Array(kind.shape, { maxItems: MAX_DRAFTS_PER_CALL }) })
  const drafts = (parseWithShape(shape, input) as Record<string, unknown[]>)[name]!
  const fieldErrors = await kind.validate(ctx, drafts as never)
  if (fieldErrors.length) badRequest(...fieldErrors.map(({ path, message }) => ({ path: `/${name}${path}`, message })))
  return drafts
}

/** Creates drafts one after the other, with the caller's rights. @throws what creating one throws */
export async function createDrafts(
  ctx: Ctx,
  name: DraftKindName,
  drafts: unknown[],
  request: Request,
): Promise<Required<Draft>[]> {
  const { sortForCreation = (drafts: unknown[]) => drafts, create } = draftKinds[name] as unknown as DraftKind<TSchema>
  const createdDrafts: Required<Draft>[] = []
  for (const draft of sortForCreation(drafts as never) as unknown[])
    createdDrafts.push({
      kind: name,
      draft,
      created: await create(ctx, draft as never, { request: toBareRequest(request), set: { headers: {} } }),
    })
  return createdDrafts
}

/** Drops the headers of a request, such as `If-Match`, which are not meant for the drafts that it creates. */
const toBareRequest = ({ url }: Request) => new Request(url, { method: 'POST' })

/** @throws 403 when the caller, or the caller's API token, may not create resources of these kinds */
export async function assertMayCreateDrafts(ctx: Ctx, names: readonly DraftKindName[]) {
  for (const name of names) {
    const { area, assertMayCreate } = draftKinds[name]
    await assertMayCreate(ctx)
    assertScope(ctx.actor, area, 'write')
  }
}

/**
 * Returns a tool with which a model drafts resources of a kind. The model gets the errors of invalid drafts. Valid drafts
 * are added to `drafts`, and are created if there is a `createRequest`.
 */
export function buildDraftTool(ctx: Ctx, name: DraftKindName, drafts: Draft[], createRequest?: Request): Tool {
  const { singular } = draftKinds[name]
  const consequence = createRequest ? 'They are made at once.' : 'They are shown to the user, and made by nobody yet.'
  return {
    name: `draft_${name}`,
    description: `Drafts ${name}, up to ${MAX_DRAFTS_PER_CALL} at once. ${consequence} Where it refuses some, correct them and draft all again.`,
    parameters: toDraftSchema(name),
    async run(_, input) {
      const validDrafts = await parseDrafts(ctx, name, input)
      const newDrafts: Draft[] = createRequest
        ? await createDrafts(ctx, name, validDrafts, createRequest)
        : validDrafts.map((draft) => ({ kind: name, draft }))
      drafts.push(...newDrafts)
      return {
        [createRequest ? 'made' : 'drafted']: newDrafts.length,
        what: validDrafts.length === 1 ? singular : name,
      }
    },
  }
}
