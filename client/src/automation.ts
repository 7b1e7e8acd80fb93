import { type Init, type Transport, toSearch, toSegment } from './transport'
import type { Page } from './workspaces'

export type AtollEvent = {
  _id: string
  source: string
  kind: string
  eventName: string
  description: string
  metadata: Record<string, unknown>
  user: string | null
  workspace: string | null
  created: string
}
export type EventFilters = {
  kind?: string
  eventName?: string
  source?: string
  user?: string
  workspace?: string
  period?: 'last-day' | 'last-week' | 'last-month' | 'last-year' | 'all-time'
  from?: string
  to?: string
  search?: string
  /** The IANA time zone in which days begin; default: that of the app configuration, else UTC. */
  timezone?: string
}
export type AtollLambda = { _id: string; name: string; description: string; version: number; updated: string }
type LambdaLog = { at: number; level: 'debug' | 'info' | 'warn' | 'error'; text: string }
type LambdaError = { code: string; message: string; stack?: string }
export type LambdaResult = { result?: unknown; error?: LambdaError; logs: LambdaLog[]; durationMs: number }
export type LambdaRun = {
  _id: string
  version: number
  trigger: string
  status: number
  error: LambdaError | null
  started: string
  duration: number
  logs: LambdaLog[]
}
/** What is sent to a webhook: `body` is any JSON value. */
export type WebhookCall = Init & { method?: 'GET' | 'POST' | 'PUT' | 'DELETE'; query?: object; body?: unknown }

/** Webhooks, lambdas and events. */
export function createAutomation({ get, post, send }: Transport) {
  return {
    /** Integrations that are called by their address. */
    webhooks: {
      /**
       * Calls a webhook, and returns what it answers: JSON, or a text.
       * @example
       * const answer = await client.webhooks.call<{ greeting: string }>(webhookId, { body: { name: 'Ada' } })
       * console.log(answer.greeting)
       */
      call: async <Content = unknown>(integration: string, call: WebhookCall = {}): Promise<Content> => {
        const { method = 'POST', query = {}, body: json, ...init } = call
        const more = method === 'GET' ? {} : { json }
        const path = `/api/webhooks/${toSegment(integration)}`
        const answer = await send(method, path, { ...init, ...more, query: toSearch(query) })
        const text = await answer.text()
        const isJson = answer.headers.get('content-type')?.includes('json')
        return (isJson ? JSON.parse(text) : text) as Content
      },
    },

    /** Lambdas; for admins. */
    lambdas: {
      /**
       * The lambdas of the tenant.
       * @example
       * const [lambda] = await admin.lambdas.list({ name: 'greet' })
       */
      list: (query: Page & { name?: string } = {}, init: Init = {}) => get<AtollLambda[]>('/api/lambdas', query, init),
      /**
       * Runs a lambda once, and returns its result, its logs and how long it took.
       * @example
       * const { result, logs } = await admin.lambdas.execute(lambdaId, { body: { name: 'Ada' } })
       */
      execute: (
        id: string,
        input: { method?: string; path?: string; query?: object; headers?: object; body?: unknown } = {},
        init: Init = {},
      ) => post<LambdaResult>(`/api/lambdas/${toSegment(id)}/execute`, input, init),
      /**
       * The last runs of a lambda.
       * @example
       * for (const run of await admin.lambdas.logs(lambdaId, { limit: 5 })) console.log(run.started, run.status)
       */
      logs: (id: string, query: Page = {}, init: Init = {}) =>
        get<LambdaRun[]>(`/api/lambdas/${toSegment(id)}/logs`, query, init),
    },

    /** Records of what happened; for admins and editors. */
    events: {
      /**
       * Events that match, newest first.
       * @example
       * const events = await admin.events.list({ source: 'accounts', period: 'last-day', limit: 20 })
       */
      list: (query: EventFilters & Page = {}, init: Init = {}) => get<AtollEvent[]>('/api/events', query, init),
      /**
       * Records an event.
       * @example
       * await admin.events.emit({ source: 'shop', kind: 'orders', eventName: 'order-packed', metadata: { weight: 2 } })
       */
      emit: (
        event: Partial<Pick<AtollEvent, 'source' | 'kind' | 'eventName' | 'description' | 'metadata'>>,
        init: Init = {},
      ) => post<AtollEvent>('/api/events', event, init),
      /**
       * How many events match.
       * @example
       * const count = await admin.events.count({ source: 'accounts', eventName: 'user-registered' })
       */
      count: async (filters: EventFilters = {}, init: Init = {}) =>
        (await get<{ count: number }>('/api/events/count', filters, init)).count,
      /**
       * The sum of a number in the metadata of events.
       * @example
       * const { sum, groups } = await admin.events.sum({ sum: 'weight', source: 'shop', groupBy: 'day' })
       */
      sum: (
        query: EventFilters & {
          sum: string
          groupBy?: 'hour' | 'day' | 'week' | 'month' | 'quarter' | 'year' | 'source' | 'kind' | 'eventName'
        },
        init: Init = {},
      ) =>
        get<{ sum: number | string; groups?: { group: string; sum: number | string; count: number }[] }>(
          '/api/events/sum',
          query,
          init,
        ),
    },
  }
}
