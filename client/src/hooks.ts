import { type QueryClient, type QueryKey, useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import {
  AtollError,
  type ChatMessage,
  type ChatRequest,
  type Client,
  type EntityView,
  type Filters,
  type Kinds,
  type Paths,
  type Query,
  type Selectable,
  type SignInInit,
  type UploadInit,
} from './index'

/** What every query takes: whether it runs, and for how many ms its answer counts as fresh. */
export type QuerySettings = { enabled?: boolean; staleTime?: number }

type CachedEntity = { _id: string; identifier: string; metadata?: object }

const INVALIDATION_DELAY_MS = 100 // ms; changes often come several at once

/**
 * Hooks for a client, over TanStack Query. `scope` begins all keys of queries: give each client its own where a page has
 * several.
 * @example
 * const { useList, useCreate, useMe } = createHooks(client)
 */
export function createHooks<B extends Kinds<B>>(client: Client<B>, scope = 'atoll') {
  type Key = keyof B & string
  const entitiesKey = (key: string) => [scope, 'entities', key]
  const meKey = [scope, 'me']
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
        // One that has nothing to show yet goes on.
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

  /** A mutation after which another user or workspace is there, so that nothing that was loaded holds any more. */
  function useSessionMutation<Variables, Result>(run: (variables: Variables) => Promise<Result>) {
    const queryClient = useQueryClient()
    return useMutation({ mutationFn: run, onSuccess: () => queryClient.resetQueries({ queryKey: [scope] }) })
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

    /**
     * The own profile, or null when nobody is signed in. Follows sign-ins and sign-outs of all tabs.
     * @example
     * const { data: me, isPending } = useMe()
     */
    useMe(settings: QuerySettings = {}) {
      const queryClient = useQueryClient()
      useEffect(
        () =>
          client.onSession((session) => {
            // A guest whose first request is refused has not signed out.
            if (session || queryClient.getQueryData(meKey)) void queryClient.resetQueries({ queryKey: [scope] })
          }),
        [queryClient],
      )
      return useQuery({
        queryKey: meKey,
        queryFn: ({ signal }) =>
          client.me({ signal }).catch((error) => {
            if (error instanceof AtollError && error.status === 401) return null
            throw error
          }),
        ...settings,
      })
    },

    /**
     * Signs in by password.
     * @example
     * const signIn = useSignIn()
     * const submit = () => signIn.mutate({ username: 'grace', password: 'correct horse battery' })
     */
    useSignIn: (init: SignInInit = {}) =>
      useSessionMutation((credentials: Parameters<Client<B>['signIn']>[0]) => client.signIn(credentials, init)),

    /**
     * Creates an account and signs in.
     * @example
     * const signUp = useSignUp()
     * const submit = () => signUp.mutate({ username: 'ada', password: 'correct horse battery' })
     */
    useSignUp: () => useSessionMutation((account: Parameters<Client<B>['signUp']>[0]) => client.signUp(account)),

    /**
     * Signs out.
     * @example
     * const signOut = useSignOut()
     * const leave = () => signOut.mutate()
     */
    useSignOut: () => useSessionMutation<void, void>(() => client.signOut()),

    /**
     * The workspaces that the user is a member of.
     * @example
     * const { data: workspaces = [] } = useWorkspaces()
     */
    useWorkspaces: (settings: QuerySettings = {}) =>
      useQuery({
        queryKey: [scope, 'workspaces'],
        queryFn: ({ signal }) => client.workspaces.list({}, { signal }),
        ...settings,
      }),

    /**
     * Makes a workspace the active one. All queries are loaded again.
     * @example
     * const activate = useActivateWorkspace()
     * const open = (id: string) => activate.mutate(id)
     */
    useActivateWorkspace: () => useSessionMutation((id: string) => client.workspaces.activate(id)),

    /**
     * Uploads files, with the progress from 0 to 1.
     * @example
     * const { mutateAsync: upload, progress } = useUpload()
     * const send = async (picture: Blob) => (await upload(picture)).url
     */
    useUpload() {
      const [progress, setProgress] = useState(0)
      const onProgress: UploadInit['onProgress'] = ({ sent, total }) => setProgress(total ? sent / total : 1)
      const mutation = useMutation({
        mutationFn: (content: Parameters<Client<B>['files']['upload']>[0]) =>
          client.files.upload(content, { onProgress }),
        onMutate: () => setProgress(0),
      })
      return { ...mutation, progress }
    },

    /**
     * The active subscription of the user or their workspace, or null.
     * @example
     * const { data: subscription } = useSubscription()
     */
    useSubscription: (settings: QuerySettings = {}) =>
      useQuery({
        queryKey: [scope, 'subscription'],
        queryFn: ({ signal }) => client.payments.subscription({ signal }),
        ...settings,
      }),

    /**
     * A conversation with an agent, whose answers grow while they arrive.
     * @example
     * const { messages, send, isAnswering } = useChat('agent-id')
     * const ask = () => send('Tell me a story.')
     */
    useChat: (agent: string, options: Omit<ChatRequest, 'messages'> = {}) => useConversation(client, agent, options),
  }
}

const isEntity = (value: unknown): value is CachedEntity =>
  value !== null && typeof value === 'object' && '_id' in value
const isSame = ({ _id, identifier }: CachedEntity, name: string) => _id === name || identifier === name

/** Streams of changes by blueprint, each for all that follow it. */
function createStreams<B extends Kinds<B>>(client: Client<B>, keyOf: (key: string) => QueryKey) {
  const streams = new Map<string, { followers: Set<QueryClient>; stop(): void }>()

  function open(key: keyof B & string) {
    const [controller, followers] = [new AbortController(), new Set<QueryClient>()]
    let timer: ReturnType<typeof setTimeout> | undefined
    const invalidate = () => {
      timer = undefined
      const queryKey = keyOf(key)
      // The end of a change loads everything.
      for (const follower of followers)
        if (!follower.isMutating({ mutationKey: queryKey })) void follower.invalidateQueries({ queryKey })
    }
    const stop = () => {
      controller.abort()
      clearTimeout(timer)
      streams.delete(key)
    }
    const run = async () => {
      const changes = client.entities(key).changes<'_id'>({ $select: ['_id'] }, { signal: controller.signal })
      for await (const _ of changes) timer ??= setTimeout(invalidate, INVALIDATION_DELAY_MS)
    }
    // The server refused it, and lists are still loaded as others are.
    run().catch(stop)
    return { followers, stop }
  }

  return {
    follow(key: keyof B & string, queryClient: QueryClient) {
      const stream = streams.get(key) ?? open(key)
      streams.set(key, stream)
      stream.followers.add(queryClient)
      return () => {
        stream.followers.delete(queryClient)
        if (!stream.followers.size) stream.stop()
      }
    },
  }
}

function useConversation<B extends Kinds<B>>(
  client: Client<B>,
  agent: string,
  { threadId: givenThread, ...options }: Omit<ChatRequest, 'messages'>,
) {
  const [messages, setMessages] = useState<ChatMessage[]>([])
  const [error, setError] = useState<unknown>()
  const [isAnswering, setAnswering] = useState(false)
  const current = useRef<{ controller?: AbortController; threadId?: string }>({})
  const stop = () => current.current.controller?.abort()
  useEffect(() => () => current.current.controller?.abort(), [])

  /** Sends a message and resolves when it was answered, or stopped. */
  async function send(content: string) {
    stop()
    const controller = new AbortController()
    current.current.controller = controller
    const threadId = givenThread ?? current.current.threadId
    const question: ChatMessage = { role: 'user', content }
    const shown = [...messages, question]
    const show = (answer: string) => setMessages([...shown, { role: 'assistant', content: answer }])
    setMessages(shown)
    setError(undefined)
    setAnswering(true)
    try {
      let text = ''
      // A thread has the earlier messages.
      const request = { ...options, messages: threadId ? [question] : shown, ...(threadId && { threadId }) }
      for await (const part of client.ai.stream(agent, request, { signal: controller.signal })) {
        if (part.type === 'text') {
          text += part.text
          show(text)
        }
        if (part.type === 'end' && part.threadId) current.current.threadId = part.threadId
      }
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
    } finally {
      if (current.current.controller === controller) setAnswering(false)
    }
  }
  return { messages, send, stop, isAnswering, error }
}
