import { describe, expect, test } from 'bun:test'
import { handleRequest } from '../../../src/gateway'
import { statusAndCode } from '../../test-tenant'
import { createImportFixture, exportByIdentifier, importBody, toNdjson } from './import-fixtures'

const CSV = 'format=csv'
const csvType = (charset: string) => ({ 'content-type': `text/csv; charset=${charset}` })

/** Imports a CSV file into a new tenant, and returns the answer and the properties of all entities. */
async function importCsv(file: string | Uint8Array, query = '', headers: Record<string, string> = {}) {
  const own = await createImportFixture([{ key: 'address', type: 'object' }])
  const answer = await importBody(own)(file, headers['content-type'] ? query : `${CSV}&${query}`, headers)
  return { ...answer, entities: await exportByIdentifier(own.as('user'), own.path) }
}

describe('cells as other programs write them', () => {
  test('booleans come in any case, and numbers with blanks, a plus sign or an exponent', async () => {
    const { body, entities } = await importCsv(
      [
        'identifier,active,stock,price,cost',
        'a,TRUE, 2 ,+5,1e+20',
        'b,False,+5,.5,1.5E-7',
        'c, true ,7.0,5.,+19.90',
        'd,FALSE,-9.007e+15,1E+021,-1.23456789012346E+019',
      ].join('\n'),
    )
    expect(body).toMatchObject({ imported: 4, failed: 0 })
    expect(entities).toEqual({
      a: { active: true, stock: 2, price: 5, cost: '100000000000000000000' },
      b: { active: false, stock: 5, price: 0.5, cost: '0.00000015' },
      c: { active: true, stock: 7, price: 5, cost: '19.90' },
      d: { active: false, stock: -9_007_000_000_000_000, price: 1e21, cost: '-12345678901234600000' },
    })
  })

  test('days and times come with a blank between them, and are in the zone that the import names', async () => {
    const lines = (moment: string) => `identifier,moment\na,${moment}\n`
    for (const [moment, query, expected] of [
      ['2024-01-31 00:00:00', '', '2024-01-31T00:00:00.000Z'],
      ['2024-01-31 00:00:00', 'timezone=Europe/Berlin', '2024-01-30T23:00:00.000Z'],
      ['2024-07-31', 'timezone=America/New_York', '2024-07-31T04:00:00.000Z'],
      ['2024-07-31 12:30', 'timezone=Asia/Kolkata', '2024-07-31T07:00:00.000Z'],
      ['2024-07-31T12:30:00.123456', 'timezone=Asia/Kolkata', '2024-07-31T07:00:00.123456Z'],
      // The clocks go forward from 2:00 to 3:00, and back from 3:00 to 2:00.
      ['2026-03-29 02:30:00', 'timezone=Europe/Berlin', '2026-03-29T01:30:00.000Z'],
      ['2026-10-25 02:30:00', 'timezone=Europe/Berlin', '2026-10-25T00:30:00.000Z'],
      ['2026-10-04 02:15:00', 'timezone=Australia/Lord_Howe', '2026-10-03T15:45:00.000Z'],
      ['2024-01-31 00:00:00+00:00', 'timezone=Europe/Berlin', '2024-01-31T00:00:00+00:00'],
      ['2024-01-31 00:00:00+0530', '', '2024-01-31T00:00:00+05:30'],
      ['2024-01-31T12:00Z', 'timezone=Europe/Berlin', '2024-01-31T12:00Z'],
    ] as const)
      expect((await importCsv(lines(moment), query)).entities, `${moment} ${query}`).toEqual({
        a: { moment: expected },
      })
    const { entities } = await importCsv('identifier,day,clock\na,2024-01-31 00:00:00,8:05 PM\nb,2024-01-31,8:05:00\n')
    expect(entities).toEqual({ a: { day: '2024-01-31', clock: '20:05' }, b: { day: '2024-01-31', clock: '08:05:00' } })
    expect((await importCsv('day,moment\n2024-01-31 10:00:00,\n,2024-02-30 00:00\n')).body).toMatchObject({
      imported: 0,
      failed: 2,
    })
    expect(statusAndCode(await importCsv(lines('2024-01-31'), 'timezone=Europe/Atlantis'))).toEqual([
      400,
      'INVALID_INPUT',
    ])
  })

  test('NDJSON needs a zone in its times, unless the import names one', async () => {
    const own = await createImportFixture()
    const file = toNdjson([
      { identifier: 'a', moment: '2024-07-31 12:00:00' },
      { identifier: 'b', metadata: { moment: '2024-07-31T12:00:00' } },
      { identifier: 'c', moment: '2024-07-31T12:00:00Z' },
    ])
    expect((await importBody(own)(file)).body).toMatchObject({ imported: 1, failed: 2 })
    const zoned = await importBody(own)(file, 'format=ndjson&timezone=Europe/Berlin&mode=upsert')
    expect(zoned.body).toEqual({ imported: 3, failed: 0, errors: [] })
    expect(await exportByIdentifier(own.as('user'), own.path)).toEqual({
      a: { moment: '2024-07-31T10:00:00.000Z' },
      b: { moment: '2024-07-31T10:00:00.000Z' },
      c: { moment: '2024-07-31T12:00:00Z' },
    })
    for (const query of ['separator=;', 'decimal=comma'])
      expect(statusAndCode(await importBody(own)(file, `format=ndjson&${query}`))).toEqual([400, 'INVALID_INPUT'])
  })

  test('rows of separators alone and further empty cells are left out, and so are columns without name and value', async () => {
    const { body, entities } = await importCsv('identifier,title,\na,x,\n,,\n , , \n"","",""\nb,y,,,\n\t,,\nc,z\n')
    expect(body).toMatchObject({
      imported: 2,
      failed: 1,
      errors: [{ line: 8, code: 'MALFORMED_LINE' }],
      understood: { columns: ['identifier', 'title'] },
    })
    expect(entities).toEqual({ a: { title: 'x' }, b: { title: 'y' } })
  })

  test('a column without a name that numbers the rows is left out; other values need a name', async () => {
    for (const first of [0, 1]) {
      const rows = ['a', 'b', 'c'].map((name, n) => `${n + first},${name}`)
      const { body, entities } = await importCsv(`,identifier\n${rows.join('\n')}\n`)
      expect(body).toMatchObject({ imported: 3, understood: { columns: ['identifier'] } })
      expect(Object.keys(entities)).toEqual(['a', 'b', 'c'])
    }
    expect((await importCsv(',identifier\n0,a\n7,b\n')).body).toMatchObject({ imported: 1, errors: [{ line: 3 }] })
    for (const file of [',identifier\n5,a\n', 'identifier,\na,1\n']) {
      const { status, body, entities } = await importCsv(file)
      expect([status, body.message, entities]).toEqual([400, expect.stringContaining('has no name for it'), {}])
    }
  })
})

