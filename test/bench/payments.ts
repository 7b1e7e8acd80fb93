// `bun test/bench/payments.ts [sqlite|postgres] [events]`: how many signed webhooks of a payment provider a second are
// verified and applied, each durable before it is answered; and what a checkout takes beyond the provider's own time.
import { readFileSync, rmSync } from 'node:fs'
import { apiCaller, createTempFolder, createTenantByCli, signIn, startAtoll } from '../fakes/cli'
import { startPostgres } from '../fakes/postgres'
import { signStripeWebhook, startStripe } from '../fakes/vendors/stripe'
import type { SignedWebhook } from '../fakes/vendors/vendor'

const SUBSCRIPTION_COUNT = 300
const CONCURRENT_WEBHOOKS = 64
const CHECKOUT_COUNT = 200
const count = Number(process.argv[3] ?? 12_000)
const database = process.argv[2] === 'postgres' ? await startPostgres() : undefined
const env = {
  ...{ ATOLL_ALLOW_PRIVATE_NETWORK: 'on', ATOLL_DURABILITY: 'full', ATOLL_RATE_LIMITS: 'off' },
  ...(database && { ATOLL_DATABASE_URL: database.url }),
}
const runOptions = { at: createTempFolder(), env }
const vendor = await startStripe()
await createTenantByCli(runOptions, 'acme')

const medianOf = (list: number[]) => list.sort((a, b) => a - b)[list.length >> 1]!
/** Seconds of a processor that a process has had. */
const cpuSeconds = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

async function runConcurrently<T>(list: T[], work: (one: T) => Promise<unknown>) {
  const left = list.values()
  const worker = async () => {
    for (const one of left) await work(one)
  }
  await Promise.all(Array.from({ length: CONCURRENT_WEBHOOKS }, worker))
}

{
  await using server = await startAtoll(runOptions)
  const admin = apiCaller(server.url, await signIn(server.url, 'acme'))
  const source = (await admin('POST', '/api/integration-sources', vendor.connection())).body
  await admin('PUT', '/api/payments/configuration', { metadata: { isEnabled: true, paymentSourceId: source._id } })
  const plan = (await admin('POST', '/api/plans', { name: 'Pro', monthlyPrice: 20, yearlyPrice: 200 })).body
  const order = { planId: plan._id, billingCycle: 'monthly' }

  const created = Math.floor(Date.now() / 1000)
  const events: SignedWebhook[][] = [[], []]
  await runConcurrently([...Array(SUBSCRIPTION_COUNT).keys()], async (n) => {
    const workspace = (await admin('POST', '/api/workspaces', { name: `w${n}` })).body
    const billable = { billableEntityType: 'workspace', billableEntityId: workspace._id }
    const { body } = await admin('POST', '/api/subscriptions', { ...order, ...billable })
    const metadata = { tenant: 'acme', subscription: body._id }
    const sent = async (round: number, type: string, at: number, object: object) => {
      const event = { id: `evt_${n}_${events[round]!.length}_${type}`, type, created: at, data: { object } }
      events[round]!.push(await signStripeWebhook(JSON.stringify(event), 'whsec_of_the_test'))
    }
    const period = { current_period_start: created, current_period_end: created + 2_592_000 }
    await sent(0, 'customer.subscription.created', created, { id: `sub_${n}`, status: 'active', metadata, ...period })
    for (let k = 1; k < count / SUBSCRIPTION_COUNT; k++) {
      const [start, end] = [created + k * 2_592_000, created + (k + 1) * 2_592_000]
      const line = {
        amount: 2000,
        currency: 'usd',
        description: 'Pro',
        quantity: 1,
        period: { start, end },
        subscription: `sub_${n}`,
      }
      const invoice = {
        id: `in_${n}_${k}`,
        amount_due: 2000,
        amount_paid: 2000,
        currency: 'usd',
        subscription: `sub_${n}`,
      }
      await sent(1, 'invoice.paid', created + k, { ...invoice, lines: { data: [line] } })
    }
  })
  const deliver = async ({ raw, headers }: SignedWebhook) => {
    const question = { method: 'POST', body: raw, headers: { ...headers, tenant: 'acme' } }
    const answer = await fetch(`${server.url}/api/payments/webhooks/stripe`, question)
    const { status } = (await answer.json()) as { status: string }
    if (status !== 'processed') throw new Error(`${answer.status} ${status}`)
  }
  await runConcurrently(events[0]!, deliver)
  const [began, before] = [performance.now(), cpuSeconds(server.pid)]
  await runConcurrently(events[1]!, deliver)
  const seconds = (performance.now() - began) / 1_000
  const cost = ((cpuSeconds(server.pid) - before) * 1_000_000) / events[1]!.length
  console.log(
    `webhooks: ${events[1]!.length} by ${CONCURRENT_WEBHOOKS} at once in ${seconds.toFixed(1)} s: ${Math.round(events[1]!.length / seconds)} a second verified and applied, ${Math.round(cost)} µs of a processor each`,
  )

  const times: number[] = []
  const theirs: number[] = []
  for (let n = 0; n < CHECKOUT_COUNT; n++) {
    const start = performance.now()
    const { status, body } = await admin('POST', '/api/checkout', order)
    times.push(performance.now() - start)
    if (status !== 200) throw new Error(JSON.stringify(body))
    await admin('PUT', `/api/checkout/${body.subscriptionId}/cancel`)
    const asked = performance.now()
    const question =
      'mode=subscription&line_items[0][quantity]=1&success_url=x&line_items[0][price_data][currency]=usd&line_items[0][price_data][unit_amount]=2000&line_items[0][price_data][product]=p&line_items[0][price_data][recurring][interval]=month'
    const headers = { authorization: `Bearer ${vendor.connection().authentication.secretKey}` }
    await (await fetch(`${vendor.url}/v1/checkout/sessions`, { method: 'POST', body: question, headers })).text()
    theirs.push(performance.now() - asked)
  }
  const [whole, own] = [medianOf(times), medianOf(theirs)]
  console.log(
    `a checkout: ${whole.toFixed(1)} ms (median), of which the provider takes ${own.toFixed(1)} ms: more by ${(whole - own).toFixed(1)} ms`,
  )
  await server.end('SIGTERM')
}
await vendor.stop()
await database?.stop()
rmSync(runOptions.at, { recursive: true })
process.exit(0)
