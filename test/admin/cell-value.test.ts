import { expect, test } from 'bun:test'
import { parseCell } from '../../src/admin/transfer/cell-value'

test('a cell that is no time stays as it is, so that the server refuses its row alone', () => {
  const field = { key: 'called', type: 'datetime' } as const
  expect(parseCell('2026-13-45 10:00', field)).toBe('2026-13-45 10:00')
  expect(parseCell('tomorrow', field)).toBe('tomorrow')
})

test('a time without a zone is read as a local one', () => {
  const local = new Date('2026-01-31T10:00').toISOString()
  expect(parseCell('2026-01-31 10:00', { key: 'called', type: 'datetime' })).toBe(local)
})
