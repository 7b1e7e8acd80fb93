import type OpenAI from 'openai'
import { badRequest, Problem } from '../../core/problem'
import type { ClientTool, CompletionRequest } from '../shapes'
import type { Tool } from './tool'
import type { Tools } from './tools'

/** The definition of a tool in the format of OpenAI's API. */
export type OpenAiTool = OpenAI.ChatCompletionFunctionTool

/** Returns the definition of a tool for a model. */
export const toOpenAiTool = ({
  name,
  description,
  parameters,
}: Pick<Tool, 'name' | 'description' | 'parameters'>): OpenAiTool => ({
  type: 'function',
  function: { name, description, parameters },
})

/** Returns the tools that the client runs, by name. @throws 400 INVALID_INPUT, or TOOL_NAME_TAKEN for a duplicate name */
export function parseClientTools(
  { clientTools, tools }: Pick<CompletionRequest, 'clientTools' | 'tools'>,
  serverTools: Tools,
): Map<string, OpenAiTool> {
  const byName = new Map<string, OpenAiTool>()
  const requested = [...listWithPaths('clientTools', clientTools), ...listWithPaths('tools', tools)]
  for (const { one, path } of requested) {
    const tool = 'function' in one ? one : toFunctionTool(one)
    const { name, parameters } = tool.function
    if (serverTools.has(name) || byName.has(name))
      throw new Problem(400, 'TOOL_NAME_TAKEN', `Another tool is named "${name}". Choose another name.`, {
        details: [{ path, message: 'This name is taken.' }],
      })
    if (parameters?.type !== undefined && parameters.type !== 'object')
      badRequest({ path, message: 'The schema of a tool must have the type "object".' })
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

const listWithPaths = (name: string, tools: ClientTool[] | null | undefined) =>
  (tools ?? []).map((one, n) => ({ one, path: `/${name}/${n}` }))

const toFunctionTool = ({ name, description, schema }: Extract<ClientTool, { name: string }>) => ({
  type: 'function' as const,
  function: { name, description, parameters: schema },
})
