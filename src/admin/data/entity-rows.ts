import { useThrottledCallback } from '@mantine/hooks'
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Entity } from '../api/schema'
import { entityCountQuery, entityPageQuery, type ListSearch, PAGE_SIZE } from './entity-queries'

/** While somebody scrolls, only the table renders each frame; what is around it follows at most this often. */
const SCROLL_PAUSE_MS = 100

/** Returns access to the rows of a list by their index; pages are fetched when they come into view. */
export function useEntityRows(blueprint: string, query: ListSearch) {
  const [range, setRange] = useState({ first: 0, last: 40 })
  const count = useQuery({ ...entityCountQuery(blueprint, query), placeholderData: keepPreviousData })
  const [from, to] = [Math.floor(range.first / PAGE_SIZE), Math.floor(range.last / PAGE_SIZE)]
  const pages = Array.from({ length: to - from + 1 }, (_, n) => from + n)
  const loaded = useQueries({ queries: pages.map((page) => entityPageQuery(blueprint, query, page)) })
  const byPage = new Map(loaded.map(({ data }, n) => [from + n, data]))
  const rowAt = (index: number): Entity | undefined => byPage.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE]
  const setVisible = useThrottledCallback(
    (first: number, last: number) =>
      setRange((now) => (now.first === first && now.last === last ? now : { first, last })),
    SCROLL_PAUSE_MS,
  )
  return {
    count: count.data ?? 0,
    isPending: count.isPending,
    error: count.error ?? loaded.find(({ error }) => error)?.error,
    rowAt,
    setVisible,
    /** The rows of the pages in view. */
    listLoaded: () => loaded.flatMap(({ data }) => data ?? []),
    /** Returns the index of an entity in the list, or undefined when its page is not in view. */
    indexOf: (identifier: string): number | undefined => {
      for (const [page, rows] of byPage) {
        const index = rows?.findIndex((row) => row.identifier === identifier) ?? -1
        if (index >= 0) return page * PAGE_SIZE + index
      }
      return undefined
    },
  }
}

/** The rows of a list, by their index. */
export type EntityRows = ReturnType<typeof useEntityRows>
