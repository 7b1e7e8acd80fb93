import type { PublicCtx } from '../../accounts/context'
import { parseJson, toStorableText } from '../../core/body'
import { assertExactNumbers, InexactNumber, toInexactNumberError } from '../../core/exact-numbers'
import { logError } from '../../core/log'
import { Problem } from '../../core/problem'
import type { AiTarget } from '../../integrations/targets/ai'
import type { ToolCall } from '../shapes'
import { buildEntityTools } from './entity-tools'
import { loadIntegrationTools } from './integration-tools'
import type { Tool, ToolContext } from './tool'

const toolKinds = { blueprints: buildEntityTools, tools: loadIntegrationTools }

export type Tools = ReadonlyMap<string, Tool>

const MAX_RESULT_CHARACTERS = 64 << 10 // characters of a result; longer ones are cut

/** Returns the tools that an agent may use for a caller, by name. Of tools with the same name, the first counts. */
export async function loadTools(ctx: PublicCtx, target: Pick<AiTarget, keyof typeof toolKinds>): Promise<Tools> {
  const names = Object.keys(toolKinds) as (keyof typeof toolKinds)[]
  const tools = (await Promise.all(names.map((kind) => toolKinds[kind](ctx, target[kind] ?? [])))).flat()
  const byName = new Map<string, Tool>()
  for (const tool of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool)
  return byName
}

/** Runs a tool call and returns its result or its error, as text for the model. */
export async function runToolCall(tools: Tools, toolContext: ToolContext, call: ToolCall): Promise<string> {
  const { text } = await runForModel(toolContext, () => {
    const input = parseArguments(call)
    assertExactArguments(call)
    const tool = tools.get(call.function.name)
    if (!tool) throw new Problem(404, 'TOOL_NOT_FOUND', `There is no tool "${call.function.name}".`)
    return tool.run(toolContext, input)
  })
  return text
}

/** Runs `work` and returns its result or its error, as text for the model. @throws the reason when it is aborted */
export async function runForModel(
  toolContext: ToolContext,
  work: () => Promise<unknown>,
): Promise<{ text: string; failed: boolean }> {
  try {
    return { text: await toResultText(await work()), failed: false }
  } catch (error) {
    toolContext.signal.throwIfAborted()
    return { text: truncate(JSON.stringify({ error: toErrorBody(toolContext.ctx, error) })), failed: true }
  }
}

/** Returns the arguments of a call, `{}` if there are none. @throws 400 INVALID_ARGUMENTS when they are no JSON object */
export function parseArguments({ function: { arguments: text } }: ToolCall): Record<string, unknown> {
  const input = text.trim() ? parseJsonOrUndefined(text) : {}
  if (input !== null && typeof input === 'object' && !Array.isArray(input)) return input as Record<string, unknown>
  throw new Problem(400, 'INVALID_ARGUMENTS', 'The arguments of a tool call must be a JSON object.')
}

/** A client gets the text of its calls as the model wrote it; what the server runs would have another number. */
function assertExactArguments({ function: { arguments: text } }: ToolCall) {
  try {
    assertExactNumbers(text)
  } catch (error) {
    if (!(error instanceof InexactNumber)) throw error
    const { path, message } = toInexactNumberError(error, text)
    throw new Problem(400, 'INVALID_ARGUMENTS', message, { details: [{ path, message }] })
  }
}

function parseJsonOrUndefined(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
}

async function toResultText(result: unknown): Promise<string> {
  const text =
    result instanceof Response ? await result.text() : typeof result === 'string' ? result : JSON.stringify(result)
  return truncate(toStorableText(text ?? 'null'))
}

const truncate = (text: string) =>
  text.length <= MAX_RESULT_CHARACTERS
    ? text
    : `${text.slice(0, MAX_RESULT_CHARACTERS).toWellFormed()}… (cut: this is not all)`

function toErrorBody({ tenant }: ToolContext['ctx'], error: unknown) {
  if (error instanceof Problem) {
    const { code, message, more } = error
    return { code, message, details: more.details }
  }
  logError('TOOL_FAILED', { tenant, cause: error })
  return { code: 'INTERNAL', message: 'The tool failed because of an internal error.' }
}
