import { expect, test } from 'bun:test'
import { waitUntil } from '../../wait-until'
import { createThingsFixture } from '../fixtures'
import { importBody, oddTexts } from './import-fixtures'

const fields = [
  { key: 'title', type: 'string', indexed: true, max: 40 },
  { key: 'notes', type: 'text' },
  { key: 'price', type: 'number', max: 1_000 },
  { key: 'stock', type: 'integer' },
  { key: 'cost', type: 'decimal' },
  { key: 'active', type: 'boolean' },
  { key: 'day', type: 'date' },
  { key: 'moment', type: 'datetime' },
  { key: 'clock', type: 'time' },
  { key: 'mail', type: 'email' },
  { key: 'link', type: 'url' },
  { key: 'kind', type: 'string', enum: ['a', 'b'] },
  { key: 'label', type: 'string', default: 'ä', required: true },
  { key: 'level', type: 'integer', default: 3 },
  { key: 'need', type: 'string', required: true },
  { key: 'tags', type: 'string', multi: true },
]

/** Cells of each column, of which some are no values of it. */
const cells: Record<string, string[]> = {
  identifier: [''],
  title: [...oddTexts, 'a', 'ä', 'x'.repeat(41)],
  notes: ['', ...oddTexts, 'long '.repeat(40), 'ß'.repeat(300), '\0'],
  price: ['1', '1.5', '-0', '0', '1e2', '007', '1,5', 'x', '', '2000', '4.9e-324', '1e999'],
  stock: ['0', '-5', '12', '9007199254740993', '4.0', '', 'x'],
  cost: ['1.50', '-0.1', '1.5', '', 'x'],
  active: ['true', 'FALSE', 'yes', '', '1'],
  day: ['2024-02-29', '2023-02-29', '2024-02-29 00:00', ''],
  moment: ['2026-01-31T12:00:00Z', '2026-01-31 12:00', '2026-01-31T12:00:00.123+02:00', '', 'soon'],
  clock: ['08:00', '8:00 PM', '25:00', ''],
  mail: ['a@b.de', 'nobody', ''],
  link: ['https://a.de/?b=c&d=e', 'x', ''],
  kind: ['a', 'b', 'c', ''],
  label: ['', 'x', '"'],
  level: ['', '1', '5'],
  need: ['', 'n'],
}

