import type { Blueprints, Entity } from './wire'

/** What a client knows of a blueprint. */
export interface Kind {
  entity: object
  properties: object
  draft: object
  change: object
  relations: object
  filters: object
  sorted: string
  searched: string
}
type Kinds<B> = { [Key in keyof B]: Kind }

type System = Exclude<keyof Entity, 'metadata'>
type Comparison<Value> = { $lt?: Value; $lte?: Value; $gt?: Value; $gte?: Value }
type Choice<Value> = { $ne?: Value; $in?: readonly Value[]; $nin?: readonly Value[]; $exists?: boolean }

/** Which entities: by values of fields, by parts of objects (`address.city`), and by words. */
export type Filters<K extends Kind> = {
  [Name in keyof K['filters']]?: K['filters'][Name] | (Comparison<K['filters'][Name]> & Choice<K['filters'][Name]>)
} & { [Name in System]?: string | (Comparison<string> & Choice<string>) } & {
  /** Words, each in any text that may be read; the last one may be only begun. */
  $q?: string
  /** In which texts the words are searched for. */
  $qProps?: readonly K['searched'][]
}

/** Relations, with dots to go on from them: `author.country`. */
type Paths<K extends Kind> = (keyof K['relations'] & string) | `${keyof K['relations'] & string}.${string}`

/** What is shown of an entity, and what in the place of its relations. */
export type Form<S, P> = {
  /** The properties to show; all where it is not given. */
  $select?: readonly S[]
  /** The relations whose entities are shown in the place of their identifiers. */
  $populate?: readonly P[]
}

type Sorting<K extends Kind> = K['sorted'] | System
export type Query<K extends Kind, S, P> = Filters<K> &
  Form<S, P> & {
    /** Fields to sort by, with "-" before those that go downwards. The newest are first where it is not given. */
    $sort?: Order<K> | readonly Order<K>[]
    /** How many, 100 where it is not given and 1000 at most. */
    $limit?: number
    $skip?: number
  }
type Order<K extends Kind> = Sorting<K> | `-${Sorting<K>}`

type Head<Path> = Path extends `${infer First}.${string}` ? First : Path
type Rest<Path, First> = First extends string ? (Path extends `${First}.${infer Others}` ? Others : never) : never

/** What is gone, or may not be read, stays an identifier. */
type Replaced<Value, Other> = Value extends readonly (infer One)[]
  ? (One | Other)[]
  : Value extends string
    ? Value | Other
    : Value
type Populated<B extends Kinds<B>, K extends Kind, P> = {
  [Name in keyof K['properties']]: Name extends Head<P> & keyof K['relations']
    ? K['relations'][Name] extends keyof B
      ? Replaced<K['properties'][Name], Whole<B, B[K['relations'][Name]], Rest<P, Name>>>
      : K['properties'][Name]
    : K['properties'][Name]
}
type Whole<B extends Kinds<B>, K extends Kind, P> = [P] extends [never]
  ? K['entity']
  : Omit<Entity, 'metadata'> & { metadata: Populated<B, K, P> } & Populated<B, K, P>
type Chosen<K extends Kind, S> = Extract<
  S | ('metadata' extends S ? keyof K['properties'] : never),
  keyof K['properties']
>

/** An entity as it is asked for. */
export type Shown<B extends Kinds<B>, K extends Kind, S, P> = [S] extends [never]
  ? Whole<B, K, P>
  : Pick<Entity, '_id' | 'identifier' | Extract<S, System>> & {
      metadata: Pick<Populated<B, K, P>, Chosen<K, S>>
    } & Pick<Populated<B, K, P>, Chosen<K, S>>
type Selectable<K extends Kind> = (keyof K['properties'] & string) | System | 'metadata'

export type Operation<K extends Kind> =
  | { op: 'create'; identifier?: string; data: K['draft'] }
  | { op: 'update'; identifier: string; data: K['change'] }
  | { op: 'upsert'; identifier: string; data: K['draft'] | K['change'] }
  | { op: 'delete'; identifier: string }
