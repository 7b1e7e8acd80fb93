import { describe, expect, test } from 'bun:test'
import { config } from '../../../src/config'
import { expectToTakeTurns } from '../../costly-reads'
import { fullAccessRules, statusAndCode } from '../../test-tenant'
import { createThingsFixture, identifiers } from '../fixtures'
import { createImportFixture, exportByIdentifier, exportText, importBody, oddTexts, toNdjson } from './import-fixtures'

const CSV = 'format=csv'
const importLimits = config as { ATOLL_IMPORT_LIMIT: number }

/** Returns `[line, code]` of each rejected line. */
const errorCodes = ({ errors }: { errors: { line: number; code: string }[] }) =>
  errors.map(({ line, code }) => [line, code])

test('the lines of an import are read in turns with other costly work of the tenant', async () => {
  const own = await createImportFixture()
  const lines = Array.from({ length: 300 }, (_, n) => ({ identifier: `line-${n}`, title: `Line ${n}` }))
  const { body } = await expectToTakeTurns(own.id, () => importBody(own)(toNdjson(lines)))
  expect(body).toMatchObject({ imported: 300, failed: 0 })
})

describe('exported files', () => {
  test.each(['ndjson', 'csv'])(
    'an export as %s can be imported into the same and another tenant, with every type and character',
    async (format) => {
      const own = await createImportFixture()
      const user = own.as('user')
      const values = {
        ...{ price: -0.1, stock: -(2 ** 53 - 1), cost: '-0019.900', active: false, day: '2024-02-29' },
        ...{ moment: '2026-01-31T12:00:00.123456+02:00', clock: '08:00', picture: '/a.png', mail: '+a@b.de' },
        ...{
          link: 'https://a.de/?b=c&d=e',
          data: { a: [1, 'x', null, { b: '=1' }], '': 1 },
          scores: [],
          tags: oddTexts,
        },
      }
      await user.post(own.path, { identifier: 'root', ...values, code: 'c' })
      for (const [n, text] of oddTexts.entries())
        await user.post(own.path, {
          identifier: `${n}`,
          title: text,
          notes: text,
          parent: 'root',
          data: { [text]: text },
          price: 5e-324,
        })
      const wanted = await exportByIdentifier(user, own.path)
      expect(Object.keys(wanted).length).toBe(oddTexts.length + 1)
      const { body: file } = await user.get(`${own.path}/export?format=${format}`)

      const otherFixture = await createImportFixture()
      const otherUser = otherFixture.as('user')
      expect((await importBody(otherFixture)(file, `format=${format}`)).body).toMatchObject({
        imported: oddTexts.length + 1,
        failed: 0,
        errors: [],
      })
      expect(await exportByIdentifier(otherUser, otherFixture.path)).toEqual(wanted)
      const { body: secondFile } = await otherUser.get(`${otherFixture.path}/export?format=${format}`)
      expect((await importBody(otherFixture)(secondFile, `format=${format}&mode=upsert`)).body.imported).toBe(
        oddTexts.length + 1,
      )
      expect(await exportByIdentifier(otherUser, otherFixture.path)).toEqual(wanted)

      expect((await importBody(own)(file, `format=${format}`)).body.imported).toBe(0)
      expect((await user.delete(`${own.path}/all?confirm=things`)).status).toBe(200)
      expect((await importBody(own)(file, `format=${format}&atomic=true`)).body.failed).toBe(0)
      expect(await exportByIdentifier(user, own.path)).toEqual(wanted)
    },
  )
})

