import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { getModel } from '../../../src/blueprints/blueprints'
import { compoundReader } from '../../../src/entities/indexing/index-rows'
import { fragment } from '../../../src/entities/store/sql-fragments'
import { getTenant } from '../../../src/tenancy/tenants'
import { type SeededRandom, seededRandom } from '../../blueprints/seeded-random'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import type { ApiClient } from '../../test-tenant'
import { waitUntil } from '../../wait-until'
import { createThingsFixture, type Entity, identifiers } from '../fixtures'
import { type Filter, parsers, referenceModel, toQueryString, withoutRepeatedLists } from '../query/reference-model'
import { withThresholds } from '../query/small-thresholds'
import { alterByHand } from './steps'

setDefaultTimeout(PROPERTY_TIMEOUT_MS * 4)

type Field = {
  key: string
  type: string
  multi?: boolean
  indexed?: boolean
  unique?: boolean
  required?: boolean
  default?: unknown
  enum?: unknown[]
  renamedFrom?: string
}
type Doc = Record<string, unknown>
type Change = { fields: Field[]; become(doc: Doc): Doc | undefined }

const TEXTS = ['a', 'b', '10', '9', '2.50', '2.5', '2026-01-31', 'a b', 'true']
const NUMBERS = [1, 2, 10, 2.5, -1]
const values: Record<string, unknown[]> = {
  string: TEXTS,
  text: TEXTS,
  decimal: ['10', '9', '2.50', '2.5', '-1'],
  date: ['2026-01-31', '2025-12-31'],
  number: NUMBERS,
  integer: [1, 2, 10, -1],
  boolean: [true, false],
}
const TYPES = Object.keys(values)

/** Returns whether a value is of a type, as far as the values above go. */
const isOfType: Record<string, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  text: (value) => typeof value === 'string',
  decimal: (value) => typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value),
  date: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value),
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === 'boolean',
}

const FIELDS: Field[] = [
  { key: 'title', type: 'string' },
  { key: 'price', type: 'number' },
  { key: 'stock', type: 'integer', required: true },
  { key: 'tags', type: 'string', multi: true },
  { key: 'plain', type: 'text', indexed: false },
]

const comparableOf = ({ type }: Field, value: unknown) => (parsers[type] ?? ((text: string) => text))(`${value}`)

/** Returns a document that fits these fields, or undefined when it cannot be converted. */
function convert(fields: Field[], doc: Doc): Doc | undefined {
  for (const { key, type, multi, required, enum: choices } of fields) {
    const value = doc[key]
    if (value === undefined && required) return
    if (value === undefined) continue
    if (multi !== undefined && multi !== Array.isArray(value)) return
    for (const one of [value].flat()) if (!isOfType[type]!(one) || (choices && !choices.includes(one))) return
  }
  return doc
}

const hasDuplicates = (fields: Field[], docs: Doc[]) =>
  fields.some((field) => {
    const found = docs.filter((doc) => doc[field.key] !== undefined).map((doc) => comparableOf(field, doc[field.key]))
    return field.unique && new Set(found).size < found.length
  })

