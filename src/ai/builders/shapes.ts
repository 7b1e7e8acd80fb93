import { type Static, t } from 'elysia'
import { Blueprint, NewBlueprint } from '../../blueprints/shapes'
import { line } from '../../core/shapes'
import { Asked, alsoSent } from '../shapes'

const create = t.Optional(
  t.Nullable(t.Boolean({ description: 'whether what is drafted is made at once, by the rights of the caller' })),
)

/** What a builder is asked by. */
export const Building = t.Object({ ...Asked.properties, create }, alsoSent)

/** What blueprints are drafted by. */
export const Wish = t.Object({
  prompt: t.String({ minLength: 1, maxLength: 100_000, description: 'what they are for' }),
  model: t.Optional(t.Nullable(line(200))),
  create,
})
export type Wish = Static<typeof Wish>

const tokens = t.Number()
export const Blueprints = t.Object({
  blueprints: t.Array(NewBlueprint, { description: 'each can be sent to /api/blueprints' }),
  created: t.Optional(t.Array(Blueprint, { description: 'what was made of them, if that was wanted' })),
  usage: t.Object({ prompt_tokens: tokens, completion_tokens: tokens, total_tokens: tokens }),
})
export type Blueprints = Static<typeof Blueprints>