describe('separators', () => {
  test.each([
    [';', ''],
    ['\t', ''],
    ['|', ''],
    [',', ''],
    [';', 'separator=;'],
    ['\t', 'separator=tab'],
    ['\t', 'separator=%09'],
    ['|', 'separator=pipe'],
  ])('cells that %p separates are found by the header (%p)', async (separator, query) => {
    const row = (...cells: string[]) => `${cells.join(separator)}\r\n`
    const file = row('"identifier"', 'title', 'notes') + row('a', `"x${separator} ""y""\r\nz"`, 'n')
    const { body, entities } = await importCsv(file, query)
    const understood = { separator, encoding: 'utf-8', columns: ['identifier', 'title', 'notes'] }
    expect(body).toEqual({ imported: 1, failed: 0, errors: [], understood })
    expect(entities).toEqual({ a: { title: `x${separator} "y"\r\nz`, notes: 'n' } })
  })

  test('the first line may name the separator, and the query has the last word', async () => {
    expect((await importCsv('sep=;\nidentifier;title\na;x,y\n')).entities).toEqual({ a: { title: 'x,y' } })
    expect((await importCsv('\ufeff"sep=\t"\r\nidentifier\ttitle\r\na\tx\r\n')).entities).toEqual({ a: { title: 'x' } })
    expect((await importCsv('sep=,\nidentifier;title\na;x\n', 'separator=;')).entities).toEqual({ a: { title: 'x' } })
    expect((await importCsv('sep=;\nidentifier;title\n\nb;"c\n')).body.errors).toMatchObject([{ line: 4 }])
    expect(statusAndCode(await importCsv('sep=x\nidentifierxtitle\n'))).toEqual([400, 'INVALID_INPUT'])
    expect(statusAndCode(await importCsv('sep=;\n'))).toEqual([400, 'MALFORMED_BODY'])
  })

  test('a file that mixes separators is refused, or those of its rows that do', async () => {
    const mixed = await importCsv('identifier;title,notes\na;x,y\n')
    expect([statusAndCode(mixed), mixed.entities]).toEqual([[400, 'INVALID_INPUT'], {}])
    expect(mixed.body.message).toContain('a comma and a semicolon')
    const rows = await importCsv('identifier;title;notes\na;x;y\nb,x,y\nc;x,y\n')
    expect(rows.body).toMatchObject({
      imported: 1,
      failed: 2,
      errors: [{ line: 3, code: 'MALFORMED_LINE' }, { line: 4 }],
    })
    expect(rows.body.errors[0].message).toContain('separated by a comma, those of the header by a semicolon')
  })

  test('decimal commas are read where the import says so, and never guessed', async () => {
    const file = 'identifier;price;stock;cost\na;1,5;2;-19,90\n'
    expect((await importCsv(file, 'decimal=comma')).entities).toEqual({ a: { price: 1.5, stock: 2, cost: '-19.90' } })
    const { body } = await importCsv(file)
    expect([body.imported, body.errors[0].message]).toEqual([0, expect.stringContaining('decimal=comma')])
    const points = await importCsv('identifier;price\na;1.500\n', 'decimal=comma')
    expect([points.body.imported, points.body.failed]).toEqual([0, 1])
    for (const query of ['decimal=comma&separator=,', 'decimal=comma', 'decimal=dot', 'separator=x'])
      expect(statusAndCode(await importCsv('identifier,price\na,1\n', query)), query).toEqual([400, 'INVALID_INPUT'])
  })
})

