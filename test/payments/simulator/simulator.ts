import { expect } from 'bun:test'
import { eq } from 'drizzle-orm'
import type { Ctx } from '../../../src/accounts/context'
import { moveClock, now, toIsoString } from '../../../src/core/clock'
import { Problem } from '../../../src/core/problem'
import { runDueJobs } from '../../../src/jobs/runner'
import { startCheckout } from '../../../src/payments/checkout/checkout'
import { cancel } from '../../../src/payments/subscriptions/cancellation'
import { setCoupon } from '../../../src/payments/subscriptions/pricing'
import { create } from '../../../src/payments/subscriptions/subscriptions'
import { hasActiveStatus } from '../../../src/payments/subscriptions/transitions'
import { subscriptions } from '../../../src/payments/tables'
import { receiveWebhook } from '../../../src/payments/webhooks/webhook-receiver'
import type { Tx } from '../../../src/storage/port'
import { writeInvalidating } from '../../../src/tenancy/cache'
import { registry } from '../../../src/tenancy/registry'
import { tenants } from '../../../src/tenancy/tables'
import type { VendorRequest } from '../../fakes/vendors/vendor'
import { createPaymentsFixture } from '../fixtures'
import type { Action, Fault, History } from './actions'
import { CrashingProcess, ProcessKilled } from './crashing-process'
import { checkWrites, expectAgreement, expectConsistentCounts, expectOfferedRefunds, type Surplus } from './invariants'
import type { Truth, World } from './provider-worlds'

const HOUR = 3_600_000
export const START = Date.parse('2026-03-10T09:00:00.000Z')
/** How long a checkout can be paid. */
const CHECKOUT_EXPIRY_MS = 72 * HOUR
/** The grace period of the settings, and the longest pause of a job that failed. */
const GRACE_MS = 72 * HOUR
const TOLERANCE_MS = 2 * HOUR
const TABLES = ['subscriptions', 'redemptions', 'invoices', 'provider_events', 'jobs', 'leases']

