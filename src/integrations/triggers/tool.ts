import { t } from 'elysia'
import { jsonObject, textMatching } from '../../core/shapes'
import type { TriggerKind } from './trigger-kind'

const shape = t.Object({
  name: textMatching('^[a-zA-Z0-9_-]{1,64}$', 'Name a tool with 1 to 64 letters, digits, _ and -.', {
    description: 'the name that models see',
  }),
  description: t.String({ minLength: 1, maxLength: 4_000, description: 'what the tool does, for models' }),
  parameters: t.Optional({ ...jsonObject, description: 'a JSON Schema of the arguments' }),
})

/** A call by an AI that has it as a tool. `parameters` is a JSON Schema. */
export const tool: TriggerKind<typeof shape> = {
  shape,
  validate: ({ parameters = {} }) =>
    parameters.type === undefined || parameters.type === 'object'
      ? []
      : [{ path: '/parameters/type', message: 'The schema of a tool must have the type "object".' }],
}
