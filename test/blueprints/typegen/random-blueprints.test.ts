import { expect, setDefaultTimeout, test } from 'bun:test'
import fc from 'fast-check'
import { anyNumber, anyText, checkProperty, PROPERTY_TIMEOUT_MS } from '../../property-runner'
import { createTestTenant } from '../../test-tenant'
import { anyOf, mostly, valueArbitraries } from '../value-arbitraries'
import { COMPILES_CLEANLY, compileTypeScript } from './typescript-compiler'

setDefaultTimeout(Math.max(PROPERTY_TIMEOUT_MS, 120_000))

const anyScalar = fc.oneof(anyText(8), anyNumber(), fc.integer(), fc.boolean(), fc.constant(null))
const anyName = mostly(anyOf('a', 'b', 'c', 'a b', '*/', '"', 'constructor', '$ref!'), anyText(6)).filter(
  (name) => !['', '__proto__', '$id', '$schema', '$anchor', '$ref'].includes(name),
)
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small' },
    anyScalar,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(anyName, tie('json'), { maxKeys: 3, noNullPrototype: true }),
  ),
}))
const anyType = anyOf('object', 'array', 'string', 'number', 'integer', 'boolean', 'null')

/** Schemas of all keywords that affect the type, in any combination. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const schemas = fc.array(tie('schema'), { minLength: 1, maxLength: 2 })
  const keywords = {
    properties: fc.dictionary(anyName, tie('schema'), { maxKeys: 3, noNullPrototype: true }),
    required: fc.uniqueArray(anyName, { maxLength: 2 }),
    additionalProperties: tie('schema'),
    patternProperties: fc.constant({ '^a': {} }),
    items: fc.oneof(tie('schema'), schemas),
    anyOf: schemas,
    oneOf: schemas,
    allOf: schemas,
    enum: fc.uniqueArray(json, { minLength: 1, maxLength: 3, selector: (one) => JSON.stringify(one) }),
    const: json,
    description: anyText(8),
  }
  const typed = fc.oneof(anyType, fc.uniqueArray(anyType, { minLength: 1, maxLength: 2 }))
  const keywordSchema = fc
    .tuple(fc.option(typed, { nil: undefined }), fc.subarray(Object.keys(keywords), { maxLength: 3 }))
    .chain(([type, chosen]) => {
      const picked = Object.fromEntries(
        chosen.map((keyword) => [keyword, keywords[keyword as 'const'] as fc.Arbitrary<unknown>]),
      )
      return fc.record({ ...(type && { type: fc.constant(type) }), ...picked }, { noNullPrototype: true })
    })
  return { schema: fc.oneof({ depthSize: 'small' }, fc.boolean(), keywordSchema, keywordSchema) }
})
const anyObjectSchema = schema.map((schema) => (typeof schema === 'boolean' ? {} : (schema as object)))

const fieldFlags = { required: fc.boolean(), multi: fc.boolean(), indexed: fc.boolean() }
const fieldTexts = { title: anyText(10).map((text) => text.replace(/\p{Cc}/gu, '')), description: anyText() }
const anyPlainField = anyOf(...Object.keys(valueArbitraries)).chain((type) => {
  const { values } = valueArbitraries[type]!
  const choices = fc.array(values, { minLength: 1, maxLength: 4 })
  return fc
    .record({ ...fieldTexts, ...fieldFlags, type: fc.constant(type), enum: fc.option(choices, { nil: undefined }) })
    .map((field) => ({ field, values: field.enum ? anyOf(...field.enum) : values }))
})
const anyObjectField = fc
  .record({
    ...fieldTexts,
    ...fieldFlags,
    type: fc.constant('object'),
    schema: fc.option(anyObjectSchema, { nil: undefined }),
  })
  .map((field) => ({ field, values: fc.dictionary(anyName, json, { maxKeys: 3, noNullPrototype: true }) }))

/** A blueprint, and bodies that may be valid for it. */
const anyBlueprint = fc
  .array(fc.oneof(anyPlainField, anyObjectField), { minLength: 1, maxLength: 4 })
  .chain((parts) => {
    const value = ({ field, values }: (typeof parts)[number]) =>
      field.multi ? fc.array(values, { maxLength: 2 }) : values
    return fc.record({
      name: anyText(10).map((text) => text.replace(/\p{Cc}/gu, '') || 'x'),
      description: anyText(),
      fields: fc.constant(parts.map(({ field }, n) => ({ key: `p${n}`, ...field }))),
      bodies: fc.array(
        fc.record(Object.fromEntries(parts.map((part, n) => [`p${n}`, value(part)])), {
          requiredKeys: [],
          noNullPrototype: true,
        }),
        { maxLength: 4 },
      ),
    })
  })

test('the generated client of random blueprints compiles, and accepted bodies and stored entities have its types', async () => {
  let acceptedCount = 0
  await checkProperty(
    2,
    fc.asyncProperty(fc.array(anyBlueprint, { minLength: 30, maxLength: 30 }), async (blueprints) => {
      const { as } = await createTestTenant()
      const admin = as('admin')
      const uses: string[] = []
      for (const [n, { bodies, ...blueprint }] of blueprints.entries()) {
        const { status, body } = await admin.post('/blueprints', { key: `b${n}`, ...blueprint })
        // Some random blueprints are invalid.
        if (status !== 201) expect([status, body.code]).toEqual([400, 'INVALID_INPUT'])
        if (status !== 201) continue
        for (const sent of bodies) {
          const made = await admin.post(`/blueprints/b${n}/entities`, sent)
          if (made.status !== 201) continue
          acceptedCount++
          uses.push(`export const made${uses.length}: import('./atoll').NewB${n} = ${JSON.stringify(sent)}`)
          uses.push(`export const read${uses.length}: import('./atoll').B${n} = ${JSON.stringify(made.body)}`)
        }
      }
      const client = (await admin.get('/blueprints/client.ts')).body
      expect(await compileTypeScript({ 'atoll.ts': client, 'use.ts': uses.join('\n') })).toMatchObject(COMPILES_CLEANLY)
    }),
  )
  expect(acceptedCount).toBeGreaterThan(50)
})