/** Returns a random change, with the function that converts each document. */
function anyChange({ pick, chance }: SeededRandom, fields: Field[], fresh: string): Change {
  const field = pick(fields)
  const but = (more: Partial<Field>) => fields.map((one) => (one === field ? { ...one, ...more } : one))
  const same = (changed: Field[]): Change => ({ fields: changed, become: (doc) => convert(changed, doc) })
  const without = ({ [field.key]: _, ...doc }: Doc) => doc
  const filled = (key: string, value: unknown) => (doc: Doc) => ({ [key]: value, ...doc })
  const changes: (() => Change)[] = [
    () => ({ fields: fields.filter((one) => one !== field), become: without }),
    () => ({
      fields: but({ key: fresh, renamedFrom: field.key }),
      become: (doc) => ({ ...without(doc), ...(doc[field.key] !== undefined && { [fresh]: doc[field.key] }) }),
    }),
    () => {
      const otherField = pick(fields)
      const changed = fields.map((one) =>
        one === field
          ? { ...otherField, renamedFrom: undefined }
          : one === otherField
            ? { ...field, renamedFrom: undefined }
            : one,
      )
      const swapped = changed.map((one) =>
        one.key === field.key
          ? { ...field, key: otherField.key, renamedFrom: field.key }
          : one.key === otherField.key
            ? { ...otherField, key: field.key, renamedFrom: otherField.key }
            : one,
      )
      const become = (doc: Doc) => {
        const { [field.key]: one, [otherField.key]: another, ...rest } = doc
        return {
          ...rest,
          ...(one !== undefined && { [otherField.key]: one }),
          ...(another !== undefined && { [field.key]: another }),
        }
      }
      return otherField === field ? same(fields) : { fields: swapped, become }
    },
    () => same(but({ type: pick(TYPES), enum: undefined, default: undefined, required: false })),
    () => same(but({ unique: !field.unique && !field.multi && field.indexed !== false })),
    () => same(field.unique ? fields : but({ indexed: field.indexed === false })),
    () =>
      same(
        but({
          enum: field.enum ? undefined : values[field.type]!.slice(0, 1 + values[field.type]!.length / 2),
          default: undefined,
          required: false,
        }),
      ),
    () => {
      if (field.unique) return same(fields)
      const multi = !field.multi
      const changed = but({ multi, default: undefined, required: false })
      const become = (doc: Doc) => {
        const { [field.key]: value, ...rest } = doc
        if (value === undefined) return doc
        if (multi) return { ...rest, [field.key]: [value] }
        const list = value as unknown[]
        return list.length > 1 ? undefined : { ...rest, ...(list.length && { [field.key]: list[0] }) }
      }
      return { fields: changed, become }
    },
    () => {
      if (field.multi || field.required) return same(fields)
      const value = (field.enum ?? values[field.type]!)[0]
      const changed = but({ required: true, default: chance(0.8) ? value : undefined })
      return { fields: changed, become: (doc) => convert(changed, withDefault(changed, field.key, doc)) }
    },
    () => {
      const type = pick(TYPES)
      const [required, value] = [chance(0.6), pick(values[type]!)]
      const added: Field = { key: fresh, type, required, ...(required && { default: value }) }
      return { fields: [...fields, added], become: required ? filled(fresh, value) : (doc) => doc }
    },
  ]
  return pick(changes)()
}

function withDefault(fields: Field[], key: string, doc: Doc): Doc {
  const field = fields.find((one) => one.key === key)!
  return doc[key] === undefined && field.default !== undefined ? { ...doc, [key]: field.default } : doc
}

function anyDoc({ pick, chance, some }: SeededRandom, fields: Field[]): Doc {
  const doc: Doc = {}
  for (const { key, type, multi, required, enum: choices, unique } of fields) {
    if (!required && chance(unique ? 0.7 : 0.3)) continue
    const all = choices ?? values[type]!
    doc[key] = multi ? some(all, 2) : pick(all)
  }
  return doc
}

