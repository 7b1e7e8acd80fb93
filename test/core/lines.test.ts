// engine: sqlite
import { expect, test } from 'bun:test'
import { LineTooLong, splitLines } from '../../src/core/lines'
import { errorOf } from '../rejections'

const toChunks = async function* (text: string, size: number) {
  const bytes = new TextEncoder().encode(text)
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

test.each([1, 2, 3, 7, 1_000])('lines are whole whatever the pieces of %i bytes cut', async (size) => {
  const text = 'one\n\nzwölf €\nlast without an end'
  expect(await Array.fromAsync(splitLines(toChunks(text, size)))).toEqual(text.split('\n'))
  expect(await Array.fromAsync(splitLines(toChunks('a\nb\n', size)))).toEqual(['a', 'b'])
})

test('a long line takes linear time, and one that is too long is refused', async () => {
  const line = 'x'.repeat(4 << 20)
  expect(await Array.fromAsync(splitLines(toChunks(line, 64)))).toEqual([line])
  expect(await errorOf(Array.fromAsync(splitLines(toChunks(line, 4_096), 1 << 20)))).toBeInstanceOf(LineTooLong)
})
