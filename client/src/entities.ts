import { followChanges } from './changes'
import { createCharts } from './charts'
import type {
  EntityResult,
  EntityVersion,
  EntityView,
  Filters,
  Kinds,
  Operation,
  Paths,
  Query,
  Report,
  Result,
  Selectable,
} from './queries'
import { toQueryString } from './queries'
import { readLines } from './streams'
import { type Init, type Transport, toSearch, toSegment } from './transport'

/** The entities of a blueprint. */
export function createEntities<B extends Kinds<B>, Key extends keyof B & string>(transport: Transport, key: Key) {
  type K = B[Key]
  const { send, post, put, remove, request } = transport
  const path = `/api/blueprints/${toSegment(key)}/entities`
  const pathOf = (identifier: string) => `${path}/${toSegment(identifier)}`
  async function* readPages<Row>(path: string, query: object, init: Init): AsyncGenerator<Row, void> {
    let next: string | undefined = toQueryString(query)
    while (next !== undefined) {
      const answer = await send('GET', path, { ...init, query: next })
      yield* JSON.parse(await answer.text()) as Row[]
      next = /<[^>?]*(\?[^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1]
    }
  }
  return {
    /**
     * One page of the entities that match: 100, unless `$limit` says otherwise.
     * @example
     * const urgent = await client.entities('tasks').list({ done: false, points: { $gte: 3 }, $sort: '-points', $limit: 10 })
     * console.log(urgent.map((task) => task.title))
     */
    list: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
      query: Query<K, S, P> = {} as Query<K, S, P>,
      init: Init = {},
    ): Promise<EntityResult<B, K, S, P>[]> => request('GET', path, { ...init, query: toQueryString(query) }),

    /**
     * All entities that match, read page by page.
     * @example
     * for await (const task of client.entities('tasks').each({ $q: 'milk' })) console.log(task.title)
     */
    each: <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
      query: Query<K, S, P> = {} as Query<K, S, P>,
      init: Init = {},
    ) => readPages<EntityResult<B, K, S, P>>(path, query, init),

    /**
     * One entity, by its identifier or `_id`.
     * @example
     * const task = await client.entities('tasks').get('milk', { $populate: ['project'] })
     * console.log(task.title, typeof task.project === 'object' && task.project.name)
     */
    get: async <const S extends Selectable<K> = never, const P extends Paths<K> = never>(
      identifier: string,
      view: EntityView<S, P> = {},
      init: Init = {},
    ): Promise<EntityResult<B, K, S, P>> => request('GET', pathOf(identifier), { ...init, query: toQueryString(view) }),

    /**
     * Creates an entity. With the header `idempotency-key` it is created once, however often the request is repeated.
     * @example
     * const task = await client.entities('tasks').create({ title: 'Buy bread', points: 1 })
     * console.log(task.identifier, task.created)
     */
    create: async (entity: K['draft'], init: Init = {}): Promise<K['entity']> => post(path, entity, init),

    /**
     * Changes the given properties; `null` removes a value.
     * @example
     * await client.entities('tasks').change('milk', { done: true, points: null })
     */
    change: async (identifier: string, change: K['change'], init: Init = {}): Promise<K['entity']> =>
      put(pathOf(identifier), change, init),

    /**
     * Removes an entity.
     * @example
     * await client.entities('tasks').remove('milk')
     */
    remove: async (identifier: string, init: Init = {}) =>
      remove<{ success: true; identifier: string }>(pathOf(identifier), init),

    /**
     * The versions of an entity whose blueprint has a history, the latest first, read page by page.
     * @example
     * for await (const { version, at, changes } of client.entities('tasks').history('milk'))
     *   console.log(version, at, changes.title?.to)
     */
    history: (identifier: string, view: { $entity?: boolean } = {}, init: Init = {}) =>
      readPages<EntityVersion<K>>(`${pathOf(identifier)}/history`, view, init),

    /**
     * Gives an entity the values of one of its versions, also after its removal.
     * @example
     * const tasks = client.entities('tasks')
     * const { identifier, updated } = await tasks.create({ title: 'Buy bread' })
     * await tasks.change(identifier, { title: 'Buy rolls' })
     * console.log((await tasks.get(identifier, { $asOf: updated })).title)
     * await tasks.restore(identifier, 1)
     */
    restore: async (identifier: string, version: number, init: Init = {}): Promise<K['entity']> =>
      post(`${pathOf(identifier)}/history/${version}/restore`, undefined, init),

    /**
     * How many entities match.
     * @example
     * const open = await client.entities('tasks').count({ done: false })
     */
    count: async (filters: Filters<K> = {} as Filters<K>, init: Init = {}): Promise<number> =>
      createCharts<K>(transport, key).count(filters, init),

    /**
     * Up to 1,000 operations in one transaction: when one is refused, none is done.
     * @example
     * const [created] = await client.entities('tasks').batch([
     *   { op: 'create', identifier: 'eggs', data: { title: 'Buy eggs' } },
     *   { op: 'update', identifier: 'milk', data: { done: true } },
     * ])
     * console.log(created?.status)
     */
    batch: async (operations: readonly Operation<K>[], init: Init = {}): Promise<Result<K>[]> =>
      (await post<{ results: Result<K>[] }>(`${path}/batch`, { operations }, init)).results,

    /**
     * All entities that match, as one stream, oldest first.
     * @example
     * for await (const task of client.entities('tasks').export({ $select: ['title'] })) console.log(task.title)
     */
    async *export<const S extends Selectable<K> = never>(
      query: Filters<K> & { $select?: readonly S[] } = {} as Filters<K>,
      init: Init = {},
    ): AsyncGenerator<EntityResult<B, K, S, never>, void> {
      const call = { ...init, query: toQueryString(query), isStreamed: true }
      const answer = await send('GET', `${path}/export`, call)
      for await (const line of readLines(answer.chunks())) if (line) yield JSON.parse(line)
    },

    /**
     * Creates many entities. The report lists refused ones, which are skipped; with `atomic` all are.
     * @example
     * const report = await client.entities('tasks').import([{ title: 'One' }, { title: 'Two' }], { atomic: true })
     * console.log(report.imported, report.errors)
     */
    import: async (
      drafts: Iterable<K['draft']>,
      importOptions: { mode?: 'create' | 'upsert'; atomic?: boolean; dryRun?: boolean } = {},
      { headers, ...init }: Init = {},
    ): Promise<Report> =>
      request('POST', `${path}/import`, {
        ...init,
        query: toSearch(importOptions),
        body: Array.from(drafts, (draft) => `${JSON.stringify(draft)}\n`).join(''),
        headers: { 'content-type': 'application/x-ndjson', ...headers },
      }),

    /**
     * What happens to the entities that match, as it happens. After a lost connection the stream goes on where it ended.
     * `reset` says that this was not possible: load what you show again, as after `ready`.
     * @throws the reason of the signal when it aborts, and the error of a server that refuses the stream for good
     * @example
     * for await (const change of client.entities('tasks').changes({ done: false })) {
     *   if (change.type === 'create' || change.type === 'update') console.log(change.entity.title)
     *   if (change.type === 'ready') break
     * }
     */
    changes: <const S extends Selectable<K> = never>(
      query: Filters<K> & { $select?: readonly S[] } = {} as Filters<K>,
      init: Init = {},
    ) => followChanges<EntityResult<B, K, S, never>>(transport, `${path}/changes`, toQueryString(query), init),
  }
}