const quote = (cell: string) => `"${cell.replaceAll('"', '""')}"`
const toCell = (cell: string, isQuoted: boolean) => (isQuoted || /[",\r\n]|^\s|\s$/.test(cell) ? quote(cell) : cell)

/** A table in which most rows have one odd cell, and the others are plain. */
function toTable(rows: number, more: { name: string; cell: string }[] = []) {
  const names = Object.keys(cells)
  const plain: Record<string, string> = { title: 'a', price: '1', moment: '2026-01-31T12:00:00Z', kind: 'b', need: 'n' }
  const lines = [[...names, ...more.map(({ name }) => name)].join(',')]
  for (let n = 0; n < rows; n++) {
    const odd = names[1 + (n % (names.length - 1))]!
    const choices = cells[odd]!
    const row = names.map((name) => {
      if (name === 'identifier') return n % 3 ? `row-${n % 500 ? n : '\0'}` : ''
      const cell = name === odd ? choices[Math.floor(n / names.length) % choices.length]! : (plain[name] ?? '')
      return toCell(cell, n % 7 === 0)
    })
    lines.push([...row, ...more.map(({ cell }) => cell)].join(','))
  }
  lines.push('row-x,a"b', ',,', `row-y${','.repeat(names.length + 3)}`, 'row-z,"open')
  return lines.join('\n')
}

type Fixture = Awaited<ReturnType<typeof createThingsFixture>>

/** Returns the stored texts of all entities in their order, with names in place of the numbers of fields, and index rows. */
async function readStored({ tenant: { db } }: Fixture) {
  const entities = await db.query('select identifier, _id, shown, keys from entities order by seq')
  const names = new Map((await db.query('select number, key from fields')).map(([number, key]) => [`f${number}`, key]))
  const index = await db.query(
    'select path, value, e.shown from entity_index i join entities e on e.seq = i.entity order by i.entity, path, value',
  )
  const texts = entities.map(([name, _id, shown, keys]) => {
    const named = Object.entries(JSON.parse(keys as string)).map(([label, key]) => [names.get(label), key])
    return [_id === null ? 'without a name' : name, shown, Object.fromEntries(named)]
  })
  return { texts, index }
}

test('a table imported with cached cells stores and reports the same as one read cell by cell', async () => {
  const [plain, listed] = [await createThingsFixture(fields), await createThingsFixture(fields)]
  const report = await importBody(plain)(toTable(1_500), 'format=csv')
  const listedReport = await importBody(listed)(toTable(1_500, [{ name: 'tags', cell: '' }]), 'format=csv')
  expect(report.body.imported).toBeGreaterThan(800)
  expect(report.body.failed).toBeGreaterThan(200)
  const withoutColumns = ({ body: { understood: _, ...rest } }: typeof report) =>
    JSON.stringify(rest).replaceAll('17 columns', '16 columns').replaceAll('the header has 17', 'the header has 16')
  expect(withoutColumns(report)).toBe(withoutColumns(listedReport))
  expect(await readStored(plain)).toEqual(await readStored(listed))
})

test('a table with more distinct cells than the cache holds is stored unchanged', async () => {
  const own = await createThingsFixture(['one', 'two', 'three'].map((key) => ({ key, type: 'string' })))
  const rows = Array.from({ length: 16_000 }, (_, n) => [`${n}`, `b${n % 8_000}`, `é${n}`])
  const table = ['one,two,three', ...rows.map((row) => row.join(','))].join('\n')
  expect((await importBody(own)(table, 'format=csv')).body).toMatchObject({ imported: rows.length, failed: 0 })
  const stored = await own.tenant.db.query('select shown from entities order by seq')
  expect(stored.map(([text]) => text)).toEqual(rows.map(([one, two, three]) => JSON.stringify({ one, two, three })))
})

test('an upsert of a table changes only the fields of its columns, without setting defaults', async () => {
  const own = await createThingsFixture(fields)
  const user = own.as('user')
  await user.post(own.path, { identifier: 'known', title: 'x', level: 7, kind: 'a', need: 'n' })
  const table = 'identifier,title,kind,level,need\nknown,y,,,\nnew,z,b,,m'
  expect((await importBody(own)(table, 'format=csv&mode=upsert')).body).toMatchObject({ imported: 2, failed: 0 })
  const read = async (name: string) => (await user.get(`${own.path}/${name}`)).body.metadata
  expect(await read('known')).toEqual({ title: 'y', level: 7, kind: 'a', need: 'n', label: 'ä' })
  expect(await read('new')).toEqual({ title: 'z', kind: 'b', need: 'm', label: 'ä', level: 3 })
})

test('rows after a change of the blueprint follow its new version', async () => {
  const own = await createThingsFixture([{ key: 'title', type: 'string' }])
  const sent = Promise.withResolvers<void>()
  const lines = (from: number) => Array.from({ length: 250 }, (_, n) => `title ${from + n}\n`).join('')
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(Buffer.from(`title\n${lines(0)}`))
      await sent.promise
      controller.enqueue(Buffer.from(`${lines(250)}no\n`))
      controller.close()
    },
  })
  const importing = importBody(own)(body, 'format=csv')
  await waitUntil(
    () => own.rows('entities'),
    (count) => count > 0,
  )
  const changed = [
    { key: 'title', type: 'string', min: 3 },
    { key: 'level', type: 'integer', default: 3 },
  ]
  expect((await own.as('admin').put('/blueprints/things', { fields: changed })).status).toBe(200)
  sent.resolve()
  const { imported, errors } = (await importing).body
  expect([imported, errors.map(({ line, message }: { line: number; message: string }) => [line, message])]).toEqual([
    500,
    [[502, 'title must have at least 3 characters.']],
  ])
  const { body: last } = await own.as('user').get(`${own.path}?title=title 499`)
  expect(last[0].metadata).toEqual({ title: 'title 499', level: 3 })
})
