import { afterAll } from 'bun:test'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { listen } from '../../../src/gateway'
import { setServer } from '../../../src/tenancy/client-connection'
import type { createTestTenant, TestUser } from '../../test-tenant'

// biome-ignore lint/suspicious/noExplicitAny: data can be anything, and expectations say what it is
export type StreamEvent = { event: string; id: string; data: any }

/** Opens a change stream at a real server, with the parser that clients use. A rejected one has a status and a code. */
export async function openStream(url: string, headers: Record<string, string>, init: BunFetchRequestInit = {}) {
  const closing = new AbortController()
  const response = await fetch(url, { ...init, headers, signal: closing.signal })
  const { status } = response
  if (status !== 200) return { ...REFUSED_STREAM, status, code: ((await response.json()) as { code: string }).code }
  const reader = response
    .body!.pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
    .getReader()
  const follower = {
    status,
    code: '',
    headers: response.headers,
    last: headers['last-event-id'] ?? '',
    /** Returns the next event, or undefined when the stream has ended. */
    async next(): Promise<StreamEvent | undefined> {
      const { value } = await reader.read().catch(() => ({ value: undefined }))
      if (!value) return
      follower.last = value.id ?? follower.last
      return { event: value.event!, id: value.id!, data: JSON.parse(value.data) }
    },
    /** Returns summaries of the next events, such as `create a`. */
    async take(count: number): Promise<string[]> {
      const events: string[] = []
      while (events.length < count) events.push(summarize(await follower.next()))
      return events
    },
    close: () => closing.abort(),
    [Symbol.asyncDispose]: async () => closing.abort(),
  }
  return follower
}

const REFUSED_STREAM = {
  headers: new Headers(),
  last: '',
  next: async (): Promise<StreamEvent | undefined> => undefined,
  take: async (_: number): Promise<string[]> => [],
  close() {},
  async [Symbol.asyncDispose]() {},
}
export type Follower = Awaited<ReturnType<typeof openStream>>

export const summarize = (event: StreamEvent | undefined) =>
  event ? `${event.event}${event.data.identifier ? ` ${event.data.identifier}` : ''}` : 'end'

/** Starts a server in this process for the tests of a file. */
export function startTestServer() {
  const server = listen('127.0.0.1', 0)
  afterAll(async () => {
    await server.stop(true)
    setServer(undefined)
  })
  const url = `http://127.0.0.1:${server.port}`
  type TestTenant = Pick<Awaited<ReturnType<typeof createTestTenant>>, 'id' | 'tokens'>
  const changes = (query = '', key = 'things') => `${url}/api/blueprints/${key}/entities/changes${query}`
  return {
    server,
    url,
    changes,
    /** Opens a stream as a user of a tenant, and waits for its first event. */
    async listener(
      { id, tokens }: TestTenant,
      name: TestUser,
      query = '',
      key = 'things',
      more: Record<string, string> = {},
    ) {
      const follower = await openStream(changes(query, key), { tenant: id, 'x-api-key': tokens[name], ...more })
      if (follower.status === 200 && !more['last-event-id'] && !query.includes('lastEventId')) await follower.next()
      return follower
    },
  }
}
