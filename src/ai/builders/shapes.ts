import { type Static, t } from 'elysia'
import { Blueprint, NewBlueprint } from '../../blueprints/shapes'
import { line } from '../../core/shapes'
import { CompletionRequest, ignoredForeignKeys } from '../shapes'

const createFlag = t.Optional(
  t.Nullable(t.Boolean({ description: 'create the drafts immediately, with the rights of the caller' })),
)

export const DraftRequest = t.Object({ ...CompletionRequest.properties, create: createFlag }, ignoredForeignKeys)

export const BlueprintDraftRequest = t.Object({
  prompt: t.String({ minLength: 1, maxLength: 100_000, description: 'what the blueprints are for' }),
  model: t.Optional(t.Nullable(line(200))),
  create: createFlag,
})
export type BlueprintDraftRequest = Static<typeof BlueprintDraftRequest>

const tokens = t.Number()
export const DraftedBlueprints = t.Object({
  blueprints: t.Array(NewBlueprint, { description: 'each can be sent to /api/blueprints' }),
  created: t.Optional(t.Array(Blueprint, { description: 'the created blueprints, with `create`' })),
  usage: t.Object({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens }),
})
export type DraftedBlueprints = Static<typeof DraftedBlueprints>
