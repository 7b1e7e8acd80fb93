import type OpenAI from 'openai'
import type { Ctx } from '../../accounts/guard'
import { parseJson } from '../../core/body'
import { type Flaw, Problem } from '../../core/problem'
import { waitsLong, waitsNoLonger } from '../../tenancy/caller'
import type { Asked } from '../shapes'
import { answered } from '../turn/completion'
import { gone } from '../turn/failures'
import { mayAsk } from './builders'
import { judged, made, refuseUnlessMayMake, schemaOf } from './drafting'
import type { Blueprints, Wish } from './shapes'

const KIND = 'blueprints'
const SHOWN = 20_000 // characters of a draft that its model is shown again

/** What a draft is like, for models, and for the built-in source, which says it where it is not told another. */
const EXAMPLE = {
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

const PROMPT = `You design the data of applications. Answer with JSON alone: {"blueprints": [...]}, of this JSON Schema:
${JSON.stringify(schemaOf(KIND))}
A blueprint describes entities as a table does rows. Each entity has _id, identifier, created, updated, user and workspace
already: no field is called so. A field of the type "relation" has a "target": the key of another blueprint. Rules in
"permissions" say who may do what; without any, only admins may. For example:
${JSON.stringify(EXAMPLE)}`

const format: Asked['response_format'] = {
  type: 'json_schema',
  json_schema: {
    name: KIND,
    schema: {
      ...{ type: 'object', properties: { [KIND]: { type: 'array', items: { type: 'object' } } }, required: [KIND] },
      examples: [EXAMPLE],
    },
  },
}

/**
 * Has a source draft blueprints. Drafts that could not be made go back to it once, with all that is wrong with them.
 * @throws as completions do; 403, 404; 502 AI_DRAFT_INVALID with the flaws of what it drafts even then
 */
export async function draftBlueprints(ctx: Ctx, sourceId: string, wish: Wish, request: Request): Promise<Blueprints> {
  await mayAsk(ctx, sourceId)
  if (wish.create) await refuseUnlessMayMake(ctx, [KIND])
  const ending = new AbortController()
  const abort = () => ending.abort(gone())
  if (request.signal.aborted) abort()
  request.signal.addEventListener('abort', abort, { once: true })
  waitsLong(request)
  try {
    const said = { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }, formatted: true }
    const blueprints = await drafted(ctx, { sourceId, wish, request, ending, said })
    const created = wish.create ? (await made(ctx, KIND, blueprints, request)).map((one) => one.created) : undefined
    return { blueprints, ...(created && { created }), usage: said.usage } as Blueprints
  } finally {
    request.signal.removeEventListener('abort', abort)
    waitsNoLonger(request)
  }
}

type Said = { usage: OpenAI.CompletionUsage; formatted: boolean }
type Asking = { sourceId: string; wish: Wish; request: Request; ending: AbortController; said: Said }

async function drafted(ctx: Ctx, asking: Asking): Promise<unknown[]> {
  const first = await said(ctx, asking, PROMPT)
  const judgement = await judgedText(ctx, first)
  if ('drafts' in judgement) return judgement.drafts
  const again = `${PROMPT}\n\nThis was drafted before:\n${first.slice(0, SHOWN).toWellFormed()}\n\nIt cannot be used. Draft all of it again, without these flaws:\n${JSON.stringify(judgement.flaws)}`
  const second = await judgedText(ctx, await said(ctx, asking, again))
  if ('drafts' in second) return second.drafts
  throw new Problem(
    502,
    'AI_DRAFT_INVALID',
    'The AI source drafts blueprints that cannot be used. Say more about what you want, or choose another model.',
    { details: second.flaws },
  )
}

/** What the source says. Where its server knows no such format, it is asked without one. */
async function said(ctx: Ctx, asking: Asking, systemPrompt: string): Promise<string> {
  const { sourceId, wish, request, ending, said } = asking
  const agent = { _id: null, target: { sourceId, systemPrompt } }
  const asked = { messages: [{ role: 'user' as const, content: wish.prompt }], model: wish.model }
  const ask = (response_format?: typeof format) =>
    answered(ctx, agent, { ...asked, response_format }, { request, ending }) as Promise<OpenAI.ChatCompletion>
  const { choices, usage } = await ask(said.formatted ? format : undefined).catch((error) => {
    const { status } = ((error instanceof Problem && error.more.details) || {}) as { status?: number }
    if (!said.formatted || status !== 400) throw error
    said.formatted = false
    return ask()
  })
  for (const name of ['prompt_tokens', 'completion_tokens', 'total_tokens'] as const) said.usage[name] += usage![name]
  return choices[0]?.message.content ?? ''
}

async function judgedText(ctx: Ctx, text: string): Promise<{ drafts: unknown[] } | { flaws: Flaw[] }> {
  try {
    return { drafts: await judged(ctx, KIND, wholeOf(jsonIn(text))) }
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 400) throw error
    return { flaws: (error.more.details as Flaw[]).slice(0, 100) }
  }
}

/** Some models leave out what the list is in, or the list where there is one. */
function wholeOf(value: unknown) {
  if (Array.isArray(value)) return { [KIND]: value }
  return value !== null && typeof value === 'object' && 'fields' in value ? { [KIND]: [value] } : value
}

/** The JSON of an answer, also where it stands among words, as some models can't help. */
function jsonIn(text: string): unknown {
  const from = text.search(/[[{]/)
  const to = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  try {
    return from < 0 ? undefined : parseJson(text.slice(from, to + 1))
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
}
