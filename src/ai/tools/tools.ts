import type { OpenCtx } from '../../accounts/guard'
import { keepableText, parseJson } from '../../core/body'
import { report } from '../../core/log'
import { Problem } from '../../core/problem'
import type { AiTarget } from '../../plugins/integrations/targets/ai'
import type { ToolCall } from '../shapes'
import { blueprints } from './blueprints'
import { integrations } from './integrations'
import type { Calling, Tool } from './tool'

const kinds = { blueprints, tools: integrations }

export type Tools = ReadonlyMap<string, Tool>

const RESULT = 64 << 10 // characters; models are told no more

/** What an agent may use for a caller, by name. Of those with the same name, the first. */
export async function toolsFor(ctx: OpenCtx, target: Pick<AiTarget, keyof typeof kinds>): Promise<Tools> {
  const names = Object.keys(kinds) as (keyof typeof kinds)[]
  const all = (await Promise.all(names.map((kind) => kinds[kind](ctx, target[kind] ?? [])))).flat()
  const known = new Map<string, Tool>()
  for (const tool of all) if (!known.has(tool.name)) known.set(tool.name, tool)
  return known
}

/** What a call came to: as text for the model, whether it succeeded or not. */
export async function resultOf(tools: Tools, calling: Calling, call: ToolCall): Promise<string> {
  const { text } = await outcomeOf(calling, () => {
    const input = inputOf(call)
    const tool = tools.get(call.function.name)
    if (!tool) throw new Problem(404, 'TOOL_NOT_FOUND', `There is no tool "${call.function.name}".`)
    return tool.run(calling, input)
  })
  return text
}

/** What the work of a tool came to, as text for a model. */
export async function outcomeOf(
  calling: Calling,
  work: () => Promise<unknown>,
): Promise<{ text: string; failed: boolean }> {
  try {
    return { text: await asText(await work()), failed: false }
  } catch (error) {
    calling.signal.throwIfAborted()
    return { text: cut(JSON.stringify({ error: refused(calling.ctx, error) })), failed: true }
  }
}

/** @throws 400 for what is no JSON, or no object */
export function inputOf({ function: { arguments: text } }: ToolCall): Record<string, unknown> {
  const input = text.trim() ? read(text) : {}
  if (input !== null && typeof input === 'object' && !Array.isArray(input)) return input as Record<string, unknown>
  throw new Problem(400, 'INVALID_ARGUMENTS', 'The arguments of a call are an object, as JSON.')
}

function read(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
}

async function asText(result: unknown): Promise<string> {
  const text =
    result instanceof Response ? await result.text() : typeof result === 'string' ? result : JSON.stringify(result)
  return cut(keepableText(text ?? 'null'))
}

const cut = (text: string) =>
  text.length <= RESULT ? text : `${text.slice(0, RESULT).toWellFormed()}… (cut: this is not all)`

function refused({ tenant }: Calling['ctx'], error: unknown) {
  if (error instanceof Problem) {
    const { code, message, more } = error
    return { code, message, details: more.details }
  }
  report('TOOL_FAILED', { tenant, cause: error })
  return { code: 'INTERNAL', message: 'It failed on the side of the platform.' }
}