export type Result<K extends Kind> = {
  op: Operation<K>['op']
  identifier: string
  status: number
  /** Absent where it was removed. */
  entity?: K['entity']
}
export type Report = { imported: number; failed: number; errors: { line: number; code: string; message: string }[] }

/** What goes with a single request. */
export type Init = { headers?: Record<string, string>; signal?: AbortSignal }

export type Options = {
  /** Where the server is, such as `https://data.example.com`. */
  url: string
  /** The tenant's id, where the host doesn't say it. */
  tenant?: string
  /** An access token, or what finds one for each request. */
  token?: string | (() => string | Promise<string>)
  apiKey?: string
  fetch?: (input: string, init: RequestInit) => Promise<Response>
}

/** What the server says of a request that it refuses. */
export class AtollError extends Error {
  override name = 'AtollError'
  readonly status: number
  readonly code: string
  readonly details: unknown

  constructor(status: number, code: string, message: string, details?: unknown) {
    super(message)
    this.status = status
    this.code = code
    this.details = details
  }
}

/** A client of a tenant. Everything it does throws an `AtollError` where the server refuses it. */
export function createClient<B extends Kinds<B> = Blueprints>(options: Options) {
  const base = `${options.url.replace(/\/+$/, '')}/api/blueprints`

  async function send(
    method: string,
    path: string,
    { headers, signal }: Init,
    body?: string,
    type = 'application/json',
  ) {
    const token = typeof options.token === 'function' ? await options.token() : options.token
    const response = await (options.fetch ?? fetch)(base + path, {
      method,
      headers: {
        ...(options.tenant && { tenant: options.tenant }),
        ...(token && { authorization: `Bearer ${token}` }),
        ...(options.apiKey && { 'x-api-key': options.apiKey }),
        ...(body !== undefined && { 'content-type': type }),
        ...headers,
      },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    })
    if (!response.ok) throw await refusalOf(response)
    return response
  }
  const ask = async <Answer>(...request: Parameters<typeof send>) => (await (await send(...request)).json()) as Answer

  /** The entities of a blueprint. */
  function entities<Key extends keyof B & string>(key: Key) {
    type K = B[Key]
    const at = `/${encodeURIComponent(key)}/entities`
    const one = (identifier: string) => `${at}/${encodeURIComponent(named(identifier))}`
    return {
      /** Those that match, a page of them. */
      list: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        query: Query<K, S, P> = {} as Query<K, S, P>,
        init: Init = {},
      ): Promise<Shown<B, K, S, P>[]> => ask('GET', at + search(query), init),

      /** All that match, page after page. */
      async *each<const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        query: Query<K, S, P> = {} as Query<K, S, P>,
        init: Init = {},
      ): AsyncGenerator<Shown<B, K, S, P>, void> {
        let next: string | undefined = search(query)
        while (next !== undefined) {
          const response = await send('GET', at + next, init)
          yield* (await response.json()) as Shown<B, K, S, P>[]
          next = /<[^>?]*(\?[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
        }
      },

      /** One, by its identifier or `_id`. */
      get: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        identifier: string,
        form: Form<S, P> = {},
        init: Init = {},
      ): Promise<Shown<B, K, S, P>> => ask('GET', one(identifier) + search(form), init),

      /** A new one. */
      create: async (entity: K['draft'], init: Init = {}): Promise<K['entity']> =>
        ask('POST', at, init, JSON.stringify(entity)),

      /** Changes what is given; `null` takes a value away. */
      change: async (identifier: string, change: K['change'], init: Init = {}): Promise<K['entity']> =>
        ask('PUT', one(identifier), init, JSON.stringify(change)),

      remove: async (identifier: string, init: Init = {}): Promise<{ success: true; identifier: string }> =>
        ask('DELETE', one(identifier), init),

      /** How many match. */
      count: async (filters: Filters<K> = {} as Filters<K>, init: Init = {}): Promise<number> =>
        (await ask<{ count: number }>('GET', `/${encodeURIComponent(key)}/charts/count${search(filters)}`, init)).count,

      /** Up to 1,000 operations: all of them are done, or none where one is refused. */
      batch: async (operations: readonly Operation<K>[], init: Init = {}): Promise<Result<K>[]> =>
        (await ask<{ results: Result<K>[] }>('POST', `${at}/batch`, init, JSON.stringify({ operations }))).results,

      /** All that match, as they come in, the oldest first. */
      async *export<const S extends Selectable<K> = never>(
        query: Filters<K> & { $select?: readonly S[] } = {} as Filters<K>,
        init: Init = {},
      ): AsyncGenerator<Shown<B, K, S, never>, void> {
        const { body } = await send('GET', `${at}/export${search(query)}`, init)
        for await (const line of linesOf(body)) yield JSON.parse(line)
      },

      /** Many at once; those that are refused are told, and left out unless `atomic` leaves them all out. */
      import: async (
        drafts: Iterable<K['draft']>,
        how: { mode?: 'create' | 'upsert'; atomic?: boolean; dryRun?: boolean } = {},
        init: Init = {},
      ): Promise<Report> => {
        const lines = Array.from(drafts, (draft) => `${JSON.stringify(draft)}\n`).join('')
        return ask('POST', `${at}/import?${flags(how)}`, init, lines, 'application/x-ndjson')
      },
    }
  }
  return { entities }
}

