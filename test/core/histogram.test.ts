// engine: sqlite
import { expect, test } from 'bun:test'
import { Histogram } from '../../src/core/histogram'

test('a Histogram counts values within and above its bounds, and sums them', () => {
  const histogram = new Histogram([1, 5])
  for (const value of [0, 1, 1.5, 5, 5.5, 100]) histogram.record(value)
  expect(histogram.counts).toEqual([2, 2, 2])
  expect([histogram.count, histogram.sum]).toEqual([6, 113])
})

test('getQuantile returns the bound that a share of the values does not exceed', () => {
  const histogram = new Histogram([1, 5, 10])
  expect(histogram.getQuantile(0.95)).toBeUndefined()
  for (let n = 0; n < 90; n++) histogram.record(0.5)
  for (let n = 0; n < 9; n++) histogram.record(7)
  expect([0.5, 0.9, 0.95, 0.99].map((share) => histogram.getQuantile(share))).toEqual([1, 1, 10, 10])
  histogram.record(11)
  expect(histogram.getQuantile(1)).toBeUndefined()
})
