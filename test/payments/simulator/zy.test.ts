import { test } from 'bun:test'
import fc from 'fast-check'
import { config } from '../../../src/config'
import { open } from '../../plugins/kit'
import { histories } from './acts'
import { simulator } from './simulator'
import { worlds } from './vendors'
open()
config.ATOLL_RATE_LIMITS = 'off'
console.error = () => {}
test('explore', async () => {
  const world = await worlds[process.env.KIND as 'stripe']()
  const { play } = await simulator(world)
  const list = fc.sample(histories, { numRuns: Number(process.env.N ?? 60), seed: Number(process.env.SEED ?? 1) })
  let fails = 0, total = performance.now()
  for (const [n, history] of list.entries()) {
    if (process.env.ONLY && n !== Number(process.env.ONLY)) continue
    const began = performance.now()
    const timer = setTimeout(() => console.log('HANG', n, JSON.stringify(history)), 8000)
    try { await play(history) } catch (error) {
      fails++
      if (fails <= 3) console.log('FAIL', n, String((error as Error).message).slice(0, 4000))
    }
    clearTimeout(timer)
    if (performance.now() - began > 1500) console.log('slow', n, performance.now() - began)
  }
  console.log('fails', fails, 'of', list.length, 'ms each', (performance.now() - total) / list.length)
}, 600000)
