import type { ProviderKind } from '../../../src/payments/providers/provider'
import type { Action, Fault, History } from './actions'

const faultAt = (vendor: 'refuses' | 'pays' | 'reports' | 'touches', at: number): Fault => ({
  ...{ vendor, at, stays: false, dies: false },
})
const refusesAt = (at: number) => faultAt('refuses', at)
const paysAt = (at: number) => faultAt('pays', at)
const UNREACHABLE: Fault = { vendor: 'down', at: 0, stays: true, dies: false }

const buy = { do: 'buy', who: 0, trial: false, reset: false } as const
const overdue = { do: 'overdue', n: 0 } as const
const recover = { do: 'recover', n: 0 } as const
const pause = { do: 'pause', n: 0 } as const
const resume = { do: 'resume', n: 0 } as const
const deliver = { do: 'deliver all', reversed: false } as const
const agree = { do: 'agree' } as const
const end = (n: number) => ({ do: 'end', n }) as const
const lose = { do: 'lose all' } as const
const pass = (hours: number, fault?: Fault) => ({ do: 'pass', hours, fault }) as const
const checkout = (of: number, coupon = -1, fault?: Fault) =>
  ({ do: 'checkout', who: 0, of, coupon, reset: false, fault }) as const
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
    ...[end(1), deliver, pass(1), pass(5)],
  ],
  'a pause, its end and a payment': [buy, pause, deliver, pass(80), pass(80), resume, deliver, pass(1)],
  'a pause that is not reported': [buy, pause, lose, pass(1), pass(80), resume, lose, pass(1)],
  'a pause of what was overdue': [buy, overdue, pause, deliver, pass(80), pass(5)],
  'a subscription that is resumed beside another one': [buy, pause, deliver, buy, resume, deliver, pass(1), pass(80)],
  'a trial of a checkout that was abandoned, whose coupon was taken away': [
    ...([
      checkout(-1, 0),
      { do: 'pay', n: 0, trial: true },
      { do: 'attach', n: 0, coupon: -1, fault: undefined },
    ] as const),
    ...([pass(25, UNREACHABLE), { do: 'deliver all', reversed: true }, pass(1)] as const),
  ],
  'a subscription that is resumed beside another one, and becomes overdue': [
    ...[buy, pause, deliver, buy, resume, deliver, overdue, deliver, pass(1), end(1), deliver, pass(1), pass(5)],
  ],
  'a copy that does nothing outside, whose customer pays late': [
    ...([buy, overdue, { do: 'hold', on: true }, pass(80), pass(80), recover, deliver] as const),
    ...([{ do: 'hold', on: false }, pass(1), pass(5)] as const),
  ],
  'a copy that does nothing outside, and a checkout that is paid meanwhile': [
    ...([checkout(-1), { do: 'hold', on: true }, pass(25), pay(0), { do: 'hold', on: false }, pass(1)] as const),
  ],
  'a former checkout that is paid and paused before the provider ends the other one': [
    ...[checkout(-1), checkout(0, 0), pay(0), lose, pay(0), deliver, pause, lose, end(1), deliver, pass(1), pass(5)],
  ],
  'a former checkout that is paid, too, and reported': [
    ...[checkout(-1), checkout(0, 0), pay(0), pay(0), deliver, pass(0), agree, pass(1)],
  ],
  'a former checkout that is paid, too, right before it is canceled': [
    ...[checkout(-1), checkout(0, 0), pay(1), deliver, pass(0, paysAt(1)), lose, pass(1)],
  ],
  ...Object.fromEntries(
    [0, 1, 2].map((at) => [
      `a former checkout that is paid and reported during request ${at} of the next one`,
      [checkout(-1), checkout(0, 0, faultAt('reports', at)), pass(0), pass(1), deliver, pass(1)],
    ]),
  ),
  'a checkout that is paid after an earlier one was paid and became overdue, all unnoticed': [
    ...([checkout(-1), pay(0), checkout(0, 0), { do: 'fail', n: 0 }, pay(0), lose, pass(1), pass(1)] as const),
  ],
  'a checkout that is paid unnoticed after it was abandoned': [
    ...[checkout(-1), pass(25, UNREACHABLE), pay(0), lose, pass(1), pass(5)],
  ],
  ...Object.fromEntries(
    [0, 1, 2, 3].map((at) => [
      `a lost payment after the grace period, and a change during request ${at} of its discovery`,
      [buy, overdue, pass(80, UNREACHABLE), recover, lose, pass(1, faultAt('touches', at)), pass(1)],
    ]),
  ),
  'what waits for an admin and is overdue again': [
    ...[buy, overdue, buy, recover, deliver, pass(0), overdue, overdue, pass(1), pass(80), pass(1)],
  ],
  'a second subscription of an entity that is paid before it is left': [
    ...[checkout(-1), checkout(-1), pay(0), deliver, pay(0), deliver, pass(30), pass(30)],
  ],
  'another subscription instead of the one in force': [buy, { ...buy, reset: true }, pass(1), pass(750)],
}

/** Histories in which the customer would see something else than the provider says, be it for an hour. */
const SEEN: Record<string, Action[]> = {
  'a pause is one at once': [buy, pause, deliver, agree],
  'a pause whose event was lost is found within an hour': [buy, pause, lose, pass(1.01), agree],
  'a paused subscription that ends with its period': [
    buy,
    { do: 'schedule', n: 0, ends: true },
    pause,
    deliver,
    pass(750),
  ],
  'a trial is one at once': [{ ...buy, trial: true }, agree],
  'events in the wrong order': [
    ...([buy, { do: 'fail', n: 0 }, pass(1), recover, { do: 'deliver all', reversed: true }, agree] as const),
  ],
  'an end that is not reported, of what was paid after it was abandoned': [
    ...[checkout(-1), pass(25, UNREACHABLE), pay(0), deliver, pass(1), end(0), lose, pass(1.01), agree],
  ],
  'an overdue payment that arrives': [buy, overdue, pass(1), recover, deliver, agree],
  'an overdue subscription that was replaced is canceled at once': [buy, overdue, pass(0), buy, pass(0), agree],
  'a discount that ends': [checkout(-1, 1), pay(0), deliver, pass(1), pass(500), agree],
  'failures again and again do not prolong the grace period': [
    ...([buy, overdue, pass(40), { do: 'fail again', n: 0 }, deliver, pass(40), pass(1)] as const),
  ],
  'a checkout that was replaced cannot be paid any more': [checkout(-1), checkout(0, 0), pass(0), pass(1)],
}

/** PayPal cannot cancel a subscription only as long as it is not approved. */
const WITH_CHECKOUTS: Record<string, Action[]> = Object.fromEntries(
  [0, 1, 2].map((at) => [
    `an abandoned checkout that is paid right before request ${at} of its cancellation`,
    [checkout(-1), pass(25, UNREACHABLE), pass(1, paysAt(at)), pass(1)],
  ]),
)

export const knownHistories = (kind: ProviderKind) =>
  Object.entries({ ...ACTS, ...SEEN, ...(kind !== 'paypal' && WITH_CHECKOUTS) }).map(
    ([title, acts]): [string, History] => [title, { acts, late: [true] }],
  )
