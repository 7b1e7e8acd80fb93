import type OpenAI from 'openai'
import { toBodyStream } from '../../core/body-stream'
import { now } from '../../core/clock'
import type { UpstreamBody } from '../../core/http-stream'
import { parseInSlices, type RunSlice } from '../../core/sliced-json'
import { estimateMessageTokens, estimateTokens } from '../token-estimate'
import { type SourceRequest, SourceStatusError } from './source-request'

type Body = OpenAI.ChatCompletionCreateParams
type Message = OpenAI.ChatCompletionMessageParam
type Call = { id: string; type: 'function'; function: { name: string; arguments: string } }

/**
 * The built-in source, which answers like OpenAI's API without any server: it repeats the last user message.
 * Lines such as `call find_books {"limit":2}` make it call tools, those of one step at once. A line `then` begins the next
 * step, after the tools have answered. When no step is left, it repeats the results of the tools.
 * So `call find_books {}` and `call get_books {"identifier":"emma"}`, a line `then` and a line `That is all.` call two tools
 * and end with `That is all.` If the request wants JSON and the text is none, it answers `{"echo": "…"}`, or the first
 * example of the requested schema.
 */
export async function echo(path: string, { body, signal }: SourceRequest, runSlice: RunSlice): Promise<UpstreamBody> {
  signal?.throwIfAborted()
  if (path !== '/chat/completions') throw new SourceStatusError(404, new Headers())
  const chatRequest = (await parseInSlices(body, Number.POSITIVE_INFINITY, runSlice)) as Body
  // It reads texts only.
  if (chatRequest.messages.some(hasParts)) throw new SourceStatusError(400, new Headers())
  const name = hashMessages(chatRequest.messages)
  const { content, calls } = createReply(chatRequest, name)
  const finish_reason = calls.length ? 'tool_calls' : 'stop'
  const usage = estimateUsage(chatRequest, content, calls)
  const head = { id: `chatcmpl-${name}`, created: Math.floor(now() / 1000), model: chatRequest.model }
  if (chatRequest.stream) return toBodyStream(streamFrames(content, calls, finish_reason, head, usage))
  const message = { role: 'assistant', content, ...(calls.length && { tool_calls: calls }) }
  const choices = [{ index: 0, message, finish_reason }]
  return new TextEncoder().encode(JSON.stringify({ ...head, object: 'chat.completion', choices, usage }))
}

function createReply(
  { messages, tools, response_format: format }: Body,
  name: string,
): { content: string; calls: Call[] } {
  const lastUserIndex = messages.findLastIndex(({ role }) => role === 'user')
  const messagesSince = messages.slice(lastUserIndex + 1)
  const stepsDone = messagesSince.filter((one) => one.role === 'assistant' && one.tool_calls?.length).length
  const step = toText(messages[lastUserIndex]).split(/^then$/m)[stepsDone]
  const toolResults = messagesSince.filter(({ role }) => role === 'tool').map(toText)
  const lines = (step ?? toolResults.join('\n')).trim().split('\n')
  const calls = tools?.length && step !== undefined ? lines.flatMap((line, n) => parseCall(line, `${name}_${n}`)) : []
  const text = calls.length ? lines.filter((line) => !CALL_PATTERN.test(line)).join('\n') : lines.join('\n')
  return { content: format && format.type !== 'text' ? toJsonContent(text, format) : text, calls }
}

const toText = (message: Message | undefined) => (typeof message?.content === 'string' ? message.content : '')
const hasParts = ({ content }: Message) => Array.isArray(content)

const CALL_PATTERN = /^call ([\w-]+) ?(.*)$/

function parseCall(line: string, id: string): Call[] {
  const [, name, text] = CALL_PATTERN.exec(line) ?? []
  return name ? [{ id: `call_${id}`, type: 'function', function: { name, arguments: text || '{}' } }] : []
}

const HASHED_CHARACTERS = 200 // of each message, from its end

/** Returns an id that depends on the messages alone, so that answers are reproducible. */
const hashMessages = (messages: Message[]) =>
  messages
    .reduce((hash, { content, ...others }) => {
      const text = typeof content === 'string' ? content : JSON.stringify(content)
      const known = `${JSON.stringify(others)} ${text?.length} ${text?.slice(-HASHED_CHARACTERS)}`
      return BigInt(Bun.hash(known, hash))
    }, 0n)
    .toString(36)

function toJsonContent(text: string, format: Body['response_format']) {
  try {
    JSON.parse(text)
    return text
  } catch {
    const schema = format?.type === 'json_schema' ? format.json_schema.schema : undefined
    const examples = schema?.examples
    return JSON.stringify(Array.isArray(examples) && examples.length ? examples[0] : { echo: text })
  }
}

function estimateUsage({ messages }: Body, content: string, calls: Call[]) {
  const prompt_tokens = estimateMessageTokens(messages)
  const completion_tokens = estimateTokens(content) + (calls.length ? estimateTokens(JSON.stringify(calls)) : 0)
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens }
}

async function* streamFrames(content: string, calls: Call[], finish_reason: string, head: object, usage: object) {
  const chunk = (more: object) => `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', ...more })}\n\n`
  const delta = (delta: object, finish_reason: string | null = null) =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] })
  yield delta({ role: 'assistant', content: '' })
  for (const word of content.match(/\S+\s*|\s+/g) ?? []) yield delta({ content: word })
  if (calls.length) yield delta({ tool_calls: calls.map((call, index) => ({ index, ...call })) })
  yield delta({}, finish_reason)
  yield chunk({ choices: [], usage })
  yield 'data: [DONE]\n\n'
}
