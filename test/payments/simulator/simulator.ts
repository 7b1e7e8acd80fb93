import { expect } from 'bun:test'
import type { Ctx } from '../../../src/accounts/guard'
import { moveClock, now } from '../../../src/core/clock'
import { Problem } from '../../../src/core/problem'
import { runDue } from '../../../src/jobs/runner'
import { checkout } from '../../../src/payments/checkout/checkout'
import { receive } from '../../../src/payments/inbox/receiving'
import { cancel } from '../../../src/payments/subscriptions/ending'
import { setCoupon } from '../../../src/payments/subscriptions/pricing'
import { create } from '../../../src/payments/subscriptions/subscriptions'
import { subscriptions } from '../../../src/payments/tables'
import { shop } from '../kit'
import type { Act, Fault, History } from './acts'
import { agreement, countsOf, watched } from './laws'
import { Killed, Mortal } from './mortal'
import type { World } from './vendors'

const HOUR = 3_600_000
export const START = Date.parse('2026-03-10T09:00:00.000Z')
/** For so long one can pay in a checkout. */
const EXPIRY = 72 * HOUR
const TABLES = ['subscriptions', 'redemptions', 'invoices', 'provider_events', 'jobs', 'leases']

/** A tenant that sells by a provider, and what may happen to it. */
export async function simulator(world: World) {
  moveClock(START)
  const at = await shop(world.connection())
  const plan = await at.plan({
    name: 'Plan',
    monthlyPrice: 20,
    yearlyPrice: 200,
    externalIds: { [world.kind]: world.externalIds },
  })
  const coupons = [
    await at.coupon({ maxRedemptions: 1 }),
    await at.coupon({
      maxRedemptions: 2,
      discountType: 'fixed',
      discountValue: 5,
      currency: 'USD',
      benefitDurationUnit: 'days',
      benefitDurationValue: 20,
    }),
    await at.coupon({ maxRedemptions: 1, discountValue: 100 }),
  ].map(({ code }) => code as string)
  const people = [at.users.user, at.users.other]
  const request = () => new Request(`${at.origin}/api/checkout`, { headers: { host: new URL(at.origin).host } })

  /** What happened in one history. */
  async function play({ acts, late }: History) {
    await begin()
    const given = new Map<string, number>()
    const trail: string[] = []

    const rows = () => at.tenant.db.select().from(subscriptions).orderBy(subscriptions._id)
    const nth = <T>(list: T[], n: number): T | undefined => list[n % list.length]
    const truths = (...statuses: string[]) => world.truths().filter(({ status }) => statuses.includes(status))

    /** A process to which something happens. The provider is asked by one at a time. */
    function begun(fault: Fault) {
      const death = fault && 'write' in fault ? { at: fault.write, committed: fault.committed } : undefined
      const process = new Mortal(at.tenant, watched, death)
      let questions = 0
      world.own.failing = () => {
        if (process.dead) return 'down'
        if (!fault || 'write' in fault) return
        const question = questions++
        if (fault.stays ? question < fault.at : question !== fault.at) return
        if (fault.dies) process.dead = true
        return fault.vendor === 'refuses' ? { status: 500 } : fault.vendor
      }
      return process
    }

    /** When its last work is done. What died has no leases any more: they run out. */
    async function ended(process: Mortal) {
      world.own.failing = () => undefined
      if (process.dead) await at.tenant.write((tx) => tx.ask('delete from leases'))
    }

    /** Does something in a process to which that happens, or in the one that is there. */
    async function inProcess<T>(
      fault: Fault,
      work: (ctx: Ctx & { process: Mortal }) => Promise<T>,
      { user = people[0]!, privileged = false, there }: { user?: string; privileged?: boolean; there?: Mortal } = {},
    ) {
      const process = there ?? begun(fault)
      const actor = { user, roles: [], privileged, workspace: null, via: 'api-key' as const, scopes: [] }
      try {
        return await work({ ...process.tenant, actor, process })
      } catch (error) {
        if (error instanceof Killed || process.dead) trail.push('  killed')
        else if (error instanceof Problem && error.status !== 500) trail.push(`  ${error.code}`)
        else throw error
      } finally {
        if (!there) await ended(process)
      }
    }

    /** Two requests at once, to one process. */
    async function together(acts: Act[], fault: Fault) {
      const process = begun(fault)
      const all = await Promise.allSettled(acts.map((act) => perform(act, process)))
      await ended(process)
      for (const one of all) if (one.status === 'rejected') throw one.reason
    }

    const deliver = (event: object, fault: Fault = undefined, there?: Mortal) =>
      inProcess(
        fault,
        async (ctx) => {
          const { raw, headers } = await world.sent(event)
          const body = { method: 'POST', body: raw, headers }
          return receive(ctx, world.kind, new Request(`${at.origin}/api/payments/webhooks/${world.kind}`, body))
        },
        { there },
      )

    const drop = (event: object) => world.events.splice(world.events.indexOf(event), 1)

    /** A moment after the period of a subscription. */
    const turn = ({ periodEnd }: { periodEnd: number }) => moveClock(Math.max(now() + 1_000, periodEnd + 1_000))

    async function perform(act: Act, there?: Mortal): Promise<unknown> {
      if (act.do === 'together') return together(act.acts, act.fault)
      if (act.do === 'subscribe') {
        const input = { planId: plan._id, billingCycle: 'monthly' as const, couponCode: coupons[act.coupon] }
        return inProcess(undefined, (ctx) => create(ctx, input), { user: people[act.who], there })
      }
      if (act.do === 'checkout') {
        const waiting = (await rows()).filter(
          ({ status, billableEntityId: id }) => status === 'pending' && id === people[act.who],
        )
        const row = act.of < 0 ? undefined : nth(waiting, act.of)
        const what = row ? { subscriptionId: row._id } : { planId: plan._id, billingCycle: 'monthly' as const }
        const input = { ...what, couponCode: coupons[act.coupon], reset: act.reset }
        const asking = (ctx: Ctx) => checkout(ctx, input, request())
        const answer = await inProcess(act.fault, asking, { user: people[act.who], there })
        if (!(answer?.checkoutUrl ?? answer?.clientToken)) return
        const begun = world.checkoutIn(answer!)
        if (!given.has(begun)) given.set(begun, now())
        // Meanwhile somebody else may have begun another, or canceled this one.
        if (!there) expect([begun, world.isOff(begun)]).toEqual([begun, false])
        return
      }
      if (act.do === 'pay' || act.do === 'decline') {
        const open = nth(
          world.open().filter((one) => now() - (given.get(one) ?? 0) < EXPIRY),
          act.n,
        )
        if (open && act.do === 'pay') world.pay(open, act.trial)
        else if (open) world.decline(open)
        return
      }
      if (act.do === 'renew' || act.do === 'fail') {
        const one = nth(truths('active', 'trialing'), act.n)
        if (one) turn(one)
        if (one) world[act.do](one.id)
        return
      }
      if (act.do === 'recover') {
        const one = nth(truths('past_due'), act.n)
        return one && world.recover(one.id)
      }
      if (act.do === 'end' || act.do === 'schedule') {
        const one = nth(truths('active', 'trialing', 'past_due'), act.n)
        if (one && act.do === 'end') world.end(one.id, act.n)
        else if (one && act.do === 'schedule') world.schedule(one.id, act.ends)
        return
      }
      if (act.do === 'deliver') {
        const event = nth(world.events, act.n)
        if (event && (await deliver(event, act.fault, there)) && !act.twice) drop(event)
        return
      }
      if (act.do === 'lose') {
        const event = nth(world.events, act.n)
        return event && drop(event)
      }
      if (act.do === 'cancel') {
        const row = nth(await rows(), act.n)
        return row && inProcess(act.fault, (ctx) => cancel(ctx, row._id), { user: row.billableEntityId, there })
      }
      if (act.do === 'attach') {
        const row = nth(await rows(), act.n)
        const couponCode = coupons[act.coupon] ?? null
        const attaching = (ctx: Ctx) => setCoupon(ctx, row!._id, { couponCode })
        return row && inProcess(act.fault, attaching, { privileged: true, there })
      }
      await pass(act.hours * HOUR, act.fault, there)
    }

    async function pass(ms: number, fault?: Fault, there?: Mortal) {
      moveClock(now() + ms)
      await inProcess(fault, ({ process }) => runDue(process.tenant), { there })
    }

    const check = async (how: { settled: boolean }) => {
      const { db } = at.tenant
      await countsOf(db)
      await agreement(db, world, how)
    }

    try {
      for (const act of acts) {
        trail.push(JSON.stringify(act))
        await perform(act)
      }
      for (const [n, event] of [...world.events].entries()) if (late[n % late.length]) await deliver(event)
      trail.push('all is well')
      for (const hours of [1.01, 1.01]) await pass(hours * HOUR)
      await check({ settled: false })
      for (const hours of [25, 1.01, 1.01]) await pass(hours * HOUR)
      await check({ settled: true })
    } catch (error) {
      if (error instanceof Error) error.message += `\n${trail.join('\n')}`
      throw error
    }
  }

  async function begin() {
    moveClock(START)
    world.clear()
    await at.tenant.write(async (tx) => {
      for (const table of TABLES) await tx.ask(`delete from ${table}`)
      await tx.ask('update coupons set current_redemptions = 0')
    })
  }

  return { play }
}