test('files in other encodings are read by their byte order mark or the charset that is named', async () => {
  const text = 'identifier;title\r\na;Müller – €\r\n'
  const utf16 = (order: 'le' | 'be', mark = true) => {
    const bytes = Buffer.from((mark ? '\ufeff' : '') + text, 'utf16le')
    return order === 'le' ? bytes : bytes.swap16()
  }
  const windows = Buffer.from(text.replace('–', '\x96').replace('€', '\x80'), 'latin1')
  for (const [file, encoding, headers] of [
    [Buffer.from(`\ufeff${text}`), 'utf-8', {}],
    [utf16('le'), 'utf-16le', {}],
    [utf16('be'), 'utf-16be', {}],
    [utf16('le', false), 'utf-16le', {}],
    [windows, 'windows-1252', csvType('windows-1252')],
    [windows, 'windows-1252', csvType('"ISO-8859-1"')],
  ] as const) {
    const { body, entities } = await importCsv(file, '', headers)
    expect(body.understood, encoding).toMatchObject({ encoding, separator: ';' })
    expect(entities, encoding).toEqual({ a: { title: 'Müller – €' } })
  }
  const unnamed = await importCsv(windows)
  expect([unnamed.body.failed, unnamed.body.errors[0].message]).toEqual([1, expect.stringContaining('windows-1252')])
  expect(statusAndCode(await importCsv(text, '', csvType('klingon')))).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  expect((await importCsv(Buffer.from('PK\x03\x04rest'))).body.message).toContain('as CSV')
  expect(statusAndCode(await importCsv(utf16('le').subarray(0, 41)))).toEqual([400, 'MALFORMED_BODY'])
})

test('lines may end with a carriage return alone, wherever the pieces of a body end', async () => {
  const own = await createImportFixture()
  const file = Buffer.from('identifier,title\ra,"x\r\ny"\rb,z\r')
  for (let at = 1; at < file.length; at++) {
    const stream = new ReadableStream({
      async start(controller) {
        controller.enqueue(new Uint8Array(file.subarray(0, at)))
        await Bun.sleep(1)
        controller.enqueue(new Uint8Array(file.subarray(at)))
        controller.close()
      },
    })
    expect((await importBody(own)(stream, `${CSV}&mode=upsert`)).body, `${at}`).toMatchObject({
      imported: 2,
      failed: 0,
    })
  }
  expect(await exportByIdentifier(own.as('user'), own.path)).toEqual({ a: { title: 'x\r\ny' }, b: { title: 'z' } })
})

