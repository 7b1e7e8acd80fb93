import { now } from '../core/clock'
import type { Db, Tx } from '../storage/port'
import { takeNumber } from './number-sequence'
import type { FieldMapping } from './schema-diff'
import type { Definition } from './shapes'

/**
 * What stands for the fields of a blueprint in the history of its entities: a number for each key, which a rename keeps,
 * and which no other field gets, so that a new field never shows the values of a removed one. `since` is when the
 * history was switched on (ms since 1970). At most so many versions of an entity are kept, for so many days.
 */
export type HistoryFields = {
  since: number
  next: number
  numbers: Record<string, number>
  versions: number
  days: number
}

/** The history of the entities of a blueprint: its number, and those of the fields. */
export type EntityHistory = { number: number } & HistoryFields

type HistoryColumns = { historyNumber: number | null; historyFields: HistoryFields | null }

const DEFAULT_VERSIONS = 100
const DEFAULT_DAYS = 365

/** Returns the history of a blueprint, or undefined when it has none. */
export const historyOf = ({ historyNumber, historyFields }: HistoryColumns): EntityHistory | undefined =>
  historyNumber !== null && historyFields ? { number: historyNumber, ...historyFields } : undefined

/**
 * Returns the columns of the history for a new definition; `steps` tell which current field each field continues. A
 * history that was switched off has ended: another one gets another number.
 */
export async function nextHistory(
  tx: Tx,
  before: HistoryColumns | undefined,
  { history, fields }: Definition,
  steps: Pick<FieldMapping, 'key' | 'from'>[] = [],
): Promise<HistoryColumns> {
  if (!history) return { historyNumber: null, historyFields: null }
  const existing = before && historyOf(before)
  const sources = new Map(steps.map(({ key, from }) => [key, from]))
  const { versions = DEFAULT_VERSIONS, days = DEFAULT_DAYS } = history === true ? {} : history
  let next = existing?.next ?? 1
  const numbers: Record<string, number> = {}
  for (const { key } of fields) numbers[key] = existing?.numbers[sources.get(key) ?? ''] ?? next++
  return {
    historyNumber: existing?.number ?? (await takeNumber(tx, 'histories')),
    historyFields: { since: existing?.since ?? now(), next, numbers, versions, days },
  }
}

/** Returns the histories of all blueprints that have one, by their keys. */
export async function readHistories(db: Pick<Db, 'query'>): Promise<Map<string, EntityHistory>> {
  const rows = (await db.query(
    'select key, history_number, history_fields from blueprints where history_number is not null',
  )) as [string, number, string][]
  return new Map(rows.map(([key, number, fields]) => [key, { number: Number(number), ...JSON.parse(fields) }]))
}
