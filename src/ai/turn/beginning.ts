import type { Ctx, OpenCtx } from '../../accounts/guard'
import { invalid, missing, Problem } from '../../core/problem'
import { given } from '../../core/shapes'
import type { Answering } from '../agents'
import type { Draft } from '../builders/drafts'
import { retrieved } from '../knowledge/retrieval'
import type { Asked, NewMessage } from '../shapes'
import { clientOf } from '../sources/sources'
import type { MessageRow } from '../threads'
import * as threads from '../threads'
import { tokensIn } from '../tokens'
import { clientTools } from '../tools/client'
import { AGENTS, type Left } from '../tools/tool'
import { type Tools, toolsFor } from '../tools/tools'
import { asSystem, instructions, keptAnswers, refuseLost, refuseUnfit, spoken } from './conversation'
import { asMessage, recent, remembered, summed } from './history'
import type { Usage } from './model'
import { unknown } from './resent'
import { type Begun, Turn } from './turn'

const MOST = 10_000 // messages of a thread
const LONGEST = 1 << 20 // characters of one

/** How a turn is asked for. */
export type How = {
  /** The conversation that it goes on with, by its id. */
  thread?: string
  request?: Request
  /** How many runs of integrations led to it. */
  depth?: number
  /** How many agents may still be run for whoever began it. */
  agents?: Left
  ending: AbortController
  /** Tools beside those that it names. */
  toolbox?: Toolbox
}

/** Tools, and what they make for whoever asks. */
export type Toolbox = { tools: Tools; drafts: Draft[] }

/** A turn, ready to be run. What it took until then is in `usage`. @throws 400, 404 THREAD_NOT_FOUND, 409 THREAD_TOO_LONG */
export async function begin(
  ctx: OpenCtx,
  agent: Answering,
  asked: Asked,
  { thread: id, request, depth = 0, agents = { left: AGENTS }, ending, toolbox, usage }: How & { usage: Usage },
): Promise<Turn> {
  const { target } = agent
  const sent = asked.messages.map(plain)
  refuseUnfit(sent, target)
  const source = await clientOf(ctx, target.sourceId)
  const tools = toolbox?.tools ?? (await toolsFor(ctx, target))
  const client = clientTools(asked.clientTools ?? [], tools)
  const kept = given(id) ? await goingOn(ctx as Ctx, agent, sent, id!) : undefined
  const begins = !kept && !!target.recordThread && !!ctx.actor && !!agent._id
  const fresh = kept?.fresh ?? sent
  refuseLost(kept?.rows.map(asMessage) ?? [], fresh)
  const { signal } = ending
  const turn = new Turn({
    ...{ ctx, agent, source, asked, fresh, tools, usage, ending, begins, clientTools: client, citations: [] },
    messages: instructions(target, asked),
    thread: kept?.thread ?? (begins ? threads.fresh(ctx as Ctx, agent._id!) : undefined),
    drafts: toolbox?.drafts ?? [],
    calling: { ctx, request, signal, depth, query: asked.queryParams ?? {}, agents },
  })
  await prepare(turn, kept?.rows)
  return turn
}

/** Finds what the model is told, for which other models may have to be asked. */
async function prepare({ of, model, signal }: Turn, rows?: MessageRow[]) {
  const { ctx, agent, source, thread, fresh, usage } = of
  const summarize = async (text: string) => {
    const { content, counted } = await summed(source, model, text, signal)
    usage.prompt += counted?.prompt ?? tokensIn(text)
    usage.completion += counted?.completion ?? tokensIn(content ?? '')
    usage.estimated ||= !counted
    return content
  }
  if (rows) of.remembered = await remembered(thread!, rows, agent.target.historyTokens, summarize)
  const said = [...(of.remembered?.rows.map(asMessage) ?? []), ...fresh]
  const answers = await keptAnswers(ctx, agent._id, said)
  const { text, citations } = await known(of, rows && thread!._id)
  const summary = of.remembered?.summary
  const before = summary ? `What was said before, in short:\n${summary.content}` : ''
  of.citations = citations
  of.messages.push(...asSystem(text, before), ...spoken(said, answers))
}

/** Some clients say `null` for what a message does not have. */
const plain = (message: object) =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)) as NewMessage

/** The thread, what was said in it, and what of the client's messages is new to it. */
async function goingOn(ctx: Ctx, { _id }: Answering, sent: NewMessage[], id: string) {
  const thread = await threads.ownThread(ctx, id)
  // Admins read the threads of others, but don't speak for them.
  if (thread.user !== ctx.actor.user || thread.integration !== _id) missing('thread')
  const long = sent.findIndex(({ content }) => (content?.length ?? 0) > LONGEST)
  if (long >= 0)
    invalid({ path: `/messages/${long}/content`, message: `A message of a thread has at most ${LONGEST} characters.` })
  const rows = await recent(ctx.db, id)
  if ((rows.at(-1)?.number ?? 0) + sent.length > MOST)
    throw new Problem(409, 'THREAD_TOO_LONG', `A thread has at most ${MOST} messages. Begin another one.`)
  return { thread, rows, fresh: unknown(rows, sent) }
}

/** What the agent's stores know of the question. */
async function known({ ctx, agent: { _id, target }, asked, ending: { signal } }: Begun, thread: string | undefined) {
  const question = asked.messages.findLast(({ role }) => role === 'user')?.content
  if (!_id || !target.vectorStores?.length || !question) return { text: '', citations: [] }
  return retrieved(ctx, { integration: { _id, target }, thread, question, signal })
}
