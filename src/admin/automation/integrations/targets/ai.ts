import type { FormField } from '../../../fields/field-form'
import { createConnectionInput, ToolsInput } from './choice-inputs'
import type { TargetKind } from './target-kind'

/** The built-in source, which answers what it was asked. */
const ECHO_SOURCE = { value: 'echo', label: 'echo (built in)' }

const number = (key: string, title: string): FormField => ({ key, title, type: 'number' })
const integer = (key: string, title: string, description?: string): FormField => ({
  key,
  title,
  description,
  type: 'integer',
})

export const ai: TargetKind<'ai'> = {
  label: 'ask a model',
  fields: [
    {
      key: 'sourceId',
      title: 'Connection',
      type: 'string',
      required: true,
      Input: createConnectionInput('openai', [ECHO_SOURCE]),
    },
    { key: 'model', title: 'Model', description: 'Default: the one of the connection.', type: 'string' },
    { key: 'description', title: 'Description', type: 'string' },
    {
      key: 'systemPrompt',
      title: 'Instructions',
      description: 'Instructions that the model gets first.',
      type: 'text',
    },
    { key: 'tools', title: 'Tools', type: 'string', multi: true, Input: ToolsInput },
    { key: 'blueprints', title: 'Blueprints as tools', description: 'Their keys.', type: 'string', multi: true },
    { key: 'vectorStores', title: 'Knowledge', description: 'Scopes or ids.', type: 'string', multi: true },
    number('temperature', 'Temperature'),
    number('top_p', 'Top P'),
    integer('max_tokens', 'Longest answer', 'In tokens.'),
    number('frequency_penalty', 'Frequency penalty'),
    number('presence_penalty', 'Presence penalty'),
    integer('maxToolRounds', 'Rounds of tools', 'How often it may call tools before it answers. Default: 8.'),
    integer(
      'historyTokens',
      'Memory',
      'The tokens of a conversation that the model gets word by word. Default: 16,000.',
    ),
    { key: 'recordThread', title: 'Keep every conversation', type: 'boolean' },
    { key: 'allowSystemMessages', title: 'Programs may add instructions', type: 'boolean' },
    { key: 'forbidClientRules', title: 'OpenAI clients may not add rules', type: 'boolean' },
  ],
  describe: ({ sourceId, model }, findName) => `ask ${model ?? findName(sourceId)}`,
}
