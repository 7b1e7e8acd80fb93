import fc from 'fast-check'

/**
 * A failure during an action: either of the provider at its nth request, once or from then on, or a crash of the process
 * at its nth write. With `dies` the process also crashes at the request, before or after the provider has handled it.
 * Three things happen meanwhile: a customer `pays` an open checkout right before the request; with `reports`, the provider
 * also reports the payment before it answers; `touches`: our row changes before it answers.
 */
export type Fault =
  | { vendor: 'down' | 'lost' | 'refuses' | 'pays' | 'reports' | 'touches'; at: number; stays: boolean; dies: boolean }
  | { write: number; committed: boolean }
  | undefined

export type Action =
  | { do: 'subscribe'; who: number; coupon: number }
  | { do: 'checkout'; who: number; of: number; coupon: number; reset: boolean; fault: Fault }
  | { do: 'pay'; n: number; trial: boolean }
  | { do: 'decline'; n: number }
  | { do: 'renew'; n: number }
  | { do: 'fail'; n: number }
  /** Another attempt to collect an overdue payment fails. */
  | { do: 'fail again'; n: number }
  | { do: 'recover'; n: number }
  | { do: 'end'; n: number }
  | { do: 'schedule'; n: number; ends: boolean }
  | { do: 'pause'; n: number }
  | { do: 'resume'; n: number }
  | { do: 'deliver'; n: number; twice: boolean; fault: Fault }
  | { do: 'lose'; n: number }
  | { do: 'cancel'; n: number; fault: Fault }
  | { do: 'attach'; n: number; coupon: number; fault: Fault }
  | { do: 'pass'; hours: number; fault: Fault }
  | { do: 'together'; acts: Action[]; fault: Fault }
  /** A checkout that is paid, and reported. With `reset` it replaces what is in force. */
  | { do: 'buy'; who: number; trial: boolean; reset: boolean }
  /** The next period is not paid, and that is reported. */
  | { do: 'overdue'; n: number }
  /** `reversed`: the last event arrives first. */
  | { do: 'deliver all'; reversed: boolean }
  | { do: 'lose all' }
  /** The tenant becomes a copy that does nothing outside, or no longer is one. */
  | { do: 'hold'; on: boolean }
  /** Expects that both sides agree already, before any job has asked the provider. */
  | { do: 'agree' }

const index = fc.nat(5)
const coupon = fc.oneof({ weight: 3, arbitrary: fc.constant(-1) }, { weight: 2, arbitrary: fc.nat(2) })
/** Prefers small indexes, because requests have few steps; only jobs reach the larger ones. */
const mostlySmall = (most: number) =>
  fc.oneof({ weight: 3, arbitrary: fc.nat(2) }, { weight: 1, arbitrary: fc.nat(most) })
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  {
    weight: 2,
    arbitrary: fc.record({
      vendor: fc.constantFrom('down', 'lost', 'refuses'),
      at: mostlySmall(6),
      stays: fc.boolean(),
      dies: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ write: mostlySmall(12), committed: fc.boolean() }) },
)

const actionOf = <Name extends Action['do'], More extends object>(
  name: Name,
  more: { [Key in keyof More]: fc.Arbitrary<More[Key]> },
) => fc.record({ do: fc.constant(name), ...more }) as unknown as fc.Arbitrary<Action>

const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 1, arbitrary: actionOf('subscribe', { who: fc.nat(1), coupon }) },
  {
    weight: 4,
    arbitrary: actionOf('checkout', {
      who: fc.nat(1),
      of: fc.integer({ min: -1, max: 3 }),
      coupon,
      reset: fc.boolean(),
      fault,
    }),
  },
  { weight: 4, arbitrary: actionOf('pay', { n: index, trial: fc.boolean() }) },
  { weight: 1, arbitrary: actionOf('decline', { n: index }) },
  { weight: 2, arbitrary: actionOf('renew', { n: index }) },
  { weight: 2, arbitrary: actionOf('fail', { n: index }) },
  { weight: 1, arbitrary: actionOf('recover', { n: index }) },
  { weight: 1, arbitrary: actionOf('fail again', { n: index }) },
  { weight: 1, arbitrary: actionOf('end', { n: index }) },
  { weight: 1, arbitrary: actionOf('schedule', { n: index, ends: fc.boolean() }) },
  { weight: 2, arbitrary: actionOf('pause', { n: index }) },
  { weight: 2, arbitrary: actionOf('resume', { n: index }) },
  { weight: 7, arbitrary: actionOf('deliver', { n: index, twice: fc.boolean(), fault }) },
  { weight: 2, arbitrary: actionOf('lose', { n: index }) },
  { weight: 2, arbitrary: actionOf('cancel', { n: index, fault }) },
  { weight: 4, arbitrary: actionOf('buy', { who: fc.nat(1), trial: fc.boolean(), reset: fc.boolean() }) },
  { weight: 2, arbitrary: actionOf('overdue', { n: index }) },
  { weight: 2, arbitrary: actionOf('deliver all', { reversed: fc.boolean() }) },
  { weight: 1, arbitrary: actionOf('lose all', {}) },
  { weight: 1, arbitrary: actionOf('hold', { on: fc.boolean() }) },
  { weight: 2, arbitrary: actionOf('attach', { n: index, coupon, fault }) },
  { weight: 3, arbitrary: actionOf('pass', { hours: fc.constantFrom(0, 1, 5, 25, 80, 750), fault }) },
)

/** Actions in sequence or two at once, and which of the remaining events are delivered in the end. */
export const histories = fc.record({
  acts: fc.array(
    fc.oneof(
      { weight: 8, arbitrary: action },
      { weight: 1, arbitrary: actionOf('together', { acts: fc.array(action, { minLength: 2, maxLength: 2 }), fault }) },
    ),
    { minLength: 6, maxLength: 28, size: 'max' },
  ),
  late: fc.array(fc.boolean(), { minLength: 1, maxLength: 6 }),
})
export type History = { acts: Action[]; late: boolean[] }
