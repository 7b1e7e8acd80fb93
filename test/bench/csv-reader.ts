import { getModel } from '../../src/blueprints/blueprints'
import type { CellNotation } from '../../src/blueprints/fields/cell-notation'
import { UTC } from '../../src/core/time-zone'
import { CsvTable } from '../../src/entities/transfer/csv-table'
import { LineReader } from '../../src/entities/transfer/line-reader'
import { TextTranscoder } from '../../src/entities/transfer/transcoder'
import { createTempFolder } from '../temp-folder'
import { product, productsBlueprint } from './sample-data'

process.env.ATOLL_TENANTS ??= createTempFolder('csv-reader')
process.env.ATOLL_LOG_LEVEL = 'error'
const { createTestTenant } = await import('../test-tenant')
const { as, tenant } = await createTestTenant()
await as('admin').post('/blueprints', productsBlueprint)
const model = await getModel(tenant, 'products')

const rows = Number(process.argv[2] ?? 20_000)
const ROUNDS = 15
const PIECE = 1 << 13 // as an import reads them
const median = (list: number[]) => list.toSorted((a, b) => a - b)[list.length >> 1]!

type Dialect = { separator: string; decimal?: CellNotation['decimal']; encoding?: string }
const dialects: Record<string, Dialect> = {
  commas: { separator: ',' },
  semicolons: { separator: ';' },
  'semicolons and decimal commas': { separator: ';', decimal: 'comma' },
  tabs: { separator: '\t' },
  pipes: { separator: '|' },
}

/** Products as CSV. The texts have one comma less, so that all dialects quote the same cells. */
function toCsv({ separator, decimal }: Dialect): Uint8Array {
  const keys = Object.keys(product(0))
  const cell = (value: unknown) => {
    const text = `${value ?? ''}`.replaceAll(',', '')
    return typeof value === 'number' && decimal === 'comma' ? text.replace('.', ',') : text
  }
  const lines = Array.from({ length: rows }, (_, n) => {
    const one = product(n) as Record<string, unknown>
    return [`p${n}`, ...keys.map((key) => cell(one[key]))].join(separator)
  })
  return Buffer.from([['identifier', ...keys].join(separator), ...lines, ''].join('\n'))
}

function read(bytes: Uint8Array, { decimal = 'point', encoding = 'utf-8' }: Dialect): number {
  const table = new CsvTable(model, undefined, { decimal, zone: UTC }, { decimal })
  const [lines, transcoder] = [new LineReader(table.dialect, 1 << 20), new TextTranscoder(encoding)]
  let count = 0
  const readRows = (piece: ReturnType<LineReader['push']>) => {
    for (const line of piece) if (table.readRow(line, model)) count++
  }
  for (let at = 0; at < bytes.length; at += PIECE) readRows(lines.push(transcoder.push(bytes.subarray(at, at + PIECE))))
  readRows(lines.push(transcoder.push(new Uint8Array(), true)))
  readRows(lines.flush())
  return count
}

const files = Object.entries(dialects).map(([name, dialect]) => ({ name, dialect, bytes: toCsv(dialect) }))
const times = new Map<string, number[]>(files.map(({ name }) => [name, []]))
for (let round = -2; round < ROUNDS; round++)
  for (const { name, dialect, bytes } of round % 2 ? files : files.toReversed()) {
    const began = process.cpuUsage()
    if (read(bytes, dialect) !== rows) throw new Error(`Not all rows of ${name} were read.`)
    const { user, system } = process.cpuUsage(began)
    if (round >= 0) times.get(name)!.push(user + system)
  }
const base = median(times.get('commas')!)
for (const [name, list] of times)
  console.log(
    `${name}: ${(median(list) / rows).toFixed(2)} µs a row, ${(median(list) / base).toFixed(3)} of the time with commas`,
  )
process.exit()
