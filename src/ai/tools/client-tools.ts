import type OpenAI from 'openai'
import { badRequest, Problem } from '../../core/problem'
import type { ClientTool } from '../shapes'
import type { Tool } from './tool'
import type { Tools } from './tools'

/** A tool as models are told it. */
export type OpenAiTool = OpenAI.ChatCompletionFunctionTool

export const toOpenAiTool = ({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): OpenAiTool => ({
  type: 'function',
  function: { name, description, parameters },
})

/** Tools that the client runs, which we never do. @throws 400, also TOOL_NAME_TAKEN for the name of another */
export function parseClientTools(requested: ClientTool[], serverTools: Tools): Map<string, OpenAiTool> {
  const byName = new Map<string, OpenAiTool>()
  for (const [n, one] of requested.entries()) {
    const tool = 'function' in one ? one : toFunctionTool(one)
    const { name, parameters } = tool.function
    if (serverTools.has(name) || byName.has(name))
      throw new Problem(400, 'TOOL_NAME_TAKEN', `Another tool is named "${name}". Choose another name.`, {
        details: [{ path: `/clientTools/${n}`, message: 'This name is taken.' }],
      })
    if (parameters?.type !== undefined && parameters.type !== 'object')
      badRequest({ path: `/clientTools/${n}`, message: 'The schema of a tool must have the type "object".' })
    byName.set(
      name,
      toOpenAiTool({
        ...tool.function,
        description: tool.function.description ?? '',
        parameters: { type: 'object', properties: {}, ...parameters },
      }),
    )
  }
  return byName
}

const toFunctionTool = ({ name, description, schema }: Extract<ClientTool, { name: string }>) => ({
  type: 'function' as const,
  function: { name, description, parameters: schema },
})