describe('imports', () => {
  test('an import accepts flat and wrapped lines, and reports each rejected line with its code', async () => {
    const own = await createImportFixture([{ key: 'need', type: 'string', default: 'd' }])
    const user = own.as('user')
    await user.post(own.path, { identifier: 'taken', code: 'c' })
    const file = [
      '{"identifier":"flat","title":"x"}',
      '{"identifier":"wrapped","metadata":{"title":"y"}}',
      '',
      '{"title":5}',
      'no json',
      '[]',
      'null',
      '{"identifier":"taken"}',
      '{"code":"c"}',
      '{"unknown":1}',
      '{"parent":"nobody"}',
      '{"identifier":"child","parent":"flat"}',
      '{"identifier":"a b"}',
      '{"title":"\\u0000"}',
      '{"title":"\\ud800"}',
      '{"__proto__":{"title":"x"}}',
      '{"identifier":"flat"}',
      '{"identifier":"last"}',
    ].join('\r\n')
    const { status, body } = await importBody(own)(file)
    expect([status, body.imported, body.failed]).toEqual([200, 4, 13])
    expect(errorCodes(body)).toEqual([
      [4, 'INVALID_INPUT'],
      [5, 'MALFORMED_LINE'],
      [6, 'INVALID_INPUT'],
      [7, 'INVALID_INPUT'],
      [8, 'IDENTIFIER_EXISTS'],
      [9, 'UNIQUE_VIOLATION'],
      [10, 'INVALID_INPUT'],
      [11, 'INVALID_INPUT'],
      [13, 'INVALID_INPUT'],
      [14, 'INVALID_INPUT'],
      [15, 'INVALID_INPUT'],
      [16, 'INVALID_INPUT'],
      [17, 'IDENTIFIER_EXISTS'],
    ])
    expect(body.errors[0].message).toBe('title must be text.')
    expect(await exportByIdentifier(user, own.path)).toEqual({
      taken: { code: 'c', need: 'd' },
      flat: { title: 'x', need: 'd' },
      wrapped: { title: 'y', need: 'd' },
      child: { parent: 'flat', need: 'd' },
      last: { need: 'd' },
    })
    expect(identifiers((await user.get(`${own.path}?title=x`)).body)).toEqual(['flat'])
  })

  test('an upsert import updates existing entities, creates new ones, and keeps values that a line does not name', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    const { body: first } = await user.post(own.path, { title: 'x', stock: 1 })
    const file = toNdjson([
      { identifier: first._id, stock: 2 },
      { identifier: 'new', title: 'a' },
      { identifier: 'new', stock: 3 },
      { title: 'unnamed' },
    ])
    expect((await importBody(own)(file, 'format=ndjson&mode=upsert')).body).toEqual({
      imported: 4,
      failed: 0,
      errors: [],
    })
    expect((await user.get(`${own.path}/${first._id}`)).body).toMatchObject({ title: 'x', stock: 2 })
    expect((await user.get(`${own.path}/new`)).body.metadata).toEqual({ title: 'a', stock: 3 })
    expect(await own.rows('entities')).toBe(3)
    await importBody(own)('identifier,title,stock\nnew,,9\n', `${CSV}&mode=upsert`)
    expect((await user.get(`${own.path}/new`)).body.metadata).toEqual({ title: 'a', stock: 9 })
  })

  test('an import needs the permissions that its lines use, and rejects others with FORBIDDEN', async () => {
    const creating = [{ operation: 'create', scope: 'tenant', roleBased: ['user'] }]
    const own = await createImportFixture(
      [{ key: 'rank', type: 'integer', writeRoles: ['admin'] }],
      [...creating, { operation: 'read', scope: 'tenant', roleBased: ['user'] }],
    )
    await own.as('admin').post(own.path, { identifier: 'hers' })
    const { body } = await importBody(own)(
      toNdjson([{ identifier: 'hers' }, { rank: 1 }, { title: 'x' }]),
      'format=ndjson&mode=upsert',
    )
    expect([body.imported, errorCodes(body)]).toEqual([
      1,
      [
        [1, 'FORBIDDEN'],
        [2, 'FORBIDDEN'],
      ],
    ])
    expect((await importBody(own, 'admin')(toNdjson([{ rank: 1, user: 'u1' }]))).body.imported).toBe(1)
    const closed = await createThingsFixture([{ key: 'title', type: 'string' }], fullAccessRules('tenant', 'admin'))
    expect(statusAndCode(await importBody(closed)(toNdjson([{}])))).toEqual([403, 'FORBIDDEN'])
    expect(statusAndCode(await own.anonymous.post(`${own.path}/import?format=ndjson`))).toEqual([
      401,
      'UNAUTHENTICATED',
    ])
    expect(statusAndCode(await own.as('user').post('/blueprints/none/entities/import?format=ndjson'))).toEqual([
      404,
      'BLUEPRINT_NOT_FOUND',
    ])
  })

  test('a dry run reports what an import would do, and stores nothing', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'taken', code: 'c' })
    const before = [await own.rows('entities'), await own.rows('entity_index')]
    const many = Array.from({ length: 450 }, (_, n) => ({
      identifier: `i${n}`,
      code: `k${n}`,
      parent: n ? `i${n - 1}` : undefined,
    }))
    const bad = [
      { identifier: 'taken' },
      { identifier: 'i7' },
      { code: 'k300' },
      { stock: 'x' },
      { identifier: 'y', code: 'c' },
    ]
    const { body } = await importBody(own)(toNdjson([...many, ...bad]), 'format=ndjson&dryRun=true')
    expect([body.imported, body.failed]).toEqual([450, 5])
    expect(errorCodes(body).map(([, code]) => code)).toEqual(
      ['IDENTIFIER_EXISTS', 'IDENTIFIER_EXISTS', 'UNIQUE_VIOLATION', 'INVALID_INPUT', 'UNIQUE_VIOLATION'].sort(
        (a, b) => 0 && a.localeCompare(b),
      ),
    )
    expect([await own.rows('entities'), await own.rows('entity_index')]).toEqual(before)
    expect((await importBody(own)(toNdjson(many))).body.imported).toBe(450)
  })

  test('an atomic import stores all of its lines, or reports all errors and stores nothing', async () => {
    const own = await createImportFixture()
    const user = own.as('user')
    await user.post(own.path, { identifier: 'old', title: 'before', tags: ['a'], code: 'c' })
    const before = await exportByIdentifier(user, own.path)
    const countRows = async () => [await own.rows('entities'), await own.rows('entity_index')]
    const count = await countRows()
    const many = Array.from({ length: 700 }, (_, n) => ({
      identifier: `i${n}`,
      title: 't',
      code: `k${n}`,
      ...(n && { parent: 'i0' }),
    }))
    const bad = [{ stock: 'x' }, { code: 'k5' }, { identifier: 'j' }]
    const refused = await importBody(own)(
      toNdjson([{ identifier: 'old', title: 'after', tags: [] }, ...many, ...bad]),
      'format=ndjson&atomic=true&mode=upsert',
    )
    expect([refused.status, refused.body.imported, refused.body.failed > 0]).toEqual([200, 0, true])
    expect(errorCodes(refused.body)).toContainEqual([702, 'INVALID_INPUT'])
    expect([await exportByIdentifier(user, own.path), await countRows()]).toEqual([before, count])
    expect(identifiers((await user.get(`${own.path}?tags=a`)).body)).toEqual(['old'])
    expect((await user.get(`${own.path}?title=after`)).body).toEqual([])

    const done = await importBody(own)(
      toNdjson([{ identifier: 'old', title: 'after' }, ...many]),
      'format=ndjson&atomic=true&mode=upsert',
    )
    expect(done.body).toEqual({ imported: 701, failed: 0, errors: [] })
    expect((await user.get(`${own.path}/old`)).body.title).toBe('after')
    for (const table of ['imports', 'import_undo'])
      expect(await own.tenant.db.query(`select * from ${table}`)).toEqual([])
  })

  test('an import reports at most 1,000 errors, and counts all of them', async () => {
    const own = await createImportFixture()
    const { body } = await importBody(own)('x\n'.repeat(1_500))
    expect([body.imported, body.failed, body.errors.length]).toEqual([0, 1_500, 1_000])
    const refused = toNdjson(Array.from({ length: 300 }, () => ({ stock: 'x' })))
    expect((await importBody(own)(refused)).body.failed).toBe(300)
  })

  test('an import rejects invalid options with 400 INVALID_INPUT, and other media types with 415', async () => {
    const own = await createImportFixture()
    for (const query of [
      'format=xml',
      'format=csv&mode=replace',
      'format=csv&dryRun=perhaps',
      'format=csv&atomic=2',
      'format=csv&x=1',
    ])
      expect(statusAndCode(await importBody(own)('title\nx\n', query)), query).toEqual([400, 'INVALID_INPUT'])
    for (const type of ['', 'application/json', 'text/plain', 'text/csvx'])
      expect(statusAndCode(await importBody(own)('{}', '', { 'content-type': type })), type).toEqual([
        415,
        'UNSUPPORTED_MEDIA_TYPE',
      ])
    const by = async (type: string, file: string) =>
      (await importBody(own)(file, '', { 'content-type': type })).body.imported
    expect(await by('application/x-ndjson', '{}\n{}')).toBe(2)
    expect(await by('text/csv; charset=utf-8', 'title\nx\n')).toBe(1)
    expect(await by('Text/CSV', 'title\nx\n')).toBe(1)
  })

  test('an import above the size limit gets 413 BODY_TOO_LARGE, with or without an announced length', async () => {
    const own = await createImportFixture()
    const before = importLimits.ATOLL_IMPORT_LIMIT
    importLimits.ATOLL_IMPORT_LIMIT = 10_000
    try {
      const file = toNdjson(Array.from({ length: 400 }, (_, n) => ({ title: `${n}`.padStart(20) })))
      expect(statusAndCode(await importBody(own)(file))).toEqual([413, 'BODY_TOO_LARGE'])
      const stream = () => new Blob([file]).stream()
      expect(statusAndCode(await importBody(own)(stream()))).toEqual([413, 'BODY_TOO_LARGE'])
      expect(statusAndCode(await importBody(own)(stream(), 'format=ndjson&atomic=true'))).toEqual([
        413,
        'BODY_TOO_LARGE',
      ])
      expect(await own.rows('entities')).toBeLessThan(400)
    } finally {
      importLimits.ATOLL_IMPORT_LIMIT = before
    }
  })

  test('an import skips lines that are too long or malformed, wherever its chunks end', async () => {
    const own = await createImportFixture()
    const bytes = (text: string) => Buffer.from(text)
    const pieces = [
      bytes('{"title":"ä'),
      bytes('😀').subarray(0, 2),
      bytes('😀').subarray(2),
      bytes('"}\n{"title":"'),
      Buffer.alloc(700_000, 'x'),
      Buffer.alloc(700_000, 'x'),
      bytes('"}\n{"title":"'),
      Buffer.from([0xff, 0xc3]),
      bytes('"}\n\n{"title":"end"}'),
    ]
    const stream = new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new Uint8Array(piece))
        controller.close()
      },
    })
    const { body } = await importBody(own)(stream)
    expect([body.imported, errorCodes(body)]).toEqual([
      2,
      [
        [2, 'LINE_TOO_LONG'],
        [3, 'MALFORMED_LINE'],
      ],
    ])
    const titles = Object.values(await exportByIdentifier(own.as('user'), own.path)).map(
      (one) => (one as { title: string }).title,
    )
    expect(titles).toEqual(['ä😀', 'end'])
  })

  test('an import of many malformed lines lets other work run in between', async () => {
    const own = await createImportFixture()
    const bad = 'x"\n'.repeat(50_000)
    for (const [query, file] of [
      ['format=ndjson', bad],
      ['format=ndjson', '\n'.repeat(1_000_000)],
      [CSV, `title\n${bad}`],
    ] as const) {
      let [turns, over] = [0, false]
      const count = () => {
        turns++
        if (!over) setImmediate(count)
      }
      count()
      const { body } = await importBody(own)(file, query)
      over = true
      expect(body.failed).toBe(query === CSV || file === bad ? 50_000 : 0)
      expect(turns).toBeGreaterThan(file.length / 10_000)
    }
  })

  test('an atomic import whose upload breaks off gets 400 MALFORMED_BODY and stores nothing', async () => {
    const own = await createImportFixture()
    let sent = 0
    const stream = new ReadableStream({
      pull(controller) {
        if (sent++ < 3)
          return controller.enqueue(Buffer.from(toNdjson(Array.from({ length: 300 }, () => ({ title: 'x' })))))
        controller.error(new Error('gone'))
      },
    })
    expect(statusAndCode(await importBody(own)(stream, 'format=ndjson&atomic=true'))).toEqual([400, 'MALFORMED_BODY'])
    expect(await own.rows('entities')).toBe(0)
    expect(await own.tenant.db.query('select * from imports')).toEqual([])
  })

  test('an import with an Idempotency-Key is run once, and replayed afterwards', async () => {
    const own = await createImportFixture()
    const idempotencyHeader = { 'idempotency-key': crypto.randomUUID() }
    const file = toNdjson(Array.from({ length: 500 }, () => ({ title: 'x' })))
    const [first, replayed] = [
      await importBody(own)(file, 'format=ndjson', idempotencyHeader),
      await importBody(own)(file, 'format=ndjson', idempotencyHeader),
    ]
    expect([first.body.imported, replayed.body, replayed.headers.get('idempotency-replayed')]).toEqual([
      500,
      first.body,
      'true',
    ])
    expect(statusAndCode(await importBody(own)(`${file}{}`, 'format=ndjson', idempotencyHeader))).toEqual([
      422,
      'IDEMPOTENCY_KEY_REUSED',
    ])
    expect(statusAndCode(await importBody(own)(file, 'format=ndjson&mode=upsert', idempotencyHeader))).toEqual([
      422,
      'IDEMPOTENCY_KEY_REUSED',
    ])
    expect(await own.rows('entities')).toBe(500)
  })
})

