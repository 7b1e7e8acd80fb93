import { expect, test } from 'bun:test'
import type { Model } from '../../../src/blueprints/model'
import { countByMarks } from '../../../src/entities/query/index-marks'
import { fragment } from '../../../src/entities/store/sql-fragments'
import type { Db } from '../../../src/storage/port'
import { waitUntil } from '../../wait-until'

const MARKS = 200
const model = { _id: 'one', key: 'things', version: 1, form: 0 } as Model

/** Returns a database with indexes that have so many marks, and the indexes of which a mark was read, each as often as it was. */
function createIndexDb() {
  const state = { changes: 1, read: [] as unknown[] }
  const query: Db['query'] = async (sql, params = []) => {
    if (sql.includes('tracked_blueprints')) return [[1, state.changes]]
    if (sql.startsWith('select count')) return [[1]]
    if (!sql.includes('limit 1 offset')) return [['', 1, 1]]
    const [index, , , entity = 0] = params as number[]
    state.read.push(index)
    return entity < MARKS ? [['', 1, entity + 1]] : []
  }
  return { state, db: { query, yieldToOthers: () => Bun.sleep(0) } as unknown as Db }
}

test('marks are not read any more once an entity has changed', async () => {
  const { db, state } = createIndexDb()
  const countRows = (index: number) => {
    const at = fragment('i.field = ?', index)
    return countByMarks(db, model, at, at)
  }
  for (let n = 0; n < 2; n++) await countRows(1)
  state.changes++
  await countRows(2)
  await waitUntil(async () => (await countRows(2)) !== undefined)
  const countReads = (index: number) => state.read.filter((one) => one === index).length
  expect(countReads(2)).toBe(MARKS + 1)
  expect(countReads(1)).toBeLessThan(MARKS)
})
