import { useSyncExternalStore } from 'react'

/** A value outside of React that components follow. */
export type Observable<T> = { get(): T; set(value: T): void; subscribe(listener: () => unknown): () => void }

/** Returns an observable value. */
export function observable<T>(value: T): Observable<T> {
  const listeners = new Set<() => unknown>()
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return
      value = next
      for (const listener of listeners) listener()
    },
    subscribe: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Returns the current value, and renders the component again when it changes. */
export const useObservable = <T>({ subscribe, get }: Observable<T>) => useSyncExternalStore(subscribe, get)
