import { beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { handleRequest } from '../../../src/gateway'
import { createTempFolder } from '../../temp-folder'
import { createImportFixture, exportByIdentifier, importBody, toNdjson } from './import-fixtures'

/** Runs a program, and returns what it printed, or undefined where it is missing or fails. */
const run = (...command: string[]) => {
  try {
    const { success, stdout, stderr } = Bun.spawnSync(command, { stderr: 'pipe' })
    if (!success && `${stderr}`) console.warn(`${command[0]}: ${stderr}`)
    return success ? `${stdout}` : undefined
  } catch {
    return undefined
  }
}
const hasLibreOffice = !!Bun.which('soffice')
/** A Python that has pandas: Debian's, or the first one. */
const python = ['/usr/bin/python3', 'python3'].find(
  (one) => run('sh', '-c', `${one} -c "import pandas" 2>/dev/null`) !== undefined,
)
if (!hasLibreOffice) console.warn('SKIPPED: LibreOffice is not installed (apt-get install libreoffice-calc).')
if (!python) console.warn('SKIPPED: pandas is not installed (apt-get install python3-pandas).')

/** LibreOffice ends the lines within a cell by a line feed. */
const toComparable = (key: string, value: unknown) =>
  key === 'moment'
    ? Date.parse(value as string)
    : key === 'clock'
      ? (value as string).slice(0, 5)
      : typeof value === 'string'
        ? value.replaceAll('\r', '')
        : value

/** What spreadsheets change: numbers and texts that look alike, dates, words for true, formulas, signs and gaps. */
const lines = [
  {
    ...{ identifier: 'root', title: '=1+1', notes: 'a "b",\r\nc; d e', price: -0.1, stock: -(2 ** 53 - 1) },
    ...{ cost: '-0019.900', active: false, day: '2024-02-29', moment: '2026-01-31T12:00:00.123456+02:00' },
    ...{ clock: '08:00', data: { a: [1, 'x'] }, picture: '/a.png', mail: '+a@b.de', link: 'https://a.de/?b=c&d=e' },
    ...{ tags: ['=1', 'b,c'], scores: [1, 2], code: '-x' },
  },
  {
    ...{ identifier: 'second', title: '007', notes: 'ä €', price: 1e21, stock: 5, cost: '100000000000000000000' },
    ...{ active: true, day: '1999-12-31', moment: '2026-07-31T00:00:00Z', clock: '23:59:59', parent: 'root' },
  },
  { identifier: 'third', title: '+49 30', price: 5e-324, cost: '12345678901234567890.125', clock: '00:00', code: '@y' },
  { identifier: 'fourth', stock: 0, moment: '2026-03-29T00:00:00.000Z', active: true },
  { identifier: 'empty' },
]
const LOSSY = ['stock', 'cost', 'price', 'title'] // spreadsheets keep 15 digits, and no leading zeros

describe.skipIf(!hasLibreOffice && !python)('an export that another program has opened and saved', () => {
  let folder: string
  let own: Awaited<ReturnType<typeof createImportFixture>>
  beforeAll(async () => {
    folder = createTempFolder('spreadsheets')
    own = await createImportFixture()
    expect((await importBody(own)(toNdjson(lines))).body).toMatchObject({ imported: lines.length, failed: 0 })
    return () => rmSync(folder, { recursive: true })
  })

  const exportTo = async (name: string, query = '') => {
    const headers = { host: `${own.id}.test`, 'x-api-key': own.tokens.user! }
    const url = `${own.origin}/api${own.path}/export?format=csv&${query}`
    const file = join(folder, name)
    writeFileSync(file, await (await handleRequest(new Request(url, { headers }))).bytes())
    return file
  }

  /** Imports a file into an empty blueprint, where no row may be refused and no exact value may differ. */
  async function expectImported(file: string, query = '') {
    const other = await createImportFixture()
    const { body } = await importBody(other)(new Uint8Array(readFileSync(file)), `format=csv&${query}`)
    expect(body).toMatchObject({ imported: lines.length, failed: 0, errors: [] })
    const [before, after] = [
      await exportByIdentifier(own.as('user'), own.path),
      await exportByIdentifier(other.as('user'), other.path),
    ]
    const toExact = (entity: object) =>
      Object.fromEntries(
        Object.entries(entity)
          .filter(([key]) => !LOSSY.includes(key))
          .map(([key, value]) => [key, toComparable(key, value)]),
      )
    for (const [identifier, entity] of Object.entries(before)) {
      expect(toExact(after[identifier] as object), identifier).toEqual(toExact(entity as object))
      const [wanted, got] = [entity, after[identifier]].map((one) => Number((one as { cost?: string }).cost ?? 0))
      expect(Math.abs(got! - wanted!)).toBeLessThanOrEqual(Math.abs(wanted!) * 1e-14)
    }
  }

  /** Converts files by LibreOffice into another folder. Without an encoding, it takes CSV for Windows-1252. */
  const convert = (to: string, into: string, files: string[], reading: string[] = []) => {
    const profile = `-env:UserInstallation=file://${folder}/profile`
    run('soffice', profile, '--headless', ...reading, '--convert-to', to, '--outdir', join(folder, into), ...files)
  }
  const UTF8_CSV = ['--infilter=CSV:44,34,76']
  const csvOf = (separator: string) => `csv:Text - txt - csv (StarCalc):${separator.charCodeAt(0)},34,76`

  test.skipIf(!hasLibreOffice)(
    'an export saved by LibreOffice, as CSV or by a workbook, imports whole',
    async () => {
      const [first, second] = [await exportTo('first.csv', 'bom=true'), await exportTo('second.csv')]
      convert(csvOf(';'), 'csv', [first])
      const other = await createImportFixture()
      const file = new Uint8Array(readFileSync(join(folder, 'csv', 'first.csv')))
      expect((await importBody(other)(file, 'format=csv')).body).toMatchObject({ imported: lines.length, failed: 0 })
      convert('xlsx', 'books', [first], UTF8_CSV)
      convert('ods', 'books', [second], UTF8_CSV)
      convert(csvOf('\t'), 'of-books', [join(folder, 'books', 'first.xlsx'), join(folder, 'books', 'second.ods')])
      for (const name of ['first.csv', 'second.csv']) await expectImported(join(folder, 'of-books', name))
    },
    120_000,
  )

  test.skipIf(!python)(
    'an export saved by pandas, with and without its index, imports whole',
    async () => {
      const file = await exportTo('pandas.csv')
      const script = `
import sys, pandas
table = pandas.read_csv(sys.argv[1])
table.to_csv(sys.argv[1] + ".index")
table.to_csv(sys.argv[1] + ".plain", index=False)
table = pandas.read_csv(sys.argv[1], parse_dates=["moment", "day"])
table["moment"] = pandas.to_datetime(table["moment"].map(pandas.Timestamp), utc=True)
table.to_csv(sys.argv[1] + ".times", index=False, sep=";", decimal=",")
`
      expect(run(python!, '-c', script, file)).toBe('')
      await expectImported(`${file}.index`)
      await expectImported(`${file}.plain`)
      await expectImported(`${file}.times`, 'decimal=comma')
    },
    60_000,
  )
})
