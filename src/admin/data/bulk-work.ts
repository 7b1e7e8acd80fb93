import { useRef, useState } from 'react'
import type { Blueprint, Field } from '../api/schema'
import { showNotice, showProblem, showUndo } from '../ui/notices'
import { type BulkProgress, type BulkTarget, type Operation, runBulk } from './bulk-run'
import { refreshLists } from './entity-cache'

/** Returns how many of a blueprint's entities, such as "3 contacts"; its name has no singular. */
export const countEntities = (count: number, { name }: Pick<Blueprint, 'name'>) =>
  count === 1 ? '1 entity' : `${count.toLocaleString()} ${name.toLowerCase()}`

/** Work on many entities: it shows its progress and can be stopped, and a change can be undone. */
export function useBulkWork(blueprint: Blueprint) {
  const [progress, setProgress] = useState<BulkProgress>()
  const stop = useRef<AbortController>(undefined)
  const run = async (targets: BulkTarget[], toOperation: (target: BulkTarget) => Operation) => {
    stop.current = new AbortController()
    setProgress({ done: 0, total: targets.length, failures: [], isRunning: true })
    try {
      const result = await runBulk(blueprint.key, targets, toOperation, setProgress, stop.current.signal)
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
  const toUpdate = (field: Field, value: unknown) => ({ op: 'update' as const, data: { [field.key]: value ?? null } })
  return {
    progress,
    stop: () => stop.current?.abort(),
    close: () => setProgress(undefined),
    /** Changes a field of each. Returns how far it came, or undefined after a failure. */
    change: async (targets: BulkTarget[], field: Field, value: unknown) => {
      const result = await run(targets, () => toUpdate(field, value))
      if (!result?.done) return result
      const refused = new Set(result.failures.map(({ identifier }) => identifier))
      const changed = targets.slice(0, result.done + refused.size).filter(({ identifier }) => !refused.has(identifier))
      const undo = () => run(changed, ({ before }) => toUpdate(field, before))
      showUndo(`Changed ${field.title || field.key} of ${countEntities(result.done, blueprint)}.`, undo)
      return result
    },
    /** Deletes each. Returns how far it came, or undefined after a failure. */
    remove: async (targets: BulkTarget[]) => {
      const result = await run(targets, () => ({ op: 'delete' }))
      if (result?.done) showNotice(`Deleted ${countEntities(result.done, blueprint)}.`)
      return result
    },
  }
}
