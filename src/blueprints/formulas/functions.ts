import type jsonata from 'jsonata'
import { functions, type Meter, Unfit } from './meter'

/** A function as the interpreter knows it. */
type Definition = {
  _jsonata_function: true
  implementation: (this: Focus, ...args: unknown[]) => unknown
  signature?: unknown
}
type Focus = { environment: { base: { meter: Meter } } }

/** All that JSONata brings but `$eval`, which would make expressions of texts. */
export const names =
  `sum count max min average string substring substringBefore substringAfter lowercase uppercase length
  trim pad match contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs
  sqrt power random boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error
  assert type sort shuffle distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl
  toMillis fromMillis clone now millis`
    .split(/\s+/)
    .filter(Boolean)

const length = (value: unknown) => (typeof value === 'string' || Array.isArray(value) ? value.length : 1)

const picture = (meter: Meter, [, text]: unknown[]) => {
  if (typeof text !== 'string') return
  if (text.length > 200) throw new Unfit('a picture is too long')
  // A width such as [Y,9999] makes a text of that many characters, one by one.
  for (const [width] of text.matchAll(/\d+/g)) meter.spend(8 * Number(width))
}
const searching = (meter: Meter, [text, part]: unknown[]) => meter.spend((length(text) * length(part)) / 64)

const writing = (meter: Meter, [value]: unknown[]) => {
  const before = meter.left
  meter.weigh(value)
  meter.spend(10 * (before - meter.left))
}

/** What takes more than the lengths of its arguments. */
const extra: Record<string, (meter: Meter, args: unknown[]) => void> = {
  string: writing,
  clone: writing,
  pad: (meter, [, width, by]) => meter.spend(Math.abs(Number(width)) * (1 + length(by))),
  join: (meter, [list, by]) => meter.spend(length(list) * (2 + length(by) / 8)),
  replace: (meter, args) => {
    searching(meter, args)
    meter.spend((length(args[0]) * length(args[2])) / 8)
  },
  split: searching,
  contains: searching,
  substringBefore: searching,
  substringAfter: searching,
  // Each comparison waits for a turn.
  sort: (meter, [list]) => meter.spend(length(list) * Math.log2(1 + length(list)) * 30),
  // Compares each with each.
  distinct: (meter, [list]) => meter.spend(length(list) ** 2 * 5),
  // Adds each to a copy of those before it.
  spread: (meter, [list]) => meter.spend(length(list) ** 2 / 10),
  formatBase: (meter) => meter.spend(1_000),
  formatNumber: (meter, args) => {
    meter.spend(1_000)
    picture(meter, args)
  },
  formatInteger: picture,
  parseInteger: picture,
  fromMillis: picture,
  now: (meter, [text]) => picture(meter, [0, text]),
  toMillis: (_, [, text]) => {
    // It would become a regular expression of JavaScript's, which can run forever.
    if (text !== undefined) throw new Unfit('$toMillis takes no picture, only times such as 2026-01-31T12:00:00Z')
  },
}

/** The functions of JSONata, each of which pays for what it does before it does it. */
export async function meteredFunctions(make: typeof jsonata): Promise<Map<string, unknown>> {
  const found = new Map<string, Definition>()
  for (const name of names) found.set(name, await make(`$${name}`).evaluate({}))
  const fromMillis = found.get('fromMillis')!.implementation
  found.get('millis')!.implementation = function () {
    return this.environment.base.meter.time
  }
  found.get('now')!.implementation = function (picture, timezone) {
    return fromMillis.call(this, this.environment.base.meter.time, picture, timezone)
  }
  return new Map<string, unknown>([
    ...[...found].map(([name, definition]) => [name, metered(name, definition)] as const),
    ['eval', undefined],
  ])
}

function metered(name: string, definition: Definition): Definition {
  const { implementation } = definition
  const charge = extra[name]
  function paying(this: Focus, ...args: unknown[]) {
    const { meter } = this.environment.base
    meter.spend(20)
    for (const arg of args) meter.spend(length(arg))
    charge?.(meter, args)
    return implementation.apply(this, args)
  }
  // The interpreter reads from these how many arguments there are, and what they are called.
  Object.defineProperty(paying, 'length', { value: implementation.length })
  Object.defineProperty(paying, 'toString', { value: () => String(implementation) })
  const made: Definition = { ...definition, implementation: paying }
  functions.add(made)
  return made
}