describe('CSV imports', () => {
  test('a CSV import parses cells strictly by the type of their field, and empty cells as no value', async () => {
    const own = await createImportFixture()
    const file = [
      '\ufeffidentifier,title,price,stock,cost,active,day,data,tags,scores',
      'a,5,1.5,7,2.50,true,2026-01-31,"{""x"":1}","[""t""]","[1,2]"',
      'b,,,,,,,,,',
      'c,"","","","","","","","",""',
      'd,true,-1e3,-7,-2,false,,,,',
    ].join('\r\n')
    expect((await importBody(own)(file, CSV)).body).toMatchObject({ imported: 4, failed: 0, errors: [] })
    expect(await exportByIdentifier(own.as('user'), own.path)).toEqual({
      a: {
        title: '5',
        price: 1.5,
        stock: 7,
        cost: '2.50',
        active: true,
        day: '2026-01-31',
        data: { x: 1 },
        tags: ['t'],
        scores: [1, 2],
      },
      b: {},
      c: {},
      d: { title: 'true', price: -1000, stock: -7, cost: '-2', active: false },
    })
    const wrong = ['price', 'x', '1,5', '0x10', '1 2', 'NaN', 'Infinity', '1e999', '١'].map((cell) =>
      cell.includes(',') ? `"${cell}"` : cell,
    )
    expect((await importBody(own)(wrong.join('\n'), CSV)).body).toMatchObject({ imported: 0, failed: 8 })
    for (const [column, cell] of [
      ['stock', '1.5'],
      ['stock', '9007199254740993'],
      ['active', 'T'],
      ['active', '1'],
      ['data', 'x'],
      ['data', '[]'],
      ['tags', 'x'],
      ['scores', '["1"]'],
      ['day', '2026-02-30'],
    ])
      expect(
        (await importBody(own)(`${column},title\n"${cell!.replaceAll('"', '""')}",x\n`, CSV)).body.failed,
        cell,
      ).toBe(1)
  })

  test('a CSV import parses quotes, line ends and commas by RFC 4180, and continues after malformed lines', async () => {
    const own = await createImportFixture()
    const file = [
      'identifier,title\n',
      'a,"x\r\ny ""z"", w"\r\n',
      '\r\n',
      'b,x"y\n',
      '"c"x,y\n',
      'd,=1\n',
      "e,'=1\n",
      'f\n',
      'g,h,i\n',
      '"h","last"',
    ].join('')
    const { body } = await importBody(own)(file, CSV)
    expect([body.imported, errorCodes(body)]).toEqual([
      4,
      [
        [5, 'MALFORMED_LINE'],
        [6, 'MALFORMED_LINE'],
        [9, 'MALFORMED_LINE'],
        [10, 'MALFORMED_LINE'],
      ],
    ])
    expect(await exportByIdentifier(own.as('user'), own.path)).toEqual({
      a: { title: 'x\r\ny "z", w' },
      d: { title: '=1' },
      e: { title: '=1' },
      h: { title: 'last' },
    })
    const open = await importBody(own)('identifier,title\ni,x\nj,"y\nk,z\n', CSV)
    expect([open.body.imported, errorCodes(open.body)]).toEqual([1, [[3, 'MALFORMED_LINE']]])
  })

  test('a CSV import with invalid columns is rejected as a whole with 400', async () => {
    const own = await createImportFixture([
      { key: 'secret', type: 'string', readRoles: ['admin'], writeRoles: ['admin'] },
    ])
    const bad = [
      'title,nothing',
      'title,title',
      'title,',
      'secret,title',
      'metadata',
      '__proto__',
      'toString',
      'title,"x',
    ]
    for (const header of bad) {
      const answer = await importBody(own)(`${header}\nx,y\n`, CSV)
      expect(answer.status, header).toBe(400)
      expect(answer.body.code, header).toBeOneOf(['INVALID_INPUT', 'MALFORMED_LINE'])
    }
    expect((await importBody(own)('title,nothing\n', `${CSV}&atomic=true`)).body.message).toContain('"nothing"')
    expect(statusAndCode(await importBody(own)('', CSV))).toEqual([400, 'MALFORMED_BODY'])
    expect(statusAndCode(await importBody(own)(Buffer.from([0xff, 0x0a]), CSV))).toEqual([400, 'MALFORMED_LINE'])
    expect((await importBody(own)('title\n', CSV)).body).toMatchObject({ imported: 0, failed: 0, errors: [] })
    expect((await importBody(own)('')).body).toEqual({ imported: 0, failed: 0, errors: [] })
    expect(await own.rows('entities')).toBe(0)
  })
})

