import { api, fetchData } from '../api/client'
import { ApiProblem } from '../api/problem'
import type { Blueprint, Entity } from '../api/schema'
import { rememberOwnVersion, trackWrite } from './entity-cache'
import { listLabelKeys, toEntityLabel } from './entity-label'
import type { ListSearch } from './entity-queries'

const BATCH_SIZE = 100
const READ_SIZE = 1_000

/** One entity of many: what it is called, and what its change replaces. */
export type BulkTarget = { identifier: string; label: string; before?: unknown }

/** A target that the server refused, with its sentence. */
export type BulkFailure = BulkTarget & { message: string }

/** How far the work on many entities has come. Work that was stopped ends before its total. */
export type BulkProgress = { done: number; total: number; failures: BulkFailure[]; isRunning: boolean }

/** What is done with each of many entities. */
export type Operation = { op: 'update' | 'delete'; data?: Record<string, unknown> }

/** Returns an entity as one of many, with the property that is going to change. */
export const toTarget = (entity: Entity, property?: string): BulkTarget => ({
  ...{ identifier: entity.identifier, label: toEntityLabel(entity) },
  before: property && entity[property],
})

/** Returns all entities that match a list, with the property that is going to change. */
export async function readTargets(
  { key, fields }: Pick<Blueprint, 'key' | 'fields'>,
  search: ListSearch,
  property?: string,
): Promise<BulkTarget[]> {
  const { $sort: _, ...filters } = search
  const targets: BulkTarget[] = []
  const $select = [...new Set(['identifier', ...listLabelKeys({ fields }), ...(property ? [property] : [])])].join(',')
  for (let $after: string | undefined; ; ) {
    const query = { ...filters, $limit: READ_SIZE, $sort: 'created', $select, ...($after && { $after }) }
    const { data, response } = await api.GET('/api/blueprints/{key}/entities', { params: { path: { key }, query } })
    for (const entity of (data ?? []) as Entity[]) targets.push(toTarget(entity, property))
    const next = /<([^>]*)>;\s*rel="?next"?/.exec(response.headers.get('link') ?? '')?.[1]
    $after = next ? (new URL(next, location.origin).searchParams.get('$after') ?? undefined) : undefined
    if (!$after) return targets
  }
}

async function sendBatch(key: string, operations: (Operation & { identifier: string })[]) {
  const body = { operations }
  const { results } = await fetchData(
    api.POST('/api/blueprints/{key}/entities/batch', { params: { path: { key } }, body }),
  )
  for (const { entity } of results) if (entity) rememberOwnVersion(entity)
}

/** Returns the number of the operation that a refusal is about. */
function findRefused(error: unknown, count: number): number | undefined {
  if (!(error instanceof ApiProblem) || error.status >= 500) return undefined
  const { index } = (error.details ?? {}) as { index?: unknown }
  return typeof index === 'number' && index < count ? index : undefined
}

const toSentence = (error: unknown) => {
  const details = error instanceof ApiProblem ? (error.details as { details?: { message?: string }[] }) : undefined
  const flaws = Array.isArray(details?.details) ? details.details.map(({ message }) => message).join(' ') : ''
  return flaws || (error instanceof Error ? error.message : String(error))
}

/**
 * Changes or deletes many entities. A batch is all or nothing, so what is refused is left out and the others are sent
 * again.
 */
export async function runBulk(
  key: string,
  targets: BulkTarget[],
  toOperation: (target: BulkTarget) => Operation,
  onProgress: (progress: BulkProgress) => void,
  signal: AbortSignal,
): Promise<BulkProgress> {
  const failures: BulkFailure[] = []
  let done = 0
  const toProgress = (isRunning: boolean) => ({ done, total: targets.length, failures: [...failures], isRunning })
  for (let start = 0; start < targets.length && !signal.aborted; start += BATCH_SIZE) {
    let batch = targets.slice(start, start + BATCH_SIZE)
    while (batch.length) {
      try {
        await trackWrite(
          batch.map(({ identifier }) => identifier),
          () =>
            sendBatch(
              key,
              batch.map((target) => ({ ...toOperation(target), identifier: target.identifier })),
            ),
        )
        done += batch.length
        break
      } catch (error) {
        const refused = findRefused(error, batch.length)
        if (refused === undefined) throw error
        failures.push({ ...batch[refused]!, message: toSentence(error) })
        batch = batch.filter((_, n) => n !== refused)
      }
    }
    onProgress(toProgress(true))
  }
  return toProgress(false)
}
