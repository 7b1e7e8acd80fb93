// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { isUtf8 } from 'node:buffer'
import fc from 'fast-check'
import { NestedTooDeep, parseInSlices, type RunSlice, stringifyInSlices } from '../../src/core/sliced-json'
import { checkProperty, PROPERTY_TIMEOUT_MS } from '../property-runner'
import { errorOf } from '../rejections'

const runAtOnce: RunSlice = async (slice) => slice()

/** Returns the value, or the name of the error. */
const outcomeOf = async (parse: () => unknown) => {
  try {
    return { value: await parse() }
  } catch (error) {
    return (error as Error).name
  }
}

const parseByNative = (bytes: Uint8Array) =>
  isUtf8(bytes) ? outcomeOf(() => JSON.parse(new TextDecoder().decode(bytes))) : 'InvalidUtf8'
const parseSliced = (bytes: Uint8Array, sliceLength: number) =>
  outcomeOf(() => parseInSlices(bytes, 100, runAtOnce, sliceLength))

const keys = fc.oneof(fc.constantFrom('a', '', '5', '12', '__proto__', 'toString', '"', 'é😀'), fc.string())
const values = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 6 },
    fc.constantFrom(null, true, false, 0, -1.5e-7, 1e300, '', 'a\\"b\n\u0000', '😀é漢', '\\u0041', 'x'.repeat(90)),
    fc.string({ unit: 'binary', maxLength: 40 }),
    fc.array(tie('value'), { maxLength: 8 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 8 }),
  ),
})).value
const texts = fc
  .tuple(values, fc.constantFrom(undefined, 1, '\t\r\n '))
  .map(([value, space]) => JSON.stringify(value, null, space))
const sliceLengths = fc.integer({ min: 1, max: 60 })

describe('parseInSlices', () => {
  test(
    'returns what JSON.parse returns, wherever the text is cut',
    () =>
      checkProperty(
        1_000,
        fc.asyncProperty(texts, sliceLengths, async (text, sliceLength) => {
          const bytes = Buffer.from(text)
          expect(await parseSliced(bytes, sliceLength)).toEqual(await parseByNative(bytes))
        }),
      ),
    PROPERTY_TIMEOUT_MS,
  )

  test(
    'refuses what JSON.parse refuses, and nothing else, when bytes of the text are changed',
    () =>
      checkProperty(
        1_000,
        fc.asyncProperty(
          texts,
          sliceLengths,
          fc.array(fc.tuple(fc.nat(), fc.nat({ max: 2 }), fc.constantFrom(...Buffer.from('[]{},:"\\ u0\u00ff'))), {
            minLength: 1,
            maxLength: 3,
          }),
          async (text, sliceLength, changes) => {
            const changed = [...Buffer.from(text)]
            for (const [at, removed, byte] of changes) changed.splice(at % changed.length, removed, byte)
            const bytes = Buffer.from(changed)
            const outcome = await parseSliced(bytes, sliceLength)
            const expected = await parseByNative(bytes)
            // A cut outside of a text may be within a character.
            if (typeof expected === 'string') expect(['InvalidUtf8', 'SyntaxError']).toContain(outcome as string)
            else expect(outcome).toEqual(expected)
          },
        ),
      ),
    PROPERTY_TIMEOUT_MS,
  )

  test.each([
    '',
    ' ',
    '1 2',
    '[1,2],[3]',
    '[1,2]]',
    '[1,,2]',
    '[1,2,]',
    '[,1]',
    '{"a":1,}',
    '{"a",1}',
    '{"a":1 2}',
    '["a" "b"]',
    '[1,2',
    '["abc',
    '"abc\\',
    '"\\u00zz"',
    '[1}',
    'nul',
  ])('refuses %p however it is cut', async (text) => {
    for (let sliceLength = 1; sliceLength <= text.length + 1; sliceLength++)
      expect(await parseSliced(Buffer.from(text), sliceLength)).toBe('SyntaxError')
  })

  test.each([
    '\ufeff[1]',
    '"\ufeff\ufeffabc"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '{"a":1,"a":[2,{"a":"long text","a":3}],"a":"another text"}',
    '{"__proto__":{"a":[1,2,3,{"__proto__":"a long text"}],"b":2},"c":3}',
    '[[[[],[]],[{}]],{"2":[1],"1":{"x":"yz"}}]',
  ])('returns the value of %p however it is cut', async (text) => {
    const bytes = Buffer.from(text)
    for (let sliceLength = 1; sliceLength <= bytes.length + 1; sliceLength++)
      expect(await parseSliced(bytes, sliceLength)).toEqual(await parseByNative(bytes))
    expect({}).not.toHaveProperty('a')
  })

  test('refuses bytes that are no UTF-8, wherever it is cut', async () => {
    const bytes = Buffer.concat([Buffer.from('"a'), Buffer.alloc(40, 0x80), Buffer.from([0xf0, 0x9f, 0x22])])
    for (let sliceLength = 1; sliceLength < 12; sliceLength++)
      expect(await parseSliced(bytes, sliceLength)).toBe('InvalidUtf8')
  })

  test('refuses a text that is nested deeper than allowed without parsing it', async () => {
    const nested = (depth: number) => Buffer.from(`${'[1,'.repeat(depth)}1${']'.repeat(depth)}`)
    expect(await parseInSlices(nested(10), 10, runAtOnce, 4)).toBeArray()
    expect(await errorOf(parseInSlices(nested(11), 10, runAtOnce, 4))).toBeInstanceOf(NestedTooDeep)
  })

  test('runs as many slices as the length of the text needs, also within one text', async () => {
    for (const value of [
      Array.from({ length: 3_000 }, (_, n) => n),
      'x'.repeat(10_000),
      { a: { b: 'é'.repeat(5_000) } },
    ]) {
      let count = 0
      const countSlices: RunSlice = async (slice) => {
        count++
        return slice()
      }
      const bytes = Buffer.from(JSON.stringify(value))
      expect(await parseInSlices(bytes, 64, countSlices, 1_000)).toEqual(value)
      expect(count).toBeWithin(bytes.length / 1_020, bytes.length / 1_000 + 2)
    }
  })
})

describe('stringifyInSlices', () => {
  test(
    'writes what JSON.stringify writes, wherever it is cut',
    () =>
      checkProperty(
        1_000,
        fc.asyncProperty(values, sliceLengths, async (value, sliceLength) => {
          const bytes = await stringifyInSlices(value, runAtOnce, sliceLength)
          expect(bytes.toString()).toBe(JSON.stringify(value))
        }),
      ),
    PROPERTY_TIMEOUT_MS,
  )

  test('leaves out undefined properties, and writes undefined items as null', async () => {
    const value = { a: undefined, b: [undefined, 1], c: '' }
    expect((await stringifyInSlices(value, runAtOnce)).toString()).toBe(JSON.stringify(value))
  })
})
