// engine: sqlite
import { expect, test } from 'bun:test'
import { toChunks } from '../../src/core/chunks'

test('items are split in their order, and only the last chunk may be shorter', () => {
  expect(toChunks([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]])
  expect(toChunks([1, 2, 3, 4], 2)).toEqual([
    [1, 2],
    [3, 4],
  ])
  expect(toChunks(['a'], 10)).toEqual([['a']])
  expect(toChunks([], 10)).toEqual([])
})