/** Creates a tenant that sells by a provider; `play` runs a history and checks the invariants. */
export async function createSimulator(world: World) {
  moveClock(START)
  const at = await createPaymentsFixture(world.connection())
  const plan = await at.createPlan({
    name: 'Plan',
    monthlyPrice: 20,
    yearlyPrice: 200,
    externalIds: { [world.kind]: world.externalIds },
  })
  const coupons = [
    await at.createCoupon({ maxRedemptions: 1 }),
    await at.createCoupon({
      maxRedemptions: 2,
      discountType: 'fixed',
      discountValue: 5,
      currency: 'USD',
      benefitDurationUnit: 'days',
      benefitDurationValue: 20,
    }),
    await at.createCoupon({ maxRedemptions: 1, discountValue: 100 }),
  ].map(({ code }) => code as string)
  const people = [at.users.user, at.users.other]
  const request = () => new Request(`${at.origin}/api/checkout`, { headers: { host: new URL(at.origin).host } })

  /** Runs one history in an empty tenant. */
  async function play({ acts, late }: History) {
    await reset()
    const issuedAt = new Map<string, number>()
    const history: string[] = []

    const rows = () => at.tenant.db.select().from(subscriptions).orderBy(subscriptions._id)
    const nth = <T>(list: T[], n: number): T | undefined => list[n % list.length]
    const truths = (...statuses: string[]) => world.truths().filter(({ status }) => statuses.includes(status))

    /** The subscriptions at the provider that were paid when the provider was told to cancel them. */
    const canceledInForce: (Truth & { at: number })[] = []
    /** Those of them that were paid beside another one of the same subscription. */
    const surplus: Surplus[] = []
    /** Our subscriptions that wait for an admin. */
    const waiting = new Set<string>()
    /** From when on subscriptions are overdue here. */
    const overdueSince = new Map<string, number>()
    let isHeld = false
    /** Whether the tenant was held when the jobs that run were begun. */
    let areJobsHeld = false
    const heldRequests: string[] = []
    const broken: unknown[] = []
    /** Our subscriptions that somebody asked to end. */
    const requested = new Set<string>()

    function noteCancellation({ method, path }: VendorRequest) {
      const [, id] = /\/subscriptions\/([^/]+)(\/cancel)?$/.exec(path) ?? []
      if (isHeld && areJobsHeld) heldRequests.push(`${method} ${path}`)
      if (method !== 'DELETE' && !path.endsWith('/cancel')) return
      const inForce = truths('active', 'trialing', 'paused', 'past_due').filter((one) => one.id === id)
      canceledInForce.push(...inForce.map((one) => ({ ...one, at: now() })))
    }

    /** Expects that nothing was canceled at the provider that somebody had paid for, unless it was asked for or bought twice. */
    async function expectNothingPaidCanceled() {
      expect(heldRequests, 'a copy that does nothing outside asked the provider').toEqual([])
      for (const { id, ours, status, at } of canceledInForce.splice(0)) {
        if (waiting.has(ours) && !requested.has(ours))
          expect([id, 'waits for an admin'], 'what waits for an admin was canceled').toEqual([id, 'canceled'])
        if (status === 'past_due') continue
        const row = (await rows()).find(({ _id }) => _id === ours)
        const isBoughtTwice = !!row && hasActiveStatus(row) && row.externalSubscriptionId !== id
        if (isBoughtTwice) surplus.push({ id, at })
        const isAllowed = !row || requested.has(ours) || isBoughtTwice || row.cancelAtPeriodEnd
        expect([id, status, isAllowed], 'what somebody paid for was canceled at the provider').toEqual([
          id,
          status,
          true,
        ])
      }
      waiting.clear()
      for (const row of await rows()) if (row.conflict) waiting.add(row._id)
      await noteOverdue()
    }

    /** Notes since when subscriptions are overdue, whatever they say themselves. */
    async function noteOverdue() {
      for (const row of await rows())
        if (row.status !== 'past_due') overdueSince.delete(row._id)
        else if (!overdueSince.has(row._id)) overdueSince.set(row._id, now())
    }

    /** Expects that access has ended with the grace period, whatever else has failed meanwhile. */
    function expectEndedGrace() {
      const late = [...overdueSince].filter(([, since]) => now() - since > GRACE_MS + TOLERANCE_MS)
      expect(late, 'the grace period did not end').toEqual([])
    }

    /** Expects that no checkout can be paid any more that a customer was sent to. PayPal cannot take one back. */
    function expectNoOpenCheckout() {
      const open = world.kind === 'paypal' ? [] : world.open().filter((one) => issuedAt.has(one))
      expect(open, 'a checkout was left open').toEqual([])
    }

    /** Starts a process with this fault. Only one process at a time asks the provider. */
    function startProcess(fault: Fault) {
      const death = fault && 'write' in fault ? { at: fault.write, committed: fault.committed } : undefined
      const checked = (tx: Tx, work: (tx: Tx) => Promise<unknown>) =>
        checkWrites(tx, work, (error) => broken.push(error))
      const process = new CrashingProcess(at.tenant, checked, death)
      let requests = 0
      world.own.failWhen = (request) => {
        noteCancellation(request)
        if (process.isDead) return 'down'
        if (!fault || 'write' in fault) return
        const index = requests++
        if (fault.stays ? index < fault.at : index !== fault.at) return
        if (fault.vendor === 'touches') return { late: touchRows() }
        if (fault.vendor === 'pays' || fault.vendor === 'reports') {
          for (const one of world.open().slice(0, 1)) world.pay(one, false)
          return fault.vendor === 'pays' ? undefined : { late: deliverAll({ running: process }) }
        }
        if (fault.dies) process.isDead = true
        return fault.vendor === 'refuses' ? { status: 500 } : fault.vendor
      }
      return process
    }

    /** Ends a process. The leases of a dead process are deleted as if they had expired. */
    async function finishProcess(process: CrashingProcess) {
      world.own.failWhen = () => undefined
      if (broken.length) throw broken[0]
      expect(process.isEndless, 'a job is due again and again').toBeFalse()
      if (process.isDead) await at.tenant.write((tx) => tx.query('delete from leases'))
    }

    /** Runs the work in a new process with this fault, or in the running one. */
    async function inProcess<T>(
      fault: Fault,
      work: (ctx: Ctx & { process: CrashingProcess }) => Promise<T>,
      {
        user = people[0]!,
        privileged = false,
        running,
      }: { user?: string; privileged?: boolean; running?: CrashingProcess } = {},
    ) {
      const process = running ?? startProcess(fault)
      const actor = { user, roles: [], privileged, workspace: null, via: 'api-key' as const, scopes: [] }
      try {
        return await work({ ...process.tenant, actor, process })
      } catch (error) {
        if (error instanceof ProcessKilled || process.isDead) history.push('  killed')
        else if (error instanceof Problem && error.status !== 500) history.push(`  ${error.code}`)
        else throw error
      } finally {
        if (!running) await finishProcess(process)
      }
    }

    /** Performs actions at once in one process. */
    async function performTogether(acts: Action[], fault: Fault) {
      const process = startProcess(fault)
      const all = await Promise.allSettled(acts.map((act) => perform(act, process)))
      await finishProcess(process)
      for (const one of all) if (one.status === 'rejected') throw one.reason
    }

    const deliver = async (event: object, fault: Fault = undefined, running?: CrashingProcess) => {
      const answer = await inProcess(
        fault,
        async (ctx) => {
          const { raw, headers } = await world.signEvent(event)
          const body = { method: 'POST', body: raw, headers }
          return receiveWebhook(ctx, world.kind, new Request(`${at.origin}/api/payments/webhooks/${world.kind}`, body))
        },
        { running },
      )
      await noteOverdue()
      return answer
    }

    async function deliverAll({ running, reversed }: { running?: CrashingProcess; reversed?: boolean } = {}) {
      for (const event of reversed ? world.events.toReversed() : [...world.events])
        if (await deliver(event, undefined, running)) drop(event)
    }

    /** Changes our rows as an admin does, so that what was read before is no longer up to date. */
    const touchRows = () =>
      at.tenant.write(async (tx) => {
        moveClock(now() + 1)
        await tx.update(subscriptions).set({ updated: toIsoString(now()) })
      })

    /** Makes the tenant a copy that does nothing outside, or lets it act again. */
    async function hold(on: boolean) {
      isHeld = on
      await writeInvalidating(registry, 'tenants', (tx) =>
        tx
          .update(tenants)
          .set({ outgoingHeld: on ? toIsoString(now()) : null })
          .where(eq(tenants.id, at.id)),
      )
    }

    /** `reset` ends what the entity has in force. */
    async function requestEndOf(entity: string) {
      for (const row of await rows()) if (row.billableEntityId === entity) requested.add(row._id)
    }

    const drop = (event: object) => world.events.splice(world.events.indexOf(event), 1)

    /** Moves the clock to a second after the period of a subscription. */
    const moveToNextPeriod = ({ periodEnd }: { periodEnd: number }) =>
      moveClock(Math.max(now() + 1_000, periodEnd + 1_000))

    async function perform(act: Action, running?: CrashingProcess): Promise<unknown> {
      if (act.do === 'together') return performTogether(act.acts, act.fault)
      if (act.do === 'subscribe') {
        const input = { planId: plan._id, billingCycle: 'monthly' as const, couponCode: coupons[act.coupon] }
        return inProcess(undefined, (ctx) => create(ctx, input), { user: people[act.who], running })
      }
      if (act.do === 'checkout') {
        const waiting = (await rows()).filter(
          ({ status, billableEntityId: id }) => status === 'pending' && id === people[act.who],
        )
        const row = act.of < 0 ? undefined : nth(waiting, act.of)
        const order = row ? { subscriptionId: row._id } : { planId: plan._id, billingCycle: 'monthly' as const }
        const input = { ...order, couponCode: coupons[act.coupon], reset: act.reset }
        if (act.reset) await requestEndOf(people[act.who]!)
        const asking = (ctx: Ctx) => startCheckout(ctx, input, request())
        const answer = await inProcess(act.fault, asking, { user: people[act.who], running })
        if (!(answer?.checkoutUrl ?? answer?.clientToken)) return
        const checkout = world.checkoutIn(answer!)
        if (!issuedAt.has(checkout)) issuedAt.set(checkout, now())
        // A concurrent action may have started another checkout or canceled this one.
        if (!running) expect([checkout, world.isCanceled(checkout)]).toEqual([checkout, false])
        return
      }
      if (act.do === 'buy') {
        const before = new Set(world.open())
        const { who, reset } = act
        await perform({ do: 'checkout', who, of: -1, coupon: -1, reset, fault: undefined }, running)
        for (const one of world.open()) if (!before.has(one) && issuedAt.has(one)) world.pay(one, act.trial)
        return deliverAll({ running })
      }
      if (act.do === 'overdue') {
        await perform({ do: 'fail', n: act.n })
        return deliverAll({ running })
      }
      if (act.do === 'deliver all') return deliverAll({ running, reversed: act.reversed })
      if (act.do === 'agree')
        return expectAgreement(at.tenant.db, world, { settled: false, isReported: !world.events.length })
      if (act.do === 'lose all') return void world.events.splice(0)
      if (act.do === 'hold') return hold(act.on)
      if (act.do === 'pay' || act.do === 'decline') {
        const open = nth(
          world.open().filter((one) => now() - (issuedAt.get(one) ?? 0) < CHECKOUT_EXPIRY_MS),
          act.n,
        )
        if (open && act.do === 'pay') world.pay(open, act.trial)
        else if (open) world.decline(open)
        return
      }
      if (act.do === 'renew' || act.do === 'fail') {
        const one = nth(truths('active', 'trialing'), act.n)
        if (one) moveToNextPeriod(one)
        if (one) world[act.do](one.id)
        return
      }
      if (act.do === 'fail again') {
        const one = nth(truths('past_due'), act.n)
        return one && world.fail(one.id)
      }
      if (act.do === 'recover') {
        const one = nth(truths('past_due'), act.n)
        return one && world.recover(one.id)
      }
      if (act.do === 'pause' || act.do === 'resume') {
        const one = nth(act.do === 'pause' ? truths('active', 'trialing') : truths('paused'), act.n)
        return one && world[act.do](one.id)
      }
      if (act.do === 'end' || act.do === 'schedule') {
        const one = nth(truths('active', 'trialing', 'past_due', 'paused'), act.n)
        if (one && act.do === 'end') world.end(one.id, act.n)
        else if (one && act.do === 'schedule') world.schedule(one.id, act.ends)
        return
      }
      if (act.do === 'deliver') {
        const event = nth(world.events, act.n)
        if (event && (await deliver(event, act.fault, running)) && !act.twice) drop(event)
        return
      }
      if (act.do === 'lose') {
        const event = nth(world.events, act.n)
        return event && drop(event)
      }
      if (act.do === 'cancel') {
        const row = nth(await rows(), act.n)
        if (row) requested.add(row._id)
        return row && inProcess(act.fault, (ctx) => cancel(ctx, row._id), { user: row.billableEntityId, running })
      }
      if (act.do === 'attach') {
        const row = nth(await rows(), act.n)
        const couponCode = coupons[act.coupon] ?? null
        const attaching = (ctx: Ctx) => setCoupon(ctx, row!._id, { couponCode })
        return row && inProcess(act.fault, attaching, { privileged: true, running })
      }
      await passTime(act.hours * HOUR, act.fault, running)
    }

    async function passTime(ms: number, fault?: Fault, running?: CrashingProcess) {
      moveClock(now() + ms)
      areJobsHeld = isHeld
      await inProcess(fault, ({ process }) => runDueJobs(process.tenant), { running })
      areJobsHeld = false
      if (running) return
      await expectNothingPaidCanceled()
      if (!fault && !isHeld) expectEndedGrace()
    }

    const check = async (how: { settled: boolean }) => {
      const { db } = at.tenant
      await expectConsistentCounts(db)
      await expectAgreement(db, world, how)
      if (!how.settled) return
      await expectOfferedRefunds(db, world, surplus)
      expectNoOpenCheckout()
    }

    try {
      for (const act of acts) {
        history.push(JSON.stringify(act))
        await perform(act)
        await expectNothingPaidCanceled()
      }
      await hold(false)
      for (const [n, event] of [...world.events].entries()) if (late[n % late.length]) await deliver(event)
      history.push('remaining jobs')
      for (const hours of [1.01, 1.01]) await passTime(hours * HOUR)
      await check({ settled: false })
      for (const hours of [25, 1.01, 1.01]) await passTime(hours * HOUR)
      await check({ settled: true })
    } catch (error) {
      await hold(false)
      if (error instanceof Error) error.message += `\n${history.join('\n')}`
      throw error
    }
  }

  async function reset() {
    moveClock(START)
    world.clear()
    await at.tenant.write(async (tx) => {
      for (const table of TABLES) await tx.query(`delete from ${table}`)
      await tx.query('update coupons set current_redemptions = 0')
    })
  }

  return { play }
}
