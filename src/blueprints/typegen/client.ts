import type { Blueprints, Entity } from './entity'

/** What a client knows about a blueprint. */
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

type SystemField = Exclude<keyof Entity, 'metadata'>
type Comparison<Value> = { $lt?: Value; $lte?: Value; $gt?: Value; $gte?: Value }
type Choice<Value> = { $ne?: Value; $in?: readonly Value[]; $nin?: readonly Value[]; $exists?: boolean }

/** Which entities match: by values of fields, by parts of objects (`address.city`), and by words. */
export type Filters<K extends Kind> = {
  [Name in keyof K['filters']]?: K['filters'][Name] | (Comparison<K['filters'][Name]> & Choice<K['filters'][Name]>)
} & { [Name in SystemField]?: string | (Comparison<string> & Choice<string>) } & {
  /** Words that must all occur in texts that the caller may read; the last one may be the beginning of a word. */
  $q?: string
  /** In which text fields the words are searched for. */
  $qProps?: readonly K['searched'][]
}

/** Relations, with dots for relations of their entities: `author.country`. */
type Paths<K extends Kind> = (keyof K['relations'] & string) | `${keyof K['relations'] & string}.${string}`

/** What a response contains of an entity, and of the entities that its relations point to. */
export type EntityView<S, P> = {
  /** The properties to return; default: all. */
  $select?: readonly S[]
  /** The relations whose identifiers are replaced by the entities. */
  $populate?: readonly P[]
}

type SortField<K extends Kind> = K['sorted'] | SystemField
export type Query<K extends Kind, S, P> = Filters<K> &
  EntityView<S, P> & {
    /** Fields to sort by, with "-" for descending order; default: newest first. */
    $sort?: Order<K> | readonly Order<K>[]
    /** How many entities to return; default: 100, maximum: 1000. */
    $limit?: number
    $skip?: number
  }
type Order<K extends Kind> = SortField<K> | `-${SortField<K>}`

type PathHead<Path> = Path extends `${infer First}.${string}` ? First : Path
type PathTail<Path, First> = First extends string ? (Path extends `${First}.${infer Others}` ? Others : never) : never

/** An entity that was removed, or that the caller may not read, stays an identifier. */
type PopulatedValue<Value, Other> = Value extends readonly (infer One)[]
  ? (One | Other)[]
  : Value extends string
    ? Value | Other
    : Value
type Populated<B extends Kinds<B>, K extends Kind, P> = {
  [Name in keyof K['properties']]: Name extends PathHead<P> & keyof K['relations']
    ? K['relations'][Name] extends keyof B
      ? PopulatedValue<K['properties'][Name], FullEntity<B, B[K['relations'][Name]], PathTail<P, Name>>>
      : K['properties'][Name]
    : K['properties'][Name]
}
type FullEntity<B extends Kinds<B>, K extends Kind, P> = [P] extends [never]
  ? K['entity']
  : Omit<Entity, 'metadata'> & { metadata: Populated<B, K, P> } & Populated<B, K, P>
type SelectedKeys<K extends Kind, S> = Extract<
  S | ('metadata' extends S ? keyof K['properties'] : never),
  keyof K['properties']
>

/** An entity with the selected properties and the populated relations. */
export type EntityResult<B extends Kinds<B>, K extends Kind, S, P> = [S] extends [never]
  ? FullEntity<B, K, P>
  : Pick<Entity, '_id' | 'identifier' | Extract<S, SystemField>> & {
      metadata: Pick<Populated<B, K, P>, SelectedKeys<K, S>>
    } & Pick<Populated<B, K, P>, SelectedKeys<K, S>>
type Selectable<K extends Kind> = (keyof K['properties'] & string) | SystemField | 'metadata'

export type Operation<K extends Kind> =
  | { op: 'create'; identifier?: string; data: K['draft'] }
  | { op: 'update'; identifier: string; data: K['change'] }
  | { op: 'upsert'; identifier: string; data: K['draft'] | K['change'] }
  | { op: 'delete'; identifier: string }
export type Result<K extends Kind> = {
  op: Operation<K>['op']
  identifier: string
  status: number
  /** Absent when the entity was removed. */
  entity?: K['entity']
}
export type Report = { imported: number; failed: number; errors: { line: number; code: string; message: string }[] }

/** The headers and the signal of a single request. */
export type Init = { headers?: Record<string, string>; signal?: AbortSignal }

export type Options = {
  /** Where the server is, such as `https://data.example.com`. */
  url: string
  /** The id of the tenant, if the host does not identify it. */
  tenant?: string
  /** An access token, or a function that returns one for each request. */
  token?: string | (() => string | Promise<string>)
  apiKey?: string
  fetch?: (input: string, init: RequestInit) => Promise<Response>
}

/** The problem of a request that the server refused. */
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

