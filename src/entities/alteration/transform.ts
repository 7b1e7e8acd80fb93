import type { Caller } from '../../blueprints/permissions'
import { type FieldError, Problem } from '../../core/problem'
import type { Doc } from '../store/doc'
import { type IndexKeys, type IndexRow, toIndexKeys, toIndexRows } from '../store/index-keys'
import { computeFields, type EntityIdentity } from '../write/computed-fields'
import { type AlterationPlan, type TransformError, toPendingDocument } from '../write/pending-document'

/** What an entity becomes: its document, and by what those fields are found whose index is built anew. */
export type TransformedEntity = { doc: Doc; keys: IndexKeys; index: IndexRow[]; errors: TransformError[] }

const SYSTEM_CALLER: Caller = { user: '', roles: [], privileged: true, workspace: null }

/**
 * Works out what becomes of an entity: within a write `atOnce`, else its formulas wait for their turn.
 * @throws 503 BUSY for too many formulas at a time
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
    return { doc, keys, index: toIndexRows(next, keys), errors }
  } catch (error) {
    // A queue that is full (503) says nothing of the entity.
    if (!(error instanceof Problem && error.status === 400)) throw error
    for (const { path, message } of error.more.details as FieldError[])
      errors.push({ field: path.slice(1), code: path ? 'NOT_COMPUTABLE' : 'VALUES_DO_NOT_FIT', message })
    return failed
  }
}

/** Of the texts of the index, those of fields whose index is built anew. */
export function pickFreshKeys({ diff, next }: AlterationPlan, keys: IndexKeys): IndexKeys {
  const numbers = new Set(
    next.fields.filter(({ key }) => diff.reindexedKeys.has(key)).map(({ number }) => `f${number}`),
  )
  return Object.fromEntries(Object.entries(keys).filter(([label]) => numbers.has(label.split('.', 1)[0]!)))
}
