import type { Caller } from '../../blueprints/permissions'
import { type FieldError, Problem } from '../../core/problem'
import type { Doc } from '../store/doc'
import { getMaintainedIndexes, type IndexKeys, type IndexRow, toIndexKeys, toIndexRows } from '../store/index-keys'
import { computeFields, type EntityIdentity } from '../write/computed-fields'
import { type AlterationPlan, type TransformError, toPendingDocument } from '../write/pending-document'

/** A transformed entity: its new document, and the index keys and rows of the reindexed fields. */
export type TransformedEntity = { doc: Doc; keys: IndexKeys; index: IndexRow[]; errors: TransformError[] }

const SYSTEM_CALLER: Caller = { user: '', roles: [], privileged: true, workspace: null }

/**
 * Returns an entity in the new form, or the errors that prevent it. With `atOnce`, for use in a transaction, its
 * formulas do not wait for their turn. @throws 503 BUSY when too many formulas are waiting
 */
export async function transformEntity(
  plan: AlterationPlan,
  identity: EntityIdentity,
  before: Doc,
  when: { atOnce?: boolean } = {},
): Promise<TransformedEntity> {
  const { diff, next } = plan
  const errors: TransformError[] = []
  let doc = toPendingDocument(plan, before, errors)
  const failed: TransformedEntity = { doc, keys: {}, index: [], errors }
  if (errors.length) return failed
  try {
    if (diff.recomputes) doc = await computeFields(next, doc, identity, SYSTEM_CALLER, when)
    const keys = pickFreshKeys(plan, toIndexKeys(next, doc))
    return { doc, keys, index: toIndexRows(getMaintainedIndexes(next), keys), errors }
  } catch (error) {
    // A full queue (503) is not an error of the entity.
    if (!(error instanceof Problem && error.status === 400)) throw error
    for (const { path, message } of error.more.details as FieldError[])
      errors.push({ field: path.slice(1), code: path ? 'NOT_COMPUTABLE' : 'VALUES_DO_NOT_FIT', message })
    return failed
  }
}

/** Returns the index keys of the reindexed fields. */
export function pickFreshKeys({ diff, next }: AlterationPlan, keys: IndexKeys): IndexKeys {
  const numbers = new Set(
    next.fields.filter(({ key }) => diff.reindexedKeys.has(key)).map(({ number }) => `f${number}`),
  )
  return Object.fromEntries(Object.entries(keys).filter(([label]) => numbers.has(label.split('.', 1)[0]!)))
}
