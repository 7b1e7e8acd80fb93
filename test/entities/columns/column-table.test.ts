import { expect, test } from 'bun:test'
import { ColumnTable, type EntityValues } from '../../../src/entities/columns/column-table'

function createTable(entities: EntityValues[]) {
  const table = new ColumnTable({ started: 1, number: 0 })
  const column = table.addColumn('f1')
  table.fill([column], entities)
  table.sortByTime()
  for (const _ of column.sort());
  table.sortBy(column)
  return { table, column }
}

test('a table whose values have been replaced many times is read again', () => {
  const { table } = createTable(Array.from({ length: 1_000 }, (_, n) => [n + 1, n, n]))
  expect(table.isSparse).toBe(false)
  for (let value = 1_000; value < 20_000; value += 100) {
    const seqs = Array.from({ length: 100 }, (_, n) => ((value + n) % 1_000) + 1)
    table.change(
      seqs,
      seqs.map((seq, n) => [seq, seq - 1, value + n]),
    )
    table.sortFurther()
  }
  expect(table.isSparse).toBe(true)
})

test('the memory of a table counts the bytes of its numbers, of wide texts, and of entities out of order', () => {
  const count = 2_000
  const measure = (value: (n: number) => string | number, seq = (n: number) => n + 1) =>
    createTable(Array.from({ length: count }, (_, n) => [seq(n), n, value(n)])).table.bytes
  const texts = (letter: string) => measure((n) => letter.repeat(100) + n)
  expect(texts('я') - texts('a')).toBeGreaterThanOrEqual(100 * count)
  const numbers = measure((n) => n + 0.5)
  expect(numbers - measure(() => 0.5)).toBeGreaterThanOrEqual(8 * (count - 1))
  expect(
    measure(
      (n) => n + 0.5,
      (n) => count - n,
    ),
  ).toBeGreaterThanOrEqual(numbers + 24 * (count - 1))
})
