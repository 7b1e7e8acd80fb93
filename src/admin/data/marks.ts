import { useState } from 'react'
import type { Entity } from '../api/schema'
import type { EntityRows } from './entity-rows'

/** The rows that are marked: some of them, or all that match the filters. Other filters take the mark from all. */
export function useMarks(list: EntityRows, listKey: string) {
  const [rows, setRows] = useState<ReadonlyMap<string, Entity>>(new Map())
  const [markedList, setMarkedList] = useState<string>()
  const isAll = markedList === listKey
  const loaded = list.listLoaded()
  return {
    rows,
    isAll,
    keys: isAll ? new Set(loaded.map(({ identifier }) => identifier)) : new Set(rows.keys()),
    listMarkable: () => loaded.map(({ identifier }) => identifier),
    mark: (keys: ReadonlySet<string>) => {
      setMarkedList(undefined)
      const loadedRows = new Map(loaded.map((row) => [row.identifier, row]))
      setRows(
        new Map(
          [...keys].flatMap((key) => {
            const row = loadedRows.get(key) ?? rows.get(key)
            return row ? [[key, row] as const] : []
          }),
        ),
      )
    },
    markAll: () => setMarkedList(listKey),
    clear: () => {
      setMarkedList(undefined)
      setRows(new Map())
    },
  }
}

/** The marks of a list. */
export type Marks = ReturnType<typeof useMarks>