/** Requests lists, counts, charts and searches, and compares the answers with a scan of all entities. */
async function compareWithModel(
  source: SeededRandom,
  admin: ApiClient,
  fields: Field[],
  entities: Entity[],
  label: string,
) {
  const { pick, chance } = source
  const { holds, sort } = referenceModel(Object.fromEntries(fields.map(({ key, type }) => [key, type])))
  const path = '/blueprints/things'
  const ask = async (query: string) => {
    const { status, body, headers } = await admin.get(`${path}/${query}`)
    expect([status, body.details ?? body.message], `${label}: ${query}`).toEqual([200, undefined])
    return { body, headers }
  }
  const { body: all } = await ask('entities?$sort=created&$limit=1000')
  expect(
    all.map(({ identifier, metadata }: Entity) => [identifier, metadata]),
    label,
  ).toEqual(entities.map(({ identifier, metadata }) => [identifier, metadata]))
  const queryable = fields.filter(({ multi, indexed }) => !multi || indexed !== false)
  for (let n = 0; n < 4 && queryable.length; n++) {
    const drawn: Filter[] = Array.from({ length: pick([0, 1, 1, 2]) }, () => {
      const { key, type } = pick(queryable)
      const operator = pick(['', '[$ne]', '[$lt]', '[$gte]', '[$in]', '[$exists]'])
      return {
        name: key,
        operator,
        text: operator === '[$exists]' ? pick(['true', 'false']) : `${pick(values[type]!)}`,
      }
    })
    const filters = withoutRepeatedLists(drawn)
    const sorted = pick(queryable)
    const by = sorted.multi || chance(0.4) ? [] : [{ name: sorted.key, descending: chance(0.5) }]
    const matching = entities.filter((entity) => filters.every((filter) => holds(filter, entity)))
    const query = toQueryString(filters, by, { $count: true, $limit: 1000 })
    const expected = identifiers(sort(matching, by.length ? by : [{ name: 'created', descending: true }]))
    const { body, headers } = await ask(`entities?${query}`)
    expect([identifiers(body), headers.get('x-total-count')], `${label}: ${query}`).toEqual([
      expected,
      `${expected.length}`,
    ])
    expect((await ask(`charts/count?${toQueryString(filters, [], {})}`)).body, `${label}: ${query}`).toEqual({
      count: expected.length,
    })
  }
  const charted = queryable.length ? pick(queryable) : undefined
  if (charted) {
    const groups = new Map<unknown, number>()
    for (const { metadata } of entities) {
      const found = metadata[charted.key] === undefined ? [] : [metadata[charted.key]].flat()
      for (const group of found.length ? new Set(found.map((one) => comparableOf(charted, one))) : ['Unknown'])
        groups.set(group, (groups.get(group) ?? 0) + 1)
    }
    const { body } = await ask(`charts/pie?x=${charted.key}&$limit=1000`)
    const counts = body.series[0].data.map(({ value }: { value: number }) => value)
    if (charted.type !== 'date' && !charted.multi)
      expect(counts.sort(), `${label}: pie of ${charted.key}`).toEqual([...groups.values()].sort())
  }
  const word = pick(['a', 'b', '10', '2026'])
  const texts = fields.filter(({ type }) => type === 'string' || type === 'text').map(({ key }) => key)
  const words = (doc: Doc) =>
    texts.flatMap((key) =>
      [doc[key] ?? []]
        .flat()
        .join(' ')
        .split(/[^a-z0-9]+/),
    )
  const having = entities.filter(({ metadata }) => words(metadata).some((one) => one.startsWith(word)))
  const { body: found } = await ask(`entities?$q=${word}&$sort=created&$limit=1000`)
  expect(identifiers(found), `${label}: $q=${word}`).toEqual(identifiers(having))
}

const SELECT_INDEXES = `select f.key, i.state from field_indexes i join fields f on f.number = i.number
  where i.blueprint = 'things'`

