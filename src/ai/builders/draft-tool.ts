import type { Ctx } from '../../accounts/context'
import { assertScope } from '../../accounts/permissions'
import type { Tool } from '../tools/tool'
import { type DraftKind, MAX_DRAFTS_PER_CALL } from './draft-kind'
import { type Draft, type DraftKindName, draftKinds } from './kinds/index'

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
 * are added to `drafts`, and with `creates`, they are created.
 */
export function buildDraftTool(ctx: Ctx, name: DraftKindName, drafts: Draft[], creates: boolean): Tool {
  const { singular, plural, toModelSchema, parse }: DraftKind = draftKinds[name]
  const consequence = creates ? 'They are created immediately.' : 'They are shown to the user. Nothing is created yet.'
  return {
    name: `draft_${name}`,
    description: `Drafts ${plural}, up to ${MAX_DRAFTS_PER_CALL} at once. ${consequence} If it refuses some, correct them and draft all of them again.`,
    parameters: toModelSchema(),
    effect: 'adds',
    async run(_, input) {
      const valid = await parse(ctx, input)
      const finished = creates ? await valid.create() : valid.drafts.map((draft) => ({ draft }))
      drafts.push(...finished.map((one) => ({ kind: name, ...one })))
      return { [creates ? 'created' : 'drafted']: finished.length, kind: finished.length === 1 ? singular : plural }
    },
  }
}
