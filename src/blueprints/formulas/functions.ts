import type jsonata from 'jsonata'
import { FormulaError, jsonataFunctions, type Meter } from './meter'

/** A function as the interpreter represents it. */
type FunctionDefinition = {
  _jsonata_function: true
  implementation: (this: CallContext, ...args: unknown[]) => unknown
  signature?: unknown
}
type CallContext = { environment: { base: { meter: Meter } } }

/** All functions of JSONata except `$eval`, which evaluates texts as expressions. */
export const FUNCTION_NAMES =
  `sum count max min average string substring substringBefore substringAfter lowercase uppercase length
  trim pad match contains replace split join formatNumber formatBase formatInteger parseInteger number floor ceil round abs
  sqrt power random boolean not map zip filter single reduce sift keys lookup append exists spread merge reverse each error
  assert type sort shuffle distinct base64encode base64decode encodeUrlComponent encodeUrl decodeUrlComponent decodeUrl
  toMillis fromMillis clone now millis`
    .split(/\s+/)
    .filter(Boolean)

const lengthOf = (value: unknown) => (typeof value === 'string' || Array.isArray(value) ? value.length : 1)

const chargePicture = (meter: Meter, [, text]: unknown[]) => {
  if (typeof text !== 'string') return
  if (text.length > 200) throw new FormulaError('a picture is too long')
  // A width such as [Y,9999] builds a text of that many characters one by one.
  for (const [width] of text.matchAll(/\d+/g)) meter.spend(8 * Number(width))
}
const chargeSearch = (meter: Meter, [text, part]: unknown[]) => meter.spend((lengthOf(text) * lengthOf(part)) / 64)

const chargeSerialization = (meter: Meter, [value]: unknown[]) => {
  const before = meter.remaining
  meter.chargeFor(value)
  meter.spend(10 * (before - meter.remaining))
}

/** Charges of functions that cost more than the lengths of their arguments. */
const EXTRA_CHARGES: Record<string, (meter: Meter, args: unknown[]) => void> = {
  string: chargeSerialization,
  clone: chargeSerialization,
  pad: (meter, [, width, by]) => meter.spend(Math.abs(Number(width)) * (1 + lengthOf(by))),
  join: (meter, [list, by]) => meter.spend(lengthOf(list) * (2 + lengthOf(by) / 8)),
  replace: (meter, args) => {
    chargeSearch(meter, args)
    meter.spend((lengthOf(args[0]) * lengthOf(args[2])) / 8)
  },
  split: chargeSearch,
  contains: chargeSearch,
  substringBefore: chargeSearch,
  substringAfter: chargeSearch,
  // Each comparison is asynchronous.
  sort: (meter, [list]) => meter.spend(lengthOf(list) * Math.log2(1 + lengthOf(list)) * 30),
  // Compares all pairs.
  distinct: (meter, [list]) => meter.spend(lengthOf(list) ** 2 * 5),
  // Copies the result for each element.
  spread: (meter, [list]) => meter.spend(lengthOf(list) ** 2 / 10),
  formatBase: (meter) => meter.spend(1_000),
  formatNumber: (meter, args) => {
    meter.spend(1_000)
    chargePicture(meter, args)
  },
  formatInteger: chargePicture,
  parseInteger: chargePicture,
  fromMillis: chargePicture,
  now: (meter, [text]) => chargePicture(meter, [0, text]),
  toMillis: (_, [, text]) => {
    // JSONata would turn a picture into a JavaScript regular expression, which can run forever.
    if (text !== undefined)
      throw new FormulaError('$toMillis takes no picture, only times such as 2026-01-31T12:00:00Z')
  },
}

/** Returns the functions of JSONata, each of which is charged before it runs. */
export async function loadMeteredFunctions(make: typeof jsonata): Promise<Map<string, unknown>> {
  const definitions = new Map<string, FunctionDefinition>()
  for (const name of FUNCTION_NAMES) definitions.set(name, await make(`$${name}`).evaluate({}))
  const fromMillis = definitions.get('fromMillis')!.implementation
  definitions.get('millis')!.implementation = function () {
    return this.environment.base.meter.time
  }
  definitions.get('now')!.implementation = function (picture, timezone) {
    return fromMillis.call(this, this.environment.base.meter.time, picture, timezone)
  }
  return new Map<string, unknown>([
    ...[...definitions].map(([name, definition]) => [name, meterFunction(name, definition)] as const),
    ['eval', undefined],
  ])
}

function meterFunction(name: string, definition: FunctionDefinition): FunctionDefinition {
  const { implementation } = definition
  const charge = EXTRA_CHARGES[name]
  function callMetered(this: CallContext, ...args: unknown[]) {
    const { meter } = this.environment.base
    meter.spend(20)
    for (const arg of args) meter.spend(lengthOf(arg))
    charge?.(meter, args)
    return implementation.apply(this, args)
  }
  // The interpreter reads the number and the names of the parameters from these properties.
  Object.defineProperty(callMetered, 'length', { value: implementation.length })
  Object.defineProperty(callMetered, 'toString', { value: () => String(implementation) })
  const wrapped: FunctionDefinition = { ...definition, implementation: callMetered }
  jsonataFunctions.add(wrapped)
  return wrapped
}