test('an interrupted import is undone before its blueprint is used again', async () => {
  const own = await createImportFixture()
  const user = own.as('user')
  await user.post(own.path, { identifier: 'old', title: 'before' })
  await user.post(own.path, { identifier: 'half', title: 'x', tags: ['t'] })
  const storedRows = await own.tenant.db.query('select seq, _id from entities order by seq')
  const [seqs, ids] = [storedRows.map(([seq]) => seq), storedRows.map(([, id]) => id)]
  const [stored] = (await own.tenant.db.query(
    'select seq, _id, identifier, "user", workspace, shown, keys, version, created, updated from entities where identifier = ?',
    ['old'],
  )) as [unknown[]]
  const names = ['seq', '_id', 'identifier', 'user', 'workspace', 'shown', 'keys', 'version', 'created', 'updated']
  const before = JSON.stringify(Object.fromEntries(names.map((name, n) => [name, stored[n]])))
  await user.put(`${own.path}/old`, { title: 'after' })
  await own.tenant.write(async (tx) => {
    await tx.query('insert into imports (_id, blueprint, busy) values (?, ?, ?)', ['elsewhere 1', 'things', 0])
    await tx.query('insert into import_undo (import, entity, before) values (?, ?, ?)', [
      'elsewhere 1',
      seqs[0],
      ids[0] + before,
    ])
    await tx.query('insert into import_undo (import, entity, before) values (?, ?, ?)', [
      'elsewhere 1',
      seqs[1],
      ids[1],
    ])
  })
  // This reloads the blueprint, like a process that has just started.
  expect((await own.as('admin').put('/blueprints/things', { name: 'Other' })).status).toBe(200)
  expect(await exportByIdentifier(user, own.path)).toEqual({ old: { title: 'before' } })
  expect((await user.get(`${own.path}?title=before`)).body.length).toBe(1)
  expect((await user.get(`${own.path}?title=after`)).body).toEqual([])
  expect(await own.rows('entity_index')).toBe(1)
  for (const table of ['imports', 'import_undo'])
    expect(await own.tenant.db.query(`select * from ${table}`)).toEqual([])
  expect(await exportText(user, own.path, 'title=before')).toContain('"old"')
})
