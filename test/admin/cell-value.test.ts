import { describe, expect, test } from 'bun:test'
import type { Field } from '../../src/admin/api/schema'
import { parseCell } from '../../src/admin/transfer/cell-value'

const parse = (text: string, type: Field['type']) => parseCell(text, { key: 'value', type } as Field)

describe('a cell of an imported file', () => {
  test('numbers and times become values of the field', () => {
    expect(parse('-1.5e3', 'number')).toBe(-1500)
    expect(parse('2026-01-31 12:00', 'datetime')).toBe(new Date('2026-01-31T12:00').toISOString())
  })

  test('numbers and times that do not exist stay as they are, so that the server refuses their row', () => {
    expect(parse('1e999', 'number')).toBe('1e999')
    expect(parse('2026-13-45 10:00', 'datetime')).toBe('2026-13-45 10:00')
  })
})
