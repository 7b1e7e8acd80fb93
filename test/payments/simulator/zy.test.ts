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
  const { play, at } = await simulator(world)
  const list = fc.sample(histories, { numRuns: Number(process.env.N ?? 60), seed: Number(process.env.SEED ?? 1) })
  let fails = 0,
    total = performance.now()
  for (const [n, history] of list.entries()) {
    if (process.env.ONLY && n !== Number(process.env.ONLY)) continue
    const began = performance.now()
    const timer = setTimeout(() => console.log('HANG', n, JSON.stringify(history)), 8000)
    try {
      await play(history)
    } catch (error) {
      fails++
      if (process.env.ONLY) {
        const q = async (s: string) => console.log(s, JSON.stringify(await at.tenant.db.ask(s)))
        await q(
          'select _id,status,provider_kind,external_subscription_id,external_checkout_id,drift,created,updated,cancel_requested from subscriptions',
        )
        await q('select kind,payload,due,attempts,outcome from jobs')
        await q('select type,status,outcome,subscription_id from provider_events order by created')
        await q('select external_invoice_id,status,subscription_id from invoices')
        await q(
          "select event_name,metadata from (select * from events where source='payments' order by seq desc limit 25) order by seq",
        )
        console.log(JSON.stringify(world.truths(), null, 1))
      }
      if (fails <= 3) console.log('FAIL', n, String((error as Error).message).slice(0, 4000))
    }
    clearTimeout(timer)
    if (performance.now() - began > 1500) console.log('slow', n, performance.now() - began)
  }
  console.log('fails', fails, 'of', list.length, 'ms each', (performance.now() - total) / list.length)
}, 600000)
