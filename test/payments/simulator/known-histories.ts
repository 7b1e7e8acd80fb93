import type { ProviderKind } from '../../../src/payments/providers/provider'
import type { Action, Fault, History } from './actions'

const refusesAt = (at: number): Fault => ({ vendor: 'refuses', at, stays: false, dies: false })
const paysAt = (at: number): Fault => ({ vendor: 'pays', at, stays: false, dies: false })
const UNREACHABLE: Fault = { vendor: 'down', at: 0, stays: true, dies: false }

const buy = { do: 'buy', who: 0, trial: false, reset: false } as const
const overdue = { do: 'overdue', n: 0 } as const
const recover = { do: 'recover', n: 0 } as const
const pause = { do: 'pause', n: 0 } as const
const resume = { do: 'resume', n: 0 } as const
const deliver = { do: 'deliver all' } as const
const lose = { do: 'lose all' } as const
const pass = (hours: number, fault?: Fault) => ({ do: 'pass', hours, fault }) as const
const checkout = (of: number, coupon = -1) =>
  ({ do: 'checkout', who: 0, of, coupon, reset: false, fault: undefined }) as const
const pay = (n: number) => ({ do: 'pay', n, trial: false }) as const

/** Histories in which somebody paid for what an earlier version, or one without a check of today, cancels. */
const ACTS: Record<string, Action[]> = {
  'an overdue subscription is paid beside the one that replaced it': [buy, overdue, buy, recover, pass(1), pass(5)],
  'a lost payment within the grace period': [buy, overdue, recover, lose, pass(80)],
  ...Object.fromEntries(
    [0, 1, 2, 3].map((at) => [
      `a lost payment, and no answer to request ${at} when the grace period ends`,
      [buy, overdue, recover, lose, pass(80, refusesAt(at)), pass(1)],
    ]),
  ),
  'a payment after the grace period, while the provider cannot be reached': [
    ...[buy, overdue, pass(80, UNREACHABLE), recover, pass(1), pass(5)],
  ],
  'a checkout that is paid after it was abandoned': [checkout(-1), pass(25, UNREACHABLE), pay(0), pass(1), pass(5)],
  'a former checkout that is paid, too, before the provider ends the other one': [
    ...[checkout(-1), checkout(0, 0), pay(0), lose, pay(0), deliver],
    ...([{ do: 'end', n: 1 }, deliver, pass(1), pass(5)] as const),
  ],
  'a pause, its end and a payment': [buy, pause, deliver, pass(80), pass(80), resume, deliver, pass(1)],
  'a pause that is not reported': [buy, pause, lose, pass(1), pass(80), resume, lose, pass(1)],
  'a pause of what was overdue': [buy, overdue, pause, deliver, pass(80), pass(5)],
  'a subscription that is resumed beside another one': [buy, pause, deliver, buy, resume, deliver, pass(1), pass(80)],
  'a copy that does nothing outside, whose customer pays late': [
    ...([buy, overdue, { do: 'hold', on: true }, pass(80), pass(80), recover, deliver] as const),
    ...([{ do: 'hold', on: false }, pass(1), pass(5)] as const),
  ],
  'a copy that does nothing outside, and a checkout that is paid meanwhile': [
    ...([checkout(-1), { do: 'hold', on: true }, pass(25), pay(0), { do: 'hold', on: false }, pass(1)] as const),
  ],
  'another subscription instead of the one in force': [buy, { ...buy, reset: true }, pass(1), pass(750)],
}

/** PayPal cannot cancel a subscription only as long as it is not approved. */
const WITH_CHECKOUTS: Record<string, Action[]> = Object.fromEntries(
  [0, 1, 2].map((at) => [
    `an abandoned checkout that is paid right before request ${at} of its cancellation`,
    [checkout(-1), pass(25, UNREACHABLE), pass(1, paysAt(at)), pass(1)],
  ]),
)

export const knownHistories = (kind: ProviderKind) =>
  Object.entries(kind === 'paypal' ? ACTS : { ...ACTS, ...WITH_CHECKOUTS }).map(([title, acts]): [string, History] => [
    title,
    { acts, late: [true] },
  ])
