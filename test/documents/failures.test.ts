import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'

const COLUMNS = ['Fault', 'Log line', '`doctor` or `/ready`', 'Metric', 'What to do', 'Test']
const lines = readFileSync('docs/operations/failures.md', 'utf8').split('\n')
const rows = lines.filter((line) => line.startsWith('| ') && !line.startsWith('| ---')).map(toCells)

function toCells(line: string) {
  return line.slice(2, -2).split(' | ')
}

test('every table of failures has the same columns, and every row a value in each', () => {
  const heads = rows.filter(([first]) => first === COLUMNS[0])
  expect(heads.length).toBeGreaterThan(2)
  for (const head of heads) expect(head).toEqual(COLUMNS)
  for (const row of rows) {
    expect(row, row[0]).toHaveLength(COLUMNS.length)
    for (const cell of row) expect(cell.trim(), row[0]).not.toBe('')
  }
})

test('every failure names a test that exists', () => {
  for (const row of rows.filter(([first]) => first !== COLUMNS[0])) {
    const [, path = ''] = /^`(test\/[\w./-]+\.test\.ts)`$/.exec(row.at(-1)!) ?? []
    expect(existsSync(path), `${row[0]}: ${row.at(-1)}`).toBe(true)
  }
})
