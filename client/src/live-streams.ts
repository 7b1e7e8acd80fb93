import type { QueryClient, QueryKey } from '@tanstack/react-query'
import type { Client, Kinds } from './index'

const INVALIDATION_DELAY_MS = 100 // ms; changes often come several at once

/** Streams of changes by blueprint, each for all that follow it. */
export function createStreams<B extends Kinds<B>>(client: Client<B>, keyOf: (key: string) => QueryKey) {
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
