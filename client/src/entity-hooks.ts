import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import type { Client, EntityView, Filters, Kinds, Paths, Query, Selectable } from './index'
import { createStreams } from './live-streams'
import type { QuerySettings } from './query-settings'

type CachedEntity = { _id: string; identifier: string; metadata?: object }

/** Hooks for entities. Their queries begin with the scope. */
export function createEntityHooks<B extends Kinds<B>>(client: Client<B>, scope: string) {
  type Key = keyof B & string
  const entitiesKey = (key: string) => [scope, 'entities', key]
  const streams = createStreams(client, entitiesKey)

  function useList<const K extends Key, const S extends Selectable<B[K]> = never, const P extends Paths<B[K]> = never>(
    key: K,
    query: Query<B[K], S, P> = {} as Query<B[K], S, P>,
    settings: QuerySettings = {},
  ) {
    return useQuery({
      queryKey: [...entitiesKey(key), 'list', query],
      queryFn: ({ signal }) => client.entities(key).list<S, P>(query, { signal }),
      ...settings,
    })
  }

  /** Changes what lists and entities show at once, and takes it back when the server refuses it. */
  function useOptimistic<Variables, Result>(
    key: string,
    run: (variables: Variables) => Promise<Result>,
    apply: (entity: CachedEntity, variables: Variables) => CachedEntity | undefined,
  ) {
    const queryClient = useQueryClient()
    const queryKey = entitiesKey(key)
    return useMutation({
      mutationKey: queryKey,
      mutationFn: run,
      onMutate: async (variables: Variables) => {
        // A query that has no data yet is not cancelled.
        await queryClient.cancelQueries({ queryKey, predicate: ({ state }) => state.data !== undefined })
        const before = queryClient.getQueriesData({ queryKey })
        queryClient.setQueriesData({ queryKey }, (cached: unknown) => {
          if (Array.isArray(cached)) return cached.flatMap((one: CachedEntity) => apply(one, variables) ?? [])
          return isEntity(cached) ? (apply(cached, variables) ?? cached) : cached
        })
        return before
      },
      onError: (_error, _variables, before) => {
        for (const [cachedKey, data] of before ?? []) queryClient.setQueryData(cachedKey, data)
      },
      // What another change has shown, which the server does not have yet, would vanish.
      onSettled: () => {
        if (queryClient.isMutating({ mutationKey: queryKey }) === 1) void queryClient.invalidateQueries({ queryKey })
      },
    })
  }

  return {
    /**
     * One page of the entities that match.
     * @example
     * const { data: tasks = [], error } = useList('tasks', { done: false, $sort: '-points' })
     */
    useList,

    /**
     * A list that follows its changes: it is loaded again when an entity of the blueprint changes, wherever that happens.
     * All live lists of a blueprint share one stream.
     * @example
     * const { data: tasks = [] } = useLiveList('tasks', { done: false })
     */
    useLiveList<const K extends Key, const S extends Selectable<B[K]> = never, const P extends Paths<B[K]> = never>(
      key: K,
      query: Query<B[K], S, P> = {} as Query<B[K], S, P>,
      settings: QuerySettings = {},
    ) {
      const queryClient = useQueryClient()
      const { enabled = true } = settings
      useEffect(() => (enabled ? streams.follow(key, queryClient) : undefined), [key, queryClient, enabled])
      return useList<K, S, P>(key, query, settings)
    },

    /**
     * One entity; while the identifier is undefined, nothing is loaded.
     * @example
     * const { data: task } = useEntity('tasks', 'milk', { $populate: ['project'] })
     */
    useEntity: <const K extends Key, const S extends Selectable<B[K]> = never, const P extends Paths<B[K]> = never>(
      key: K,
      identifier: string | undefined,
      view: EntityView<S, P> = {},
      { enabled = true, ...settings }: QuerySettings = {},
    ) =>
      useQuery({
        queryKey: [...entitiesKey(key), 'entity', identifier, view],
        queryFn: ({ signal }) => client.entities(key).get<S, P>(identifier!, view, { signal }),
        enabled: enabled && identifier !== undefined,
        ...settings,
      }),

    /**
     * How many entities match.
     * @example
     * const { data: open = 0 } = useCount('tasks', { done: false })
     */
    useCount: <const K extends Key>(
      key: K,
      filters: Filters<B[K]> = {} as Filters<B[K]>,
      settings: QuerySettings = {},
    ) =>
      useQuery({
        queryKey: [...entitiesKey(key), 'count', filters],
        queryFn: ({ signal }) => client.entities(key).count(filters, { signal }),
        ...settings,
      }),

    /**
     * Creates entities.
     * @example
     * const create = useCreate('tasks')
     * const addTask = () => create.mutate({ title: 'Buy bread' })
     */
    useCreate<const K extends Key>(key: K) {
      const queryClient = useQueryClient()
      return useMutation({
        mutationFn: (draft: B[K]['draft']) => client.entities(key).create(draft),
        onSettled: () => queryClient.invalidateQueries({ queryKey: entitiesKey(key) }),
      })
    },

    /**
     * Changes entities, which show it at once.
     * @example
     * const change = useChange('tasks')
     * const finish = () => change.mutate({ identifier: 'milk', change: { done: true } })
     */
    useChange: <const K extends Key>(key: K) =>
      useOptimistic(
        key,
        ({ identifier, change }: { identifier: string; change: B[K]['change'] }) =>
          client.entities(key).change(identifier, change),
        (entity, { identifier, change }) =>
          isSame(entity, identifier) ? { ...entity, ...change, metadata: { ...entity.metadata, ...change } } : entity,
      ),

    /**
     * Removes entities by their identifiers. They vanish from lists at once.
     * @example
     * const remove = useRemove('tasks')
     * const drop = () => remove.mutate('milk')
     */
    useRemove: <const K extends Key>(key: K) =>
      useOptimistic(
        key,
        (identifier: string) => client.entities(key).remove(identifier),
        (entity, identifier) => (isSame(entity, identifier) ? undefined : entity),
      ),
  }
}

const isEntity = (value: unknown): value is CachedEntity =>
  value !== null && typeof value === 'object' && '_id' in value
const isSame = ({ _id, identifier }: CachedEntity, name: string) => _id === name || identifier === name
