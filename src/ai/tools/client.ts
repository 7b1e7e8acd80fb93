import type OpenAI from 'openai'
import { invalid, Problem } from '../../core/problem'
import type { ClientTool } from '../shapes'
import type { Tool } from './tool'
import type { Tools } from './tools'

/** A tool as models are told it. */
export type Told = OpenAI.ChatCompletionFunctionTool

export const told = ({ name, description, parameters }: Pick<Tool, 'name' | 'description' | 'parameters'>): Told => ({
  type: 'function',
  function: { name, description, parameters },
})

/** Tools that the client runs, which we never do. @throws 400, also TOOL_NAME_TAKEN for the name of another */
export function clientTools(given: ClientTool[], ours: Tools): Map<string, Told> {
  const known = new Map<string, Told>()
  for (const [n, one] of given.entries()) {
    const tool = 'function' in one ? one : asFunction(one)
    const { name, parameters } = tool.function
    if (ours.has(name) || known.has(name))
      throw new Problem(400, 'TOOL_NAME_TAKEN', `There is another tool with the name "${name}". Choose another one.`, {
        details: [{ path: `/clientTools/${n}`, message: 'This name is taken.' }],
      })
    if (parameters?.type !== undefined && parameters.type !== 'object')
      invalid({ path: `/clientTools/${n}`, message: 'A tool takes an object: its schema has the type "object".' })
    known.set(
      name,
      told({
        ...tool.function,
        description: tool.function.description ?? '',
        parameters: { type: 'object', properties: {}, ...parameters },
      }),
    )
  }
  return known
}

const asFunction = ({ name, description, schema }: Extract<ClientTool, { name: string }>) => ({
  type: 'function' as const,
  function: { name, description, parameters: schema },
})
