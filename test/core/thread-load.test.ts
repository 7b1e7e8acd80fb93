// engine: sqlite
import { expect, test } from 'bun:test'
import { ThreadLoad } from '../../src/core/thread-load'

const WINDOW_MS = 60

test('a thread that works all the time is busy, and one that mostly waits is not', async () => {
  const load = new ThreadLoad()
  for (const until = performance.now() + WINDOW_MS; performance.now() < until; );
  expect(load.isBusy()).toBe(true)
  await Bun.sleep(10 * WINDOW_MS)
  expect(load.isBusy()).toBe(false)
  // Within a window, the answer stays the same.
  expect(load.isBusy()).toBe(false)
})
