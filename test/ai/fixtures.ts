import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { config } from '../../src/config'
import { type ReplyPlan, startOpenai } from '../fakes/openai-server'
import { createTestTenant, type TestResponse } from '../test-tenant'

/** Creates a tenant with a fake OpenAI server and an agent that uses it. */
export async function createAiFixture() {
  config.ATOLL_ALLOW_PRIVATE_NETWORK = 'on'
  const own = await createTestTenant()
  const openai = await startOpenai()
  const [admin, user] = [own.as('admin'), own.as('user')]
  const expectSuccess = async (answer: Promise<TestResponse>) => {
    const { status, body } = await answer
    if (status >= 300) throw new Error(JSON.stringify(body))
    return body
  }
  const create = (path: string, body: object) => expectSuccess(admin.post(path, body))
  const metadata = { apiUrl: openai.url, embeddingModel: 'embedding-1' }
  const source: string = (
    await create('/integration-sources', {
      name: 'models',
      kind: 'openai',
      metadata,
      authentication: { token: 'sk-secret' },
    })
  )._id
  const agent = async (more: object = {}): Promise<string> =>
    (await create('/ai/agents', { name: 'Agent', sourceId: source, model: 'model-1', ...more }))._id
  const chat = async (client = user, id = main, body: object = {}, thread = '') =>
    client.post(`/ai/${id}/chat-completion${thread && `/${thread}`}`, { messages: [chatMessage('Hello')], ...body })
  const main = await agent()
  return {
    ...own,
    ...{ admin, user, openai, source, main, made: create, done: expectSuccess, agent, chat },
    thread: async (integration = main, client = user): Promise<string> =>
      (await expectSuccess(client.post('/ai/threads', { integration })))._id,
    threadOf: async (id: string) => (await expectSuccess(user.get(`/ai/threads/${id}`))) as Thread,
    /** Returns the usage rows, newest first. */
    usage: async () => {
      const columns = 'status, estimated, prompt_tokens, completion_tokens, cost, "user", thread, integration, model'
      const rows = await own.tenant.db.query(`select ${columns} from ai_usage order by created desc, _id desc`)
      return rows.map((row) => ({
        ...{ status: row[0], estimated: !!row[1], prompt: Number(row[2]), completion: Number(row[3]) },
        ...{ cost: Number(row[4]), user: row[5], thread: row[6], integration: row[7], model: row[8] },
      }))
    },
    /** Creates a tool integration that runs a lambda, and returns its id. */
    tool: async (name: string, code: string, more: object = {}): Promise<string> => {
      const { _id: lambdaId } = await create('/lambdas', { name, code: `export default ${code}` })
      const trigger = { kind: 'tool', name, description: `The tool ${name}.` }
      return (await create('/integrations', { trigger, target: { kind: 'lambda', lambdaId }, ...more }))._id
    },
  }
}
export type AiFixture = Awaited<ReturnType<typeof createAiFixture>>

// biome-ignore lint/suspicious/noExplicitAny: messages have several forms, and the expectations say which
type Thread = { messages: any[]; messageSummaries: any[]; title: string | null }

export const chatMessage = (content: string, role = 'user') => ({ role, content })

/** Returns a reply in which the model calls these tools. */
export const toolCalls = (...calls: [name: string, input?: object | string, id?: string][]): ReplyPlan => ({
  calls: calls.map(([name, input = {}, id]) => ({
    ...{ name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
    ...(id && { id }),
  })),
})

/** Parses server-sent events as clients do; `end` is the data of the last one, `[DONE]`. */
export function parseEvents(text: string) {
  const messages: EventSourceMessage[] = []
  const parser = createParser({ onEvent: (event) => messages.push(event) })
  parser.feed(text)
  const end = messages.at(-1)?.data
  return { end, events: messages.slice(0, -1).map(({ data }) => JSON.parse(data)) }
}

/** Joins the text of the chunks of a stream. */
export const joinContent = (events: { choices?: { delta: { content?: string } }[] }[]) =>
  events.map(({ choices }) => choices?.[0]?.delta.content ?? '').join('')