async function refusalOf(response: Response) {
  const { status, statusText } = response
  const text = await response.text()
  let told: { code?: unknown; message?: unknown; details?: unknown } = {}
  try {
    told = Object(JSON.parse(text))
  } catch {
    // Something between us and the server has answered.
  }
  const { code = `HTTP_${status}`, message = statusText || `The server answered ${status}.`, details } = told
  return new AtollError(status, String(code), String(message), details)
}

/** An address ends before these, so a request would be about something else. */
function named(identifier: string) {
  if (['', '.', '..'].includes(identifier)) throw new TypeError(`"${identifier}" is no identifier.`)
  return identifier
}

// Parameters of the server's own, which a field may have for its name.
const OWN = ['bypassAdmin', 'format', 'confirm', 'x', 'sum', 'groupBy', 'interval']

function search(query: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (name.startsWith('$')) {
      if (!Array.isArray(value)) parameters.append(name, String(value))
      else if (value.length) parameters.append(name, list(value))
    } else if (value !== null && typeof value === 'object') {
      for (const [operator, other] of Object.entries(value))
        if (other !== undefined)
          parameters.append(`${name}[${operator}]`, Array.isArray(other) ? list(other) : text(name, other))
    } else if (OWN.includes(name)) parameters.append(`${name}[$in]`, list([text(name, value)]))
    else parameters.append(name, text(name, value))
  }
  return parameters.size ? `?${parameters}` : ''
}

const flags = (how: object) =>
  Object.entries(how)
    .map((pair) => pair.join('='))
    .join('&')

/** To the server these are no filter, so it would answer with everything. */
function text(name: string, value: unknown) {
  if (value === '' || value === 'undefined' || value === null)
    throw new TypeError(`Nothing can be found by "${name}" being ${JSON.stringify(value)}.`)
  return String(value)
}

function list(values: readonly unknown[]) {
  if (!values.length) throw new TypeError('A list in a query needs a value.')
  for (const value of values)
    if (value === '' || String(value).includes(','))
      throw new TypeError(`A list in a query can't have "${value}" in it.`)
  return values.join()
}

/** What lines a body has, as they come in. */
async function* linesOf(body: ReadableStream<Uint8Array> | null) {
  const [reader, decoder] = [body?.getReader(), new TextDecoder()]
  let rest = ''
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true }
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line) yield line
      if (done) return
    }
  } finally {
    await reader?.cancel().catch(() => {})
  }
}
