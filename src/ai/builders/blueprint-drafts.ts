import type OpenAI from 'openai'
import type { Ctx } from '../../accounts/context'
import { parseJson } from '../../core/body'
import { type FieldError, Problem } from '../../core/problem'
import { disableIdleTimeout, restoreIdleTimeout } from '../../tenancy/client-connection'
import type { CompletionRequest } from '../shapes'
import { completeWithoutStream } from '../turn/completion'
import { callerGoneProblem } from '../turn/errors'
import { getUsableSource } from './builders'
import { assertMayCreateDrafts } from './draft-tool'
import { blueprints } from './kinds/blueprints'
import type { BlueprintDraftRequest, DraftedBlueprints } from './shapes'

const MAX_RETRIED_DRAFT_LENGTH = 20_000 // characters of an invalid draft that the model gets to see again

/** An example for models. The built-in source answers with it by default. */
const EXAMPLE_BLUEPRINTS = {
  blueprints: [
    {
      ...{ key: 'authors', name: 'Authors', description: 'Who wrote books.' },
      fields: [{ key: 'name', type: 'string', required: true }],
      permissions: [{ operation: 'read', scope: 'tenant', roleBased: ['user'] }],
    },
    {
      ...{ key: 'books', name: 'Books', description: 'What can be read.' },
      fields: [
        { key: 'title', type: 'string', required: true },
        { key: 'price', type: 'decimal', min: '0' },
        { key: 'author', type: 'relation', target: 'authors' },
      ],
      permissions: [{ operation: 'read', scope: 'tenant', roleBased: ['user'] }],
    },
  ],
}

const SYSTEM_PROMPT = `You design the data of applications. Answer with JSON alone: {"blueprints": [...]}, of this JSON Schema:
${JSON.stringify(blueprints.toModelSchema())}
A blueprint describes entities as a table does rows. Each entity already has _id, identifier, created, updated, user and
workspace: no field may have one of these names. A field of the type "relation" has a "target": the key of another blueprint. Rules in
"permissions" say who may do what; without any, only admins may. For example:
${JSON.stringify(EXAMPLE_BLUEPRINTS)}`

const responseFormat: CompletionRequest['response_format'] = {
  type: 'json_schema',
  json_schema: {
    name: blueprints.plural,
    schema: {
      ...{
        type: 'object',
        properties: { [blueprints.plural]: { type: 'array', items: { type: 'object' } } },
        required: [blueprints.plural],
      },
      examples: [EXAMPLE_BLUEPRINTS],
    },
  },
}

/**
 * Has a source draft blueprints, and creates them if the request says so. Invalid drafts are sent back to the source once,
 * with their errors.
 * @throws what completions throw, and 403, 404
 * @throws 502 AI_DRAFT_INVALID with the errors when the second draft is invalid too
 */
export async function draftBlueprints(
  ctx: Ctx,
  sourceId: string,
  draftRequest: BlueprintDraftRequest,
  request: Request,
): Promise<DraftedBlueprints> {
  await getUsableSource(ctx, sourceId)
  if (draftRequest.create) await assertMayCreateDrafts(ctx, ['blueprints'])
  const abortController = new AbortController()
  const abort = () => abortController.abort(callerGoneProblem())
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', abort, { once: true })
  disableIdleTimeout(request)
  try {
    const state = { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, usesResponseFormat: true }
    const valid = await draftWithRetry(ctx, { sourceId, draftRequest, request, abortController, state })
    const created = draftRequest.create ? (await valid.create()).map((blueprint) => blueprint.created) : undefined
    return { blueprints: valid.drafts, ...(created && { created }), usage: state.usage }
  } finally {
    request.signal.removeEventListener('abort', abort)
    restoreIdleTimeout(request)
  }
}

type DraftCallState = { usage: OpenAI.CompletionUsage; usesResponseFormat: boolean }
type DraftContext = {
  sourceId: string
  draftRequest: BlueprintDraftRequest
  request: Request
  abortController: AbortController
  state: DraftCallState
}

type ValidBlueprints = Awaited<ReturnType<typeof blueprints.parse>>

async function draftWithRetry(ctx: Ctx, context: DraftContext): Promise<ValidBlueprints> {
  const first = await askSource(ctx, context, SYSTEM_PROMPT)
  const firstResult = await parseDraftText(ctx, first)
  if ('drafts' in firstResult) return firstResult
  const retryPrompt = `${SYSTEM_PROMPT}\n\nThis was drafted before:\n${first.slice(0, MAX_RETRIED_DRAFT_LENGTH).toWellFormed()}\n\nIt is invalid. Draft all of it again, without these errors:\n${JSON.stringify(firstResult.errors)}`
  const secondResult = await parseDraftText(ctx, await askSource(ctx, context, retryPrompt))
  if ('drafts' in secondResult) return secondResult
  throw new Problem(
    502,
    'AI_DRAFT_INVALID',
    'The AI source drafted invalid blueprints. Describe what you need in more detail, or choose another model.',
    { details: secondResult.errors },
  )
}

/** Returns the text of the source's answer. Retries without a response format if the server refuses it (400). */
async function askSource(ctx: Ctx, context: DraftContext, systemPrompt: string): Promise<string> {
  const { sourceId, draftRequest, request, abortController, state } = context
  const agent = { _id: null, target: { sourceId, systemPrompt } }
  const completionRequest = {
    messages: [{ role: 'user' as const, content: draftRequest.prompt }],
    model: draftRequest.model,
  }
  const requestCompletion = (response_format?: typeof responseFormat) =>
    completeWithoutStream(
      ctx,
      agent,
      { ...completionRequest, response_format },
      { request, abortController },
    ) as Promise<OpenAI.ChatCompletion>
  const { choices, usage } = await requestCompletion(state.usesResponseFormat ? responseFormat : undefined).catch(
    (error) => {
      const { status } = ((error instanceof Problem && error.more.details) || {}) as { status?: number }
      if (!state.usesResponseFormat || status !== 400) throw error
      state.usesResponseFormat = false
      return requestCompletion()
    },
  )
  for (const name of ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const) state.usage[name] += usage![name]
  return choices[0]?.message.content ?? ''
}

async function parseDraftText(ctx: Ctx, text: string): Promise<ValidBlueprints | { errors: FieldError[] }> {
  try {
    return await blueprints.parse(ctx, wrapBlueprints(extractJson(text)))
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400) throw error
    return { errors: (error.more.details as FieldError[]).slice(0, 100) }
  }
}

/** Some models leave out the surrounding object, or the list around a single blueprint. */
function wrapBlueprints(value: unknown) {
  if (Array.isArray(value)) return { [blueprints.plural]: value }
  return value !== null && typeof value === 'object' && 'fields' in value ? { [blueprints.plural]: [value] } : value
}

/** Returns the JSON of an answer, for some models surround it with words. Returns undefined if there is none. */
function extractJson(text: string): unknown {
  const start = text.search(/[[{]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  try {
    return start < 0 ? undefined : parseJson(text.slice(start, end + 1))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
}
