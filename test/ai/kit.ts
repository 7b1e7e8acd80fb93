import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { config } from '../../src/config'
import { type Answer, house } from '../house'
import { type Plan, startOpenai } from '../outside/openai'

/** A tenant with a server of models, and an agent that asks it. */
export async function studio() {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  const own = await house()
  const openai = await startOpenai()
  const [admin, user] = [own.as('admin'), own.as('user')]
  const done = async (answer: Promise<Answer>) => {
    const { status, body } = await answer
    if (status >= 300) throw new Error(JSON.stringify(body))
    return body
  }
  const made = (path: string, body: object) => done(admin.post(path, body))
  const metadata = { apiUrl: openai.url, embeddingModel: 'embedding-1' }
  const source: string = (
    await made('/integration-sources', {
      name: 'models',
      kind: 'openai',
      metadata,
      authentication: { token: 'sk-secret' },
    })
  )._id
  const agent = async (more: object = {}): Promise<string> =>
    (await made('/ai/agents', { name: 'Agent', sourceId: source, model: 'model-1', ...more }))._id
  const chat = async (client = user, id = main, body: object = {}, thread = '') =>
    client.post(`/ai/${id}/chat-completion${thread && `/${thread}`}`, { messages: [says('Hello')], ...body })
  const main = await agent()
  return {
    ...own,
    ...{ admin, user, openai, source, main, made, done, agent, chat },
    thread: async (integration = main, client = user): Promise<string> =>
      (await done(client.post('/ai/threads', { integration })))._id,
    threadOf: async (id: string) => (await done(user.get(`/ai/threads/${id}`))) as Thread,
    /** What completions took, the newest first. */
    usage: async () => {
      const columns = 'status, estimated, prompt_tokens, completion_tokens, cost, "user", thread, integration, model'
      const rows = await own.tenant.db.ask(`select ${columns} from ai_usage order by created desc, _id desc`)
      return rows.map((row) => ({
        ...{ status: row[0], estimated: !!row[1], prompt: Number(row[2]), completion: Number(row[3]) },
        ...{ cost: Number(row[4]), user: row[5], thread: row[6], integration: row[7], model: row[8] },
      }))
    },
    /** A tool that a lambda is. */
    tool: async (name: string, code: string, more: object = {}): Promise<string> => {
      const { _id: lambdaId } = await made('/lambdas', { name, code: `export default ${code}` })
      const trigger = { kind: 'tool', name, description: `The tool ${name}.` }
      return (await made('/integrations', { trigger, target: { kind: 'lambda', lambdaId }, ...more }))._id
    },
  }
}
export type Studio = Awaited<ReturnType<typeof studio>>

// biome-ignore lint/suspicious/noExplicitAny: messages are of several forms, and expectations say which
type Thread = { messages: any[]; messageSummaries: any[]; title: string | null }

export const says = (content: string, role = 'user') => ({ role, content })

/** What the model said, and did. */
export const calling = (...calls: [name: string, input?: object | string, id?: string][]): Plan => ({
  calls: calls.map(([name, input = {}, id]) => ({
    ...{ name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
    ...(id && { id }),
  })),
})

/** Server-sent events, read as clients read them; `end` is `[DONE]`. */
export function eventsIn(text: string) {
  const messages: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => messages.push(event) })
  parser.feed(text)
  const end = messages.at(-1)?.data
  return { end, events: messages.slice(0, -1).map(({ data }) => JSON.parse(data)) }
}

/** The words of a stream. */
export const wordsOf = (events: { choices?: { delta: { content?: string } }[] }[]) =>
  events.map(({ choices }) => choices?.[0]?.delta.content ?? '').join('')

/** Waits for something that comes without anybody telling. */
export async function until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (;;) {
    const found = await look()
    if (found) return found as NonNullable<T>
    await Bun.sleep(5)
  }
}
