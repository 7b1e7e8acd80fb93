import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Model } from '../../../src/blueprints/model'
import {
  createPopulatedSerializer,
  type Replacement,
  readValues,
} from '../../../src/entities/store/populated-serializer'
import { packEntity } from '../../../src/entities/store/serializer'
import { checkProperty } from '../../property-runner'

const HEADER = { _id: 'an id', identifier: 'x', created: 0, updated: 1, user: 'u', workspace: 'w' }
const SYSTEM = { ...HEADER, created: '1970-01-01T00:00:00.000Z', updated: '1970-01-01T00:00:00.001Z' }
const model = { fields: [] as unknown[] } as Model

const keys = fc.constantFrom('a', 'b', 'user', 'q"uoted')
const texts = fc.oneof(fc.constantFrom('a', 'b'), fc.string(), fc.constantFrom('","a":"a', '"a":["a"]', '\\"a\\":'))
const references = fc.oneof(texts, fc.array(texts, { maxLength: 3 }))
const values = fc.oneof(references, fc.dictionary(keys, references, { maxKeys: 3 }), fc.constant(null), fc.integer())

test('replacing values in the stored JSON equals replacing them in the parsed document, with any keys and texts', () =>
  checkProperty(
    2_000,
    fc.property(
      fc.dictionary(keys, values, { maxKeys: 5 }),
      fc.uniqueArray(fc.tuple(keys, fc.jsonValue({ maxDepth: 1 })), { selector: ([key]) => key, maxLength: 3 }),
      fc.uniqueArray(fc.tuple(keys, fc.jsonValue({ maxDepth: 1 })), { selector: ([key]) => key, maxLength: 2 }),
      fc.boolean(),
      (doc, replaced, more, flat) => {
        const isReference = (value: unknown) => typeof value === 'string' || Array.isArray(value)
        const replacements = replaced
          .filter(([key]) => Object.hasOwn(doc, key) && isReference(doc[key]))
          .map(([key, by]): Replacement => ({ key, value: doc[key], json: JSON.stringify(by), isOfSystem: false }))
        const owner: Replacement = { key: 'user', value: 'u', json: '{"name":"U"}', isOfSystem: true }
        const json = createPopulatedSerializer(model, { privileged: true } as never, { flat })(
          packEntity(HEADER, JSON.stringify(doc)),
          [...replacements, owner],
          more.map(([key, value]) => [key, JSON.stringify(value)]),
        )
        const metadata = { ...doc, ...Object.fromEntries(replacements.map(({ key, json }) => [key, JSON.parse(json)])) }
        const entity = { ...SYSTEM, user: { name: 'U' }, metadata, ...(flat && metadata), ...Object.fromEntries(more) }
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(entity)))
      },
    ),
  ))

test('values read from the stored JSON equal those of the parsed document, with any keys and texts', () =>
  checkProperty(
    2_000,
    fc.property(
      fc.dictionary(keys, fc.oneof(texts, values), { maxKeys: 5 }),
      fc.uniqueArray(keys, { maxLength: 3 }),
      (doc, asked) => {
        const properties = asked.map((key) => ({ key, isOfSystem: false }))
        const read = readValues(packEntity(HEADER, JSON.stringify(doc)), properties)
        expect(read).toEqual(asked.map((key) => (Object.hasOwn(doc, key) ? doc[key] : undefined)))
      },
    ),
  ))
