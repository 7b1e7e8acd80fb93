import { test } from 'bun:test'
import { config } from '../../../src/config'
import { open } from '../../plugins/kit'
import { simulator } from './simulator'
import { worlds } from './vendors'

open()
config.ATOLL_RATE_LIMITS = 'off'
test('replay', async () => {
  const { kind, acts, late } = JSON.parse(process.env.REPLAY!)
  const world = await worlds[kind as 'stripe']()
  const { play, at } = await simulator(world)
  try {
    await play({ acts, late: late ?? [false] })
  } catch (error) {
    console.log(String((error as Error).message).slice(0, 3000))
    const q = async (s: string) => console.log(s, JSON.stringify(await at.tenant.db.ask(s)))
    await q(
      'select _id,status,provider_kind,external_subscription_id,external_checkout_id,drift,updated,checkout_amount,past_due_since from subscriptions',
    )
    await q('select kind,payload,due,attempts,outcome from jobs')
    await q('select type,status,outcome from provider_events')
    await q('select external_invoice_id,status from invoices')
    console.log(
      JSON.stringify(
        await at.tenant.db.ask(
          "select event_name,metadata from events where source='payments' order by seq desc limit 12",
        ),
        null,
        0,
      ),
    )
    console.log(JSON.stringify(world.truths()))
  }
}, 60000)
