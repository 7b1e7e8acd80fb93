// engine: sqlite
import { describe, expect, test } from 'bun:test'
import type { Field } from '../../src/admin/api/schema'
import { findFieldFlaw } from '../../src/admin/fields/validation'

const findFlaw = (pattern: string, value: string) =>
  findFieldFlaw({ key: 'code', type: 'string', pattern } as Field, value)

describe('the pattern of a field', () => {
  test.each([
    ['^[A-Z]{2}\\d{4}$', 'AB1234', 'AB123'],
    ['^[a-z0-9-]+$', 'a-slug', 'A slug'],
    ['^(?:red|green|blue)$', 'green', 'pink'],
    ['^[^@\\s]+@[^@\\s]+\\.[^@\\s]+$', 'ada@example.com', 'ada'],
    ['^\\p{Lu}\\p{Ll}*$', 'Ada', 'ada'],
  ])('%s admits %s, and not %s', (pattern, right, wrong) => {
    expect(findFlaw(pattern, right)).toBeUndefined()
    expect(findFlaw(pattern, wrong)).toBe(`code must match the pattern ${pattern}.`)
  })

  test.each([
    '^(a+)+$',
    '^(a*)*b',
    '^(a|a)*$',
    '^((?:a|a){1,30})$',
    '^(a|aa){30}$',
    `^${'(a|a)'.repeat(60)}$`,
    `^${'a?'.repeat(60)}${'a'.repeat(60)}$`,
    `${'a*'.repeat(20)}b`,
    '^(?:[a]|a)+$',
    '^(\\)|a|a)+$',
  ])('%s, which a browser may try forever, is left to the server', (pattern) => {
    const began = performance.now()
    expect(findFlaw(pattern, `${'a'.repeat(60)}!`)).toBeUndefined()
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test('long texts, and patterns that only the server understands, are left to the server', () => {
    expect(findFlaw('^a*a*a*b$', 'a'.repeat(50_000))).toBeUndefined()
    expect(findFlaw('(?i)^abc$', 'ABC')).toBeUndefined()
  })
})