/** A client of a tenant. Everything it does throws an `AtollError` when the server refuses the request. */
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
    if (!response.ok) throw await toAtollError(response)
    return response
  }
  const requestJson = async <Answer>(...request: Parameters<typeof send>) =>
    (await (await send(...request)).json()) as Answer

  /** The entities of a blueprint. */
  function entities<Key extends keyof B & string>(key: Key) {
    type K = B[Key]
    const entitiesPath = `/${encodeURIComponent(key)}/entities`
    const entityPath = (identifier: string) => `${entitiesPath}/${encodeURIComponent(assertIdentifier(identifier))}`
    return {
      /** Those entities that match, one page of them. */
      list: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        query: Query<K, S, P> = {} as Query<K, S, P>,
        init: Init = {},
      ): Promise<EntityResult<B, K, S, P>[]> => requestJson('GET', entitiesPath + toQueryString(query), init),

      /** All entities that match, read page by page. */
      async *each<const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        query: Query<K, S, P> = {} as Query<K, S, P>,
        init: Init = {},
      ): AsyncGenerator<EntityResult<B, K, S, P>, void> {
        let next: string | undefined = toQueryString(query)
        while (next !== undefined) {
          const response = await send('GET', entitiesPath + next, init)
          yield* (await response.json()) as EntityResult<B, K, S, P>[]
          next = /<[^>?]*(\?[^>]*)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
        }
      },

      /** One entity, by its identifier or `_id`. */
      get: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
        identifier: string,
        view: EntityView<S, P> = {},
        init: Init = {},
      ): Promise<EntityResult<B, K, S, P>> => requestJson('GET', entityPath(identifier) + toQueryString(view), init),

      /** A new entity. */
      create: async (entity: K['draft'], init: Init = {}): Promise<K['entity']> =>
        requestJson('POST', entitiesPath, init, JSON.stringify(entity)),

      /** Changes the given properties; `null` removes a value. */
      change: async (identifier: string, change: K['change'], init: Init = {}): Promise<K['entity']> =>
        requestJson('PUT', entityPath(identifier), init, JSON.stringify(change)),

      remove: async (identifier: string, init: Init = {}): Promise<{ success: true; identifier: string }> =>
        requestJson('DELETE', entityPath(identifier), init),

      /** How many entities match. */
      count: async (filters: Filters<K> = {} as Filters<K>, init: Init = {}): Promise<number> =>
        (
          await requestJson<{ count: number }>(
            'GET',
            `/${encodeURIComponent(key)}/charts/count${toQueryString(filters)}`,
            init,
          )
        ).count,

      /** Up to 1,000 operations in one transaction: when one is refused, none is done. */
      batch: async (operations: readonly Operation<K>[], init: Init = {}): Promise<Result<K>[]> =>
        (
          await requestJson<{ results: Result<K>[] }>(
            'POST',
            `${entitiesPath}/batch`,
            init,
            JSON.stringify({ operations }),
          )
        ).results,

      /** All entities that match, as a stream, oldest first. */
      async *export<const S extends Selectable<K> = never>(
        query: Filters<K> & { $select?: readonly S[] } = {} as Filters<K>,
        init: Init = {},
      ): AsyncGenerator<EntityResult<B, K, S, never>, void> {
        const { body } = await send('GET', `${entitiesPath}/export${toQueryString(query)}`, init)
        for await (const line of readLines(body)) yield JSON.parse(line)
      },

      /** Many entities at once. The report lists refused ones, which are skipped; with `atomic` all are. */
      import: async (
        drafts: Iterable<K['draft']>,
        importOptions: { mode?: 'create' | 'upsert'; atomic?: boolean; dryRun?: boolean } = {},
        init: Init = {},
      ): Promise<Report> => {
        const lines = Array.from(drafts, (draft) => `${JSON.stringify(draft)}\n`).join('')
        return requestJson(
          'POST',
          `${entitiesPath}/import?${toFlags(importOptions)}`,
          init,
          lines,
          'application/x-ndjson',
        )
      },
    }
  }
  return { entities }
}

async function toAtollError(response: Response) {
  const { status, statusText } = response
  const text = await response.text()
  let problem: { code?: unknown; message?: unknown; details?: unknown } = {}
  try {
    problem = Object(JSON.parse(text))
  } catch {
    // Something between the client and the server has answered.
  }
  const { code = `HTTP_${status}`, message = statusText || `The server answered ${status}.`, details } = problem
  return new AtollError(status, String(code), String(message), details)
}

/** An empty or dotted segment would change the path, and so the request. */
function assertIdentifier(identifier: string) {
  if (['', '.', '..'].includes(identifier)) throw new TypeError(`"${identifier}" is not a valid identifier.`)
  return identifier
}

// Parameters of the server that may also be names of fields.
const RESERVED_PARAMETERS = ['bypassAdmin', 'format', 'confirm', 'x', 'sum', 'groupBy', 'interval']

function toQueryString(query: object): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (name.startsWith('$')) {
      if (!Array.isArray(value)) parameters.append(name, String(value))
      else if (value.length) parameters.append(name, joinList(value))
    } else if (value !== null && typeof value === 'object') {
      for (const [operator, other] of Object.entries(value))
        if (other !== undefined)
          parameters.append(`${name}[${operator}]`, Array.isArray(other) ? joinList(other) : toFilterText(name, other))
    } else if (RESERVED_PARAMETERS.includes(name))
      parameters.append(`${name}[$in]`, joinList([toFilterText(name, value)]))
    else parameters.append(name, toFilterText(name, value))
  }
  return parameters.size ? `?${parameters}` : ''
}

const toFlags = (how: object) =>
  Object.entries(how)
    .map((pair) => pair.join('='))
    .join('&')

/** To the server these values are no filter, so it would return all entities. */
function toFilterText(name: string, value: unknown) {
  if (value === '' || value === 'undefined' || value === null)
    throw new TypeError(`"${name}" cannot be filtered by ${JSON.stringify(value)}.`)
  return String(value)
}

function joinList(values: readonly unknown[]) {
  if (!values.length) throw new TypeError('A list in a query must not be empty.')
  for (const value of values)
    if (value === '' || String(value).includes(',')) throw new TypeError(`A list in a query cannot contain "${value}".`)
  return values.join()
}

/** The lines of a body as they arrive. */
async function* readLines(body: ReadableStream<Uint8Array> | null) {
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
    await reader?.cancel().catch(() => {}) // the stream may have ended already
  }
}