async function alterAtRandom(seed: number) {
  const source = seededRandom(seed)
  const { chance, below, pick } = source
  const { id, as, path } = await createThingsFixture(FIELDS)
  const [admin, tenant] = [as('admin'), await getTenant(id)]
  let fields = FIELDS
  let entities: Entity[] = []

  const create = async () => {
    const { status, body } = await admin.post(path, anyDoc(source, fields))
    expect(status).toBeOneOf([201, 400, 409])
    if (status === 201) entities.push(body)
  }
  const write = async () => {
    const at = below(entities.length)
    const one = entities[at]
    if (!one || chance(0.4)) return create()
    if (chance(0.3)) {
      expect((await admin.delete(`${path}/${one.identifier}`)).status).toBe(200)
      entities.splice(at, 1)
      return
    }
    const cleared = Object.fromEntries(
      Object.keys(one.metadata).map((key) => [key, chance(0.3) ? null : one.metadata[key]]),
    )
    const { status, body } = await admin.put(`${path}/${one.identifier}`, { ...cleared, ...anyDoc(source, fields) })
    expect(status).toBeOneOf([200, 400, 409])
    if (status === 200) entities[at] = body
  }

  for (let n = 0; n < 12; n++) await create()
  if (chance(0.7)) await admin.get(`${path}?$q=a`)
  for (let n = 0; n < 5; n++) {
    const change = anyChange(source, fields, `f${n}`)
    const label = `seed ${seed}, change ${n}: ${JSON.stringify(fields)} to ${JSON.stringify(change.fields)}`
    const become = () => {
      const docs = entities.map(({ metadata }) => change.become(metadata))
      return docs.every((doc) => doc !== undefined) && !hasDuplicates(change.fields, docs as Doc[])
        ? (docs as Doc[])
        : undefined
    }
    const applyChange = (docs: Doc[]) => {
      fields = change.fields.map(({ renamedFrom: _, ...field }) => field)
      entities = entities.map((entity, at) => ({ ...entity, metadata: docs[at]! }))
    }
    const convertible = become()
    await alterByHand(id, async ({ begin, step, isPreparing }) => {
      const before = (await getModel(tenant, 'things')).form
      const { answer } = await begin(admin, { fields: change.fields })
      const isInForce = () =>
        tenant.db.query("select form from blueprints where key = 'things'").then(([row]) => row![0] !== before)
      if (!(await isPreparing())) {
        const { status, body } = await answer
        expect([status, convertible ? undefined : body.code], `${label} ${JSON.stringify(body)}`).toEqual(
          convertible ? [200, undefined] : [409, expect.any(String)],
        )
        if (convertible) applyChange(convertible)
        return compareWithModel(source, admin, fields, entities, label)
      }
      expect(convertible, label).toBeDefined()
      await compareWithModel(source, admin, fields, entities, `${label}, begun`)
      while (await isPreparing()) {
        for (let count = below(3); count; count--) await write()
        const docs = become()
        await step(pick([1, 3, 5, 100]))
        if (await isInForce()) {
          expect(docs, label).toBeDefined()
          applyChange(docs!)
        }
        await compareWithModel(source, admin, fields, entities, `${label}, on the way`)
      }
      expect((await answer).status, label).toBe((await isInForce()) ? 200 : 409)
      if (chance(0.3)) return // The next change starts before the cleanup of this one is done.
      while (await step(pick([1, 4, 100]))) {
        if (chance(0.6)) await write()
        await compareWithModel(source, admin, fields, entities, `${label}, cleaning`)
      }
      const indexed = await waitUntil(
        () => tenant.db.query(SELECT_INDEXES),
        (indexes) => indexes.every(([, state]) => state === 'ready'),
      )
      const labels = entities.flatMap(({ metadata }) =>
        fields
          .filter(({ key }) => indexed.some(([name]) => name === key) && metadata[key] !== undefined)
          .flatMap(({ key }) => [
            ...new Set(
              [metadata[key]].flat().map((one) => `${comparableOf(fields.find((field) => field.key === key)!, one)}`),
            ),
          ]),
      )
      const ofFields = await tenant.db.query('select count(*) from entity_index where field > 0')
      expect(Number(ofFields[0]![0]), label).toBe(labels.length)
      const { code, ...model } = await waitUntil(
        () => getModel(tenant, 'things'),
        ({ compoundIndexes }) => compoundIndexes.every(({ state }) => state === 'ready'),
      )
      for (const index of model.compoundIndexes) {
        const expected = await compoundReader({ code, ...model }, index)!(tenant.db, fragment('e.blueprint = ?', code))
        const stored = await tenant.db.query('select path, value, entity from entity_index where field = ?', [
          index.number,
        ])
        const toText = (row: unknown[]) => row.join(' ')
        expect(stored.map(toText).sort(), label).toEqual(
          expected.map(({ path, value, entity }) => toText([path, value, entity])).sort(),
        )
      }
    })
  }
}

test('lists, counts, charts and searches agree with a reference model during random alterations and writes', () =>
  checkProperty(
    8,
    // With small thresholds, indexes of fields are built meanwhile.
    fc.asyncProperty(fc.integer({ min: 1, max: 1e9 }), (seed) =>
      withThresholds(seed % 2 ? 'small' : 'usual', () => alterAtRandom(seed)),
    ),
  ))
