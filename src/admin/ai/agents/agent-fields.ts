import type { FormField, FormValues } from '../../fields/field-form'
import { BlueprintsInput, KnowledgeInput, MoreToggle, RolesInput, SourceInput, ToolsInput } from './agent-inputs'

/** The form's own field that shows the others. */
export const MORE_KEY = 'showsMore'

const rare = (field: FormField): FormField => ({ ...field, isHidden: (values: FormValues) => !values[MORE_KEY] })

/** The fields of the form of an agent. */
export const agentFields: readonly FormField[] = [
  { key: 'name', title: 'Name', type: 'string', required: true },
  {
    ...{ key: 'sourceId', title: 'Source', type: 'string', required: true, Input: SourceInput },
    description: 'The connection to the model.',
  },
  { key: 'model', title: 'Model', type: 'string', description: 'Default: the model of the source.' },
  {
    ...{ key: 'systemPrompt', title: 'Instructions', type: 'text' },
    description: 'Instructions that the model gets before each conversation. Only admins see them.',
  },
  {
    ...{ key: 'blueprints', title: 'Data', type: 'object', Input: BlueprintsInput },
    description: 'It finds and changes entities of these blueprints, with the rights of the person who asks it.',
  },
  {
    ...{ key: 'tools', title: 'Tools', type: 'object', Input: ToolsInput },
    description: 'Integrations with the trigger “tool” that it may call.',
  },
  {
    ...{ key: 'vectorStores', title: 'Knowledge', type: 'object', Input: KnowledgeInput },
    description: 'It answers from the files that were uploaded for these readers.',
  },
  {
    ...{ key: 'roles', title: 'Roles that may use it', type: 'object', Input: RolesInput },
    description: 'Default: every signed-in user.',
  },
  { key: 'active', title: 'Active', type: 'boolean', required: true, default: true },
  { key: MORE_KEY, type: 'boolean', Input: MoreToggle },
  rare({
    ...{ key: 'description', title: 'Description', type: 'text' },
    description: 'Shown to users, and to agents that can call it.',
  }),
  rare({
    ...{ key: 'workspaceRoles', title: 'Roles in the workspace', type: 'object', Input: RolesInput },
    description: 'Members of the active workspace with one of these roles can also use it.',
  }),
  rare({
    ...{ key: 'temperature', title: 'Temperature', type: 'number', min: 0, max: 2 },
    description: '0 gives the same answer each time, 2 the most varied ones.',
  }),
  rare({ key: 'max_tokens', title: 'Longest answer', type: 'integer', description: 'In tokens.' }),
  rare({
    ...{ key: 'maxToolRounds', title: 'Rounds of tools', type: 'integer', min: 0, max: 50 },
    description: 'How often it may call tools before it answers. Default: 8.',
  }),
  rare({
    ...{ key: 'historyTokens', title: 'Memory', type: 'integer' },
    description: 'The tokens of a conversation that the model gets word by word. Default: 16,000.',
  }),
  rare({ key: 'top_p', title: 'Top P', type: 'number', min: 0, max: 1 }),
  rare({ key: 'frequency_penalty', title: 'Frequency penalty', type: 'number', min: -2, max: 2 }),
  rare({ key: 'presence_penalty', title: 'Presence penalty', type: 'number', min: -2, max: 2 }),
  rare({
    ...{ key: 'recordThread', title: 'Keep every conversation', type: 'boolean', required: true },
    description: 'Also those that programs hold without a thread.',
  }),
  rare({
    ...{ key: 'allowSystemMessages', title: 'Programs may add instructions', type: 'boolean', required: true },
    description: 'They may send messages with the role “system”.',
  }),
  rare({
    ...{ key: 'forbidClientRules', title: 'OpenAI clients may not add rules', type: 'boolean', required: true },
    description: 'Otherwise, their system messages are rules below the instructions.',
  }),
]
