// engine: sqlite
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'

const COLUMNS = ['Fault', 'Log line', '`doctor` or `/ready`', 'Metric', 'What to do', 'Test']
const lines = readFileSync('docs/operations/failures.md', 'utf8').split('\n')
const rows = lines.filter((line) => line.startsWith('| ') && !line.startsWith('| ---')).map(toCells)
const failures = rows.filter(([first]) => first !== COLUMNS[0])

function toCells(line: string) {
  return line.slice(2, -2).split(' | ')
}

/** Returns the names in a cell that match a pattern. */
const namesIn = (cell: string, pattern: RegExp) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!).filter((name) => pattern.test(name))

const CODE = /^([A-Z]{2,}(_[A-Z]+)*|[a-z]+(-[a-z]+)+)$/
const CHECK = /^(servers|registry|warnings|[a-z]+ (target|backup|store|tenant))$/
const METRIC = /^(atoll|process)_\w+$/

test('every table of failures has the same columns, and every row a value in each', () => {
  const heads = rows.filter(([first]) => first === COLUMNS[0])
  expect(heads.length).toBeGreaterThan(2)
  for (const head of heads) expect(head).toEqual(COLUMNS)
  for (const row of rows) {
    expect(row, row[0]).toHaveLength(COLUMNS.length)
    for (const cell of row) expect(cell.trim(), row[0]).not.toBe('')
  }
})

test.each(failures.map((row) => [row[0]!, row] as const))(
  'the codes, checks and metrics of the failure "%s" occur in the tests that its row names',
  (_, [, logged = '', checked = '', measured = '', , tests = '']) => {
    const paths = tests.split(', ').map((path) => /^`(test\/[\w./-]+\.test\.ts)`$/.exec(path)?.[1] ?? path)
    for (const path of paths) expect(existsSync(path), path).toBe(true)
    const text = paths.map((path) => readFileSync(path, 'utf8')).join('\n')
    const metrics = namesIn(measured, METRIC)
    expect(metrics.length > 0 || measured.startsWith('none'), measured).toBe(true)
    const names = [...namesIn(logged, CODE), ...namesIn(checked, CHECK), ...namesIn(checked, CODE), ...metrics]
    for (const name of names) expect(text.includes(name), name).toBe(true)
  },
)
