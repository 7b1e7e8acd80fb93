import type { TriggerKind } from './trigger-kind'

export const tool: TriggerKind<'tool'> = {
  label: 'a model uses it as a tool',
  fields: [
    {
      key: 'name',
      title: 'Name of the tool',
      description: 'Letters, digits, _ and -. Models see it.',
      type: 'string',
      required: true,
    },
    {
      key: 'description',
      title: 'What the tool does',
      description: 'Models decide by it when to use the tool.',
      type: 'text',
      required: true,
    },
    { key: 'parameters', title: 'Arguments', description: 'A JSON Schema of an object.', type: 'object' },
  ],
  describe: ({ name }) => `When a model uses the tool ${name}`,
  hasCaller: true,
}
