import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { meQuery } from './queries'
import { getNamedTenant } from './session'

const PREFIX = 'atoll-preference'

function readPreference<Value>(key: string, initial: Value): Value {
  try {
    return JSON.parse(localStorage.getItem(key) ?? 'null') ?? initial
  } catch {
    // What an older version of the page stored may not be readable any more.
    return initial
  }
}

/** Returns how a person arranged something in this browser, and a function that keeps another arrangement. */
export function usePreference<Value>(name: string, initial: Value): [Value, (value: Value) => void] {
  const { data: me } = useQuery(meQuery)
  const key = `${PREFIX}:${getNamedTenant() ?? ''}:${me?._id ?? ''}:${name}`
  const [held, setHeld] = useState(() => ({ key, value: readPreference(key, initial) }))
  const value = held.key === key ? held.value : readPreference(key, initial)
  if (held.key !== key) setHeld({ key, value })
  const keep = (next: Value) => {
    setHeld({ key, value: next })
    try {
      localStorage.setItem(key, JSON.stringify(next))
    } catch {
      // The browser has no room or forbids it; the arrangement lasts as long as the page.
    }
  }
  return [value, keep]
}