test('columns may be parts of objects, and an update keeps the other parts', async () => {
  const schema = {
    type: 'object',
    properties: {
      zip: { type: 'string' },
      floor: { type: 'integer' },
      lift: { type: 'boolean' },
      geo: { type: 'object', properties: { lat: { type: 'number' } } },
      tags: { type: 'array' },
    },
  }
  const own = await createImportFixture([{ key: 'address', type: 'object', schema }])
  const user = own.as('user')
  const file =
    'identifier;address.city;address.zip;address.floor;address.lift;address.geo.lat;address.tags\n' +
    'a;Lyon;01000;+2;TRUE;45,75;"[""x""]"\nb;;;;;;\n'
  const { body } = await importBody(own)(file, `${CSV}&decimal=comma`)
  expect(body).toMatchObject({ imported: 2, failed: 0 })
  expect(body.understood.columns).toContain('address.geo.lat')
  const address = { city: 'Lyon', zip: '01000', floor: 2, lift: true, geo: { lat: 45.75 }, tags: ['x'] }
  expect(await exportByIdentifier(user, own.path)).toEqual({ a: { address }, b: {} })
  await user.put(`${own.path}/a`, { address: { ...address, note: 'n', geo: { lat: 1, lon: 4.85 } } })
  await importBody(own)('identifier,address.city,address.geo.lat\na,Nice,43.7\nb,,5\n', `${CSV}&mode=upsert`)
  expect(await exportByIdentifier(user, own.path)).toEqual({
    a: { address: { ...address, city: 'Nice', note: 'n', geo: { lat: 43.7, lon: 4.85 } } },
    b: { address: { geo: { lat: 5 } } },
  })
  for (const header of [
    'address,address.city',
    'address.geo,address.geo.lat',
    'title.x',
    'address.',
    'address..x',
    'address.__proto__',
    'data.a,data.a',
  ])
    expect(statusAndCode(await importBody(own)(`${header}\n1,2\n`, CSV)), header).toEqual([400, 'INVALID_INPUT'])
  expect((await importBody(own)('address.floor\nhigh\n', CSV)).body).toMatchObject({ imported: 0, failed: 1 })
})

describe('exports for spreadsheets', () => {
  test('an export has the separator, decimals, byte order mark and titles that are asked for, and can be imported', async () => {
    const own = await createImportFixture([{ key: 'net', type: 'decimal', title: 'Net, in EUR; or so' }])
    const user = own.as('user')
    await user.post(own.path, { identifier: 'a', title: 'x;y, z', price: -1.5, stock: 3, cost: '19.90', net: '-0.50' })
    const before = await exportByIdentifier(user, own.path)
    const select = '$select=title,price,stock,cost,net'
    const read = async (query: string) => {
      const { body } = await user.get(`${own.path}/export?${CSV}&${select}&${query}`)
      return body.split('\r\n').map((line: string) => line.replace(/^[0-9a-f-]{36}/, 'id'))
    }
    expect(await read('separator=;&decimal=comma&bom=true&titles=true')).toEqual([
      '_id;identifier;title;price;stock;cost;"Net, in EUR; or so"',
      'id;a;"x;y, z";-1,5;3;19,90;-0,50',
      '',
    ])
    const headers = { host: `${own.id}.test`, 'x-api-key': own.tokens.user! }
    for (const [query, start] of [
      ['bom=true', [0xef, 0xbb, 0xbf, 0x5f]],
      ['bom=false', [0x5f, 0x69, 0x64, 0x2c]],
    ] as const) {
      const response = await handleRequest(
        new Request(`${own.origin}/api${own.path}/export?${CSV}&${query}`, { headers }),
      )
      expect([...(await response.bytes()).subarray(0, 4)]).toEqual([...start])
    }
    expect((await read('separator=tab'))[1]).toBe('id\ta\tx;y, z\t-1.5\t3\t19.90\t-0.50')
    for (const query of [
      'separator=;&decimal=comma&bom=true&titles=true',
      'separator=tab&titles=true',
      'titles=true',
    ]) {
      const { body: file } = await user.get(`${own.path}/export?${CSV}&${query}`)
      const decimal = query.includes('decimal') ? '&decimal=comma' : ''
      const { body } = await importBody(own)(file, `${CSV}&mode=upsert${decimal}`)
      expect(body, query).toMatchObject({ imported: 1, failed: 0 })
      expect(body.understood.columns).toContain('net')
      expect(await exportByIdentifier(user, own.path)).toEqual(before)
    }
    for (const query of [
      'format=csv&decimal=comma',
      'format=csv&separator=x',
      'format=csv&bom=maybe',
      'separator=;',
      'titles=true',
    ])
      expect(statusAndCode(await user.get(`${own.path}/export?${query}`)), query).toEqual([400, 'INVALID_INPUT'])
  })

  test('a field that is called like an option is filtered by, and a dollar sign means the option', async () => {
    const own = await createImportFixture([
      { key: 'separator', type: 'string' },
      { key: 'decimal', type: 'string' },
    ])
    const user = own.as('user')
    await user.post(own.path, { identifier: 'a', separator: ';', price: 1.5 })
    await user.post(own.path, { identifier: 'b', separator: ',', price: 2.5 })
    const rows = async (query: string) =>
      (await user.get(`${own.path}/export?${CSV}&$select=price&${query}`)).body
        .split('\r\n')
        .slice(1, -1)
        .map((line: string) => line.slice(-5))
    expect(await rows('separator=;')).toEqual(['a,1.5'])
    expect(await rows('$separator=;&$decimal=comma&separator=,')).toEqual(['b;2,5'])
  })
})
