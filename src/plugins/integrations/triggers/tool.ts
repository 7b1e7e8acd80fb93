import { t } from 'elysia'
import { free, textMatching } from '../../../core/shapes'
import type { TriggerKind } from './trigger'

const shape = t.Object({
  name: textMatching('^[a-zA-Z0-9_-]{1,64}$', 'Name a tool with 1 to 64 letters, digits, _ and -.', {
    description: 'as models are told it',
  }),
  description: t.String({ minLength: 1, maxLength: 4_000, description: 'what it is good for' }),
  parameters: t.Optional({ ...free, description: 'a JSON Schema of what it takes' }),
})

/** An AI that was offered it as a tool. `parameters` is a JSON Schema. */
export const tool: TriggerKind<typeof shape> = {
  shape,
  flaws: ({ parameters = {} }) =>
    parameters.type === undefined || parameters.type === 'object'
      ? []
      : [{ path: '/parameters/type', message: 'A tool takes an object: its schema has the type "object".' }],
}
