// engine: sqlite
import { expect, test } from 'bun:test'
import { measureThreadHold, yieldToEventLoop } from '../../src/core/event-loop'

const spin = (ms: number) => {
  for (const until = performance.now() + ms; performance.now() < until; );
}

test('work that only awaits finished promises holds the thread all along', async () => {
  const endHold = measureThreadHold()
  spin(5)
  await Promise.resolve()
  spin(5)
  expect(endHold()).toBeGreaterThanOrEqual(10)
})

test('work between whose parts others ran holds the thread for no time', async () => {
  const endHold = measureThreadHold()
  spin(5)
  await yieldToEventLoop()
  expect(endHold()).toBe(0)
})
