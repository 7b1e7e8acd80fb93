import type { Ctx, OpenCtx } from '../../accounts/guard'
import { invalid, missing, Problem } from '../../core/problem'
import { given } from '../../core/shapes'
import type { Answering } from '../agents'
import type { Draft } from '../builders/drafts'
import { retrieved } from '../knowledge/retrieval'
import type { Asked, NewMessage } from '../shapes'
import { clientOf, type Source } from '../sources/sources'
import * as threads from '../threads'
import { tokensIn } from '../tokens'
import { clientTools } from '../tools/client'
import { type Tools, toolsFor } from '../tools/tools'
import { instructions, keptAnswers, refuseUnfit, spoken } from './conversation'
import { asMessage, recent, remembered, summed } from './history'
import { counted, type Usage } from './model'
import { unknown } from './resent'
import { Turn } from './turn'

const MOST = 10_000 // messages of a thread
const LONGEST = 1 << 20 // characters of one

/** How a turn is asked for. */
export type How = {
  /** The conversation that it goes on with, by its id. */
  thread?: string
  request?: Request
  /** How many runs of integrations led to it. */
  depth?: number
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
  { thread: id, request, depth = 0, ending, toolbox, usage }: How & { usage: Usage },
): Promise<Turn> {
  const { target } = agent
  const sent = asked.messages.map(plain)
  refuseUnfit(sent, target)
  const source = await clientOf(ctx, target.sourceId)
  const tools = toolbox?.tools ?? (await toolsFor(ctx, target))
  const client = clientTools(asked.clientTools ?? [], tools)
  const kept = given(id)
    ? await goingOn(ctx as Ctx, agent, source, { asked, sent, id: id! }, ending.signal, usage)
    : undefined
  const begins = !kept && !!target.recordThread && !!ctx.actor && !!agent._id
  const fresh = kept?.fresh ?? sent
  const said = [...(kept?.remembered.rows.map(asMessage) ?? []), ...fresh]
  const answers = await keptAnswers(ctx, agent._id, said)
  const { text, citations } = await known(ctx, agent, asked, id)
  const summary = kept?.remembered.summary
  const more = [text, summary ? `What was said before, in short:\n${summary.content}` : '']
  return new Turn({
    ...{ ctx, agent, source, asked, fresh, citations, tools, usage, ending, begins, clientTools: client },
    thread: kept?.thread ?? (begins ? threads.fresh(ctx as Ctx, agent._id!) : undefined),
    remembered: kept?.remembered,
    messages: [...instructions(target, asked, ...more), ...spoken(said, answers)],
    drafts: toolbox?.drafts ?? [],
    calling: { ctx, request, signal: ending.signal, depth, query: asked.queryParams ?? {} },
  })
}

/** Some clients say `null` for what a message does not have. */
const plain = (message: object) =>
  Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)) as NewMessage

/** The thread, what of it the model is told, and what of the client's messages is new to it. */
async function goingOn(
  ctx: Ctx,
  { _id, target }: Answering,
  source: Source,
  { asked, sent, id }: { asked: Asked; sent: NewMessage[]; id: string },
  signal: AbortSignal,
  usage: Usage,
) {
  const thread = await threads.ownThread(ctx, id)
  // Admins read the threads of others, but don't speak for them.
  if (thread.user !== ctx.actor.user || thread.integration !== _id) missing('thread')
  const long = sent.findIndex(({ content }) => (content?.length ?? 0) > LONGEST)
  if (long >= 0)
    invalid({ path: `/messages/${long}/content`, message: `A message of a thread has at most ${LONGEST} characters.` })
  const rows = await recent(ctx.db, id)
  if ((rows.at(-1)?.number ?? 0) + sent.length > MOST)
    throw new Problem(409, 'THREAD_TOO_LONG', `A thread has at most ${MOST} messages. Begin another one.`)
  const summarize = async (text: string) => {
    const model = asked.model || target.model || source.model
    const { content, usage: told } = await summed(source, model, text, signal)
    const used = counted(told)
    usage.prompt += used?.prompt ?? tokensIn(text)
    usage.completion += used?.completion ?? tokensIn(content ?? '')
    usage.estimated ||= !used
    return content
  }
  const fresh: NewMessage[] = unknown(rows, sent)
  return { thread, fresh, remembered: await remembered(thread, rows, target.historyTokens, summarize) }
}

/** What the agent's stores know of the question. */
async function known(ctx: OpenCtx, { _id, target }: Answering, { messages }: Asked, id: string | undefined) {
  const question = messages.findLast(({ role }) => role === 'user')?.content
  if (!_id || !target.vectorStores?.length || !question) return { text: '', citations: [] }
  return retrieved(ctx, { integration: { _id, target }, thread: given(id), question })
}
