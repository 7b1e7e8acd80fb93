// engine: sqlite
import { expect, test } from 'bun:test'
import { findNearestKey } from '../../src/core/nearest-key'

const KEYS = ['required', 'readRoles', 'writeRoles', 'maxRedemptions', 'currency', 'id', 'ATOLL_PORT']

test.each([
  ['requird', 'required'],
  ['requierd', 'required'],
  ['Required', 'required'],
  ['read_roles', 'readRoles'],
  ['maxRedemtions', 'maxRedemptions'],
  ['curency', 'currency'],
  ['ATOL_PORT', 'ATOLL_PORT'],
  ['ids', 'id'],
])('findNearestKey returns the nearest known key for "%s"', (key, nearest) => {
  expect(findNearestKey(key, KEYS)).toBe(nearest)
})

test.each(['colour', 'email', 'x', '', 'requisition', 'roles'])(
  'findNearestKey returns undefined for "%s", which resembles no known key',
  (key) => {
    expect(findNearestKey(key, KEYS)).toBeUndefined()
  },
)

test('findNearestKey prefers the key with the fewest differences', () => {
  expect(findNearestKey('names', ['named', 'name', 'names'])).toBe('names')
})
