// engine: sqlite
import { describe, expect, test } from 'bun:test'
import type { Field } from '../../src/admin/api/schema'
import { parseCell } from '../../src/admin/transfer/cell-value'

const parse = (text: string, type: Field['type']) => parseCell(text, { key: 'value', type } as Field)

describe('a cell of an imported file', () => {
  test('numbers become values of the field, and times stay for the server, which knows their zone', () => {
    expect(parse('-1.5e3', 'number')).toBe(-1500)
    expect(parse('+5', 'integer')).toBe(5)
    expect(parse('2026-01-31 12:00', 'datetime')).toBe('2026-01-31 12:00')
  })

  test('a cell of a file with decimal commas takes 1,5 as a number and refuses a point', () => {
    const parseComma = (text: string, type: Field['type'], multi = false) =>
      parseCell(text, { key: 'value', type, multi } as Field, 'comma')
    expect(parseComma('1,5', 'number')).toBe(1.5)
    expect(parseComma('-12,50', 'decimal')).toBe('-12.50')
    expect(parseComma('1,5|2,5', 'number', true)).toEqual([1.5, 2.5])
    expect(() => parseComma('1.500', 'decimal')).toThrow('"1.500" is not a number with a decimal comma.')
  })

  test('a number that would be changed stays as it is, also within a list or an object, so that the server refuses its row', () => {
    expect(parse('9007199254740993', 'number')).toBe('9007199254740993')
    expect(parse('9007199254740992', 'integer')).toBe(9007199254740992)
    expect(parse('{"id":9007199254740993}', 'object')).toBe('{"id":9007199254740993}')
    expect(parse('9007199254740993.01', 'decimal')).toBe('9007199254740993.01')
  })

  test('numbers and times that do not exist stay as they are, so that the server refuses their row', () => {
    expect(parse('1e999', 'number')).toBe('1e999')
    expect(parse('2026-13-45 10:00', 'datetime')).toBe('2026-13-45 10:00')
  })
})
