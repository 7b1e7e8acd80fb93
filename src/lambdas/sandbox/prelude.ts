import type { LogLevel, ResultFormat } from './protocol'
import type { WebHostFunctions } from './web-apis'

/** The functions of the process that the sandbox can call. */
export type HostFunctions = WebHostFunctions & {
  randomNumber(): number
  call(id: number, name: string, input: string): void
  log(level: LogLevel, text: string): void
  timer(id: number, ms: number): void
  end(value: string, format: ResultFormat): void
  fail(name: string, message: string, stack: string): void
}

/** The functions of the sandbox that the process calls. */
export type GuestFunctions = {
  start(loading: unknown, request: string, env: string): void
  failed(error: unknown): void
  settleCall(call: number, ok: boolean, answer: string): void
  fireTimer(timer: number): void
}

/**
 * Defines `atoll`, `console`, `fetch` and timers for lambdas. It runs inside the sandbox, which receives only the text
 * of this function, so it must not refer to anything outside it. It keeps its own references to the built-ins (`parse`,
 * `keys` …), which a lambda cannot replace.
 */
export function installPrelude(host: HostFunctions, signing: object): GuestFunctions {
  type PendingCall = { resolve(answer: unknown): void; reject(error: unknown): void; stack: string | undefined }
  type FetchAnswer = { status: number; headers: Record<string, string>; body: string }

  const { parse, stringify } = JSON
  const { keys } = Object
  const { isView } = ArrayBuffer
  const calls = new Map<number, PendingCall>()
  const timers = new Map<number, () => void>()
  let last = 0

  const call = (name: string, ...input: unknown[]) =>
    new Promise<unknown>((resolve, reject) => {
      const id = ++last
      calls.set(id, { resolve, reject, stack: new AtollError().stack })
      host.call(id, name, stringify(input))
    })

  /** A refused call throws this error with `status`, `code`, `message` and `details`. */
  class AtollError extends Error {
    override name = 'AtollError'
  }

  const toText = (value: unknown): string => {
    if (typeof value === 'string') return value
    if (value instanceof Error) return value.stack ? `${value}\n${value.stack}`.trimEnd() : `${value}`
    if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return String(value)
    try {
      return stringify(value) ?? String(value)
    } catch {
      return String(value)
    }
  }
  const createLogger =
    (level: LogLevel) =>
    (...values: unknown[]) =>
      host.log(level, values.map(toText).join(' ').slice(0, 65_536))
  const log = createLogger('info')
  const console = {
    log,
    info: log,
    debug: createLogger('debug'),
    warn: createLogger('warn'),
    error: createLogger('error'),
    trace: createLogger('debug'),
  }

  async function fetch(url: unknown, init: { method?: string; headers?: object; body?: unknown } = {}) {
    const { method = 'GET', headers = {}, body } = init
    const pairs = Symbol.iterator in headers ? [...(headers as Iterable<[string, string]>)] : Object.entries(headers)
    const sentBody = body === undefined || body === null ? null : `${body}`
    const answer = (await call('fetch', `${url}`, `${method}`, pairs, sentBody)) as FetchAnswer
    const headerMap = new Map(Object.entries(answer.headers))
    return {
      status: answer.status,
      ok: answer.status >= 200 && answer.status < 300,
      headers: {
        get: (name: string) => headerMap.get(name.toLowerCase()) ?? null,
        has: (name: string) => headerMap.has(name.toLowerCase()),
        entries: () => headerMap.entries(),
        [Symbol.iterator]: () => headerMap.entries(),
      },
      bytes: async () => new Uint8Array(host.decode(answer.body, 'base64')),
      text: async () => host.encode(host.decode(answer.body, 'base64'), 'utf8'),
      json: async () => parse(host.encode(host.decode(answer.body, 'base64'), 'utf8')),
    }
  }

  const atoll = {
    entities: (blueprint: string) => ({
      find: (query?: object) => call('entities.find', blueprint, query),
      get: (identifier: string, query?: object) => call('entities.get', blueprint, identifier, query),
      create: (entity: object) => call('entities.create', blueprint, entity),
      update: (identifier: string, changes: object) => call('entities.update', blueprint, identifier, changes),
      remove: (identifier: string) => call('entities.remove', blueprint, identifier),
    }),
    events: { emit: (event: object) => call('events.emit', event) },
    env: {},
    crypto: signing,
    fetch,
    log,
  }

  const createTimer =
    (isRepeated: boolean) =>
    (callback: (...values: unknown[]) => void, ms: unknown, ...values: unknown[]) => {
      if (typeof callback !== 'function') throw new TypeError('A function is expected.')
      const id = ++last
      const ring = () => {
        if (isRepeated) host.timer(id, Number(ms) || 0)
        else timers.delete(id)
        callback(...values)
      }
      timers.set(id, ring)
      host.timer(id, Number(ms) || 0)
      return id
    }
  const cancel = (id: number) => void timers.delete(id)

  const globals = {
    ...{ console, fetch, queueMicrotask: (callback: () => void) => void Promise.resolve().then(callback) },
    ...{ setTimeout: createTimer(false), setInterval: createTimer(true), clearTimeout: cancel, clearInterval: cancel },
  }
  for (const [name, value] of Object.entries(globals))
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true })

  // The engine's own generator would start with the same seed in each run.
  Math.random = () => host.randomNumber()

  const truncate = (value: unknown, maxLength: number) => String(value).slice(0, maxLength)

  /** The thrown value may be anything, and reading it may throw. */
  function failed(error: unknown) {
    // There was not enough memory for an error object.
    if (error === null) return host.fail('InternalError', 'out of memory', '')
    let [name, message, stack] = ['Error', 'The lambda threw a value that cannot be serialized.', '']
    try {
      if (error instanceof Error) {
        ;[name, message] = [truncate(error.name, 100), truncate(error.message, 2_000)]
        stack = truncate(error.stack ?? '', 4_000).replace(/^ .*\(atoll\.js:.*\n?/gm, '')
      } else message = truncate(toText(error), 2_000)
    } catch {
      // An error whose text cannot be read keeps the default message.
    }
    host.fail(name, message, stack)
  }

  const bytesOf = (body: unknown) => {
    if (body instanceof ArrayBuffer) return body
    if (isView(body)) return body.buffer.slice(body.byteOffset, body.byteOffset + body.byteLength) as ArrayBuffer
  }

  return {
    failed,
    async start(loading, request, env) {
      try {
        const { default: lambda } = (await loading) as { default?: unknown }
        atoll.env = parse(env)
        if (typeof lambda !== 'function') throw new TypeError('The default export of a lambda must be a function.')
        const value = await lambda(parse(request), atoll)
        const isAnswer =
          value !== null &&
          typeof value === 'object' &&
          typeof value.status === 'number' &&
          keys(value).every((key) => key === 'status' || key === 'headers' || key === 'body')
        const bytes = isAnswer ? bytesOf(value.body) : undefined
        if (bytes) host.end(stringify({ ...value, body: host.encode(bytes, 'base64') }), 'bytes')
        else host.end(stringify(value) ?? 'null', isAnswer ? 'answer' : 'value')
      } catch (error) {
        failed(error)
      }
    },
    settleCall(id, ok, answer) {
      const pendingCall = calls.get(id)
      calls.delete(id)
      const value = parse(answer)
      if (ok) pendingCall?.resolve(value)
      else pendingCall?.reject(Object.assign(new AtollError(value.message), value, { stack: pendingCall.stack }))
    },
    fireTimer: (id) => timers.get(id)?.(),
  }
}
