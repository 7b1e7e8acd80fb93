import { useRef, useState } from 'react'
import type { Blueprint, Field } from '../api/schema'
import { showNotice, showProblem, showUndo } from '../ui/notices'
import { type BulkProgress, type BulkTarget, runBulk } from './bulk-run'
import { refreshLists } from './entity-cache'

/** Returns how many of a blueprint's entities, such as "3 contacts". */
export const countEntities = (count: number, { name }: Pick<Blueprint, 'name'>) =>
  `${count.toLocaleString()} ${name.toLowerCase()}`

/** Work on many entities: it shows its progress and can be stopped, and a change can be undone. */
export function useBulkWork(blueprint: Blueprint) {
  const [progress, setProgress] = useState<BulkProgress>()
  const stop = useRef<AbortController>(undefined)
  const run = async (operations: Parameters<typeof runBulk>[1]) => {
    stop.current = new AbortController()
    setProgress({ done: 0, total: operations.length, failures: [], isRunning: true })
    try {
      const result = await runBulk(blueprint.key, operations, setProgress, stop.current.signal)
      // What was refused stays in view until the user closes it.
      setProgress(result.failures.length ? result : undefined)
      return result
    } catch (error) {
      setProgress(undefined)
      showProblem(error)
      return undefined
    } finally {
      await refreshLists(blueprint.key)
    }
  }
  const toUpdate = (field: Field, target: BulkTarget, value: unknown) => ({
    ...{ op: 'update' as const, identifier: target.identifier },
    data: { [field.key]: value ?? null },
  })
  return {
    progress,
    stop: () => stop.current?.abort(),
    close: () => setProgress(undefined),
    change: async (targets: BulkTarget[], field: Field, value: unknown) => {
      const result = await run(targets.map((target) => toUpdate(field, target, value)))
      if (!result?.done) return
      const refused = new Set(result.failures.map(({ identifier }) => identifier))
      const changed = targets.slice(0, result.done + refused.size).filter(({ identifier }) => !refused.has(identifier))
      const undo = () => run(changed.map((target) => toUpdate(field, target, target.before)))
      showUndo(`Changed ${field.title || field.key} of ${countEntities(result.done, blueprint)}.`, undo)
    },
    remove: async (targets: BulkTarget[]) => {
      const result = await run(targets.map(({ identifier }) => ({ op: 'delete' as const, identifier })))
      if (result?.done) showNotice(`Deleted ${countEntities(result.done, blueprint)}.`)
    },
  }
}
