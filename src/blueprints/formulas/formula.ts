import type jsonata from 'jsonata'
import { meteredFunctions } from './functions'
import { functions, type Meter, Unfit } from './meter'
import { Engine, prepare } from './regex'

/** The expression of a computed field. */
export type Formula = {
  /** What it makes of an entity; undefined for nothing. @throws Unfit, with the end of a sentence */
  of(entity: object, meter: Meter): Promise<unknown>
  /** All that it calls by name: properties, and parts of them. */
  names: Set<string>
}

type Node = { type?: string; value?: unknown; position?: number }
type Base = { meter?: Meter; RegexEngine: unknown }
type Environment = { base: Base; lookup(name: string): unknown }
type Failure = { code?: string; message?: string; position?: number; value?: unknown; value2?: unknown }

const DEPTH = 400 // evaluations within each other
const LIST = 5_000 // values that the interpreter collects
const NODE = 100 // steps for each part of an expression
const MAKERS = ['lambda', 'partial', 'transform'] // parts of an expression whose value is a function
// No variable of an expression can be called so.
const METER = ' meter'
const [ENTRY, EXIT] = ['jsonata.__evaluate_entry', 'jsonata.__evaluate_exit'].map((name) => Symbol.for(name))

/** What is wrong with the text of an expression, by JSONata's codes. */
const FLAWS: Record<string, string> = {
  S0101: 'a text has no closing quote',
  S0102: 'a number is too large',
  S0103: 'a backslash stands before a character that needs none',
  S0104: 'after \\u four hexadecimal digits are needed',
  S0105: 'a name has no closing backtick',
  S0106: 'a comment has no end',
  S0201: 'something stands where nothing can follow',
  S0202: 'something else is needed here',
  S0203: 'something is missing before its end',
  S0204: 'it has an operator that is unknown',
  S0207: 'it ends too early',
  S0211: 'something stands where a value has to be',
  S0301: 'a regular expression is empty',
  S0302: 'a regular expression has no closing slash',
}

let loaded: Promise<{ make: typeof jsonata; known: Map<string, unknown> }> | undefined

/** JSONata is loaded when the first formula is. */
async function load() {
  const { default: make } = await import('jsonata')
  return { make, known: await meteredFunctions(make) }
}

/**
 * Makes an expression ready. Whoever may define blueprints may write any, and it runs where everybody's requests do, so
 * all that it does is paid for from a budget: by its parts, its functions, its patterns and the size of its values.
 * @throws Unfit for one that makes no sense
 */
export async function formula(text: string): Promise<Formula> {
  loaded ??= load()
  const { make, known } = await loaded
  let expression: jsonata.Expression
  const names = new Set<string>()
  try {
    expression = make(text, { stack: DEPTH, sequence: LIST })
    for (const node of nodes(expression.ast())) {
      if (node.type === 'name') names.add(`${node.value}`)
      if (node.type === 'regex') prepare(node.value as RegExp)
      if (node.type === 'variable' && node.value === 'eval') throw new Unfit('$eval is not taken here')
    }
  } catch (error) {
    const { code = '', message, position } = error as Failure
    const flaw = code.startsWith('S') ? (FLAWS[code] ?? 'it is not written as JSONata has it') : message
    throw new Unfit(`${flaw ?? 'it makes no sense'}${position ? ` (at character ${position})` : ''}`)
  }
  const assign = expression.assign as (name: string | symbol, value: unknown) => void
  for (const [name, definition] of known) assign(name, definition)
  assign(ENTRY!, (node: Node, input: unknown, { base, lookup }: Environment) => {
    if (!base.meter) {
      base.meter = lookup(METER) as Meter
      base.RegexEngine = Engine.bind(null, base.meter)
    }
    base.meter.spend(NODE)
    // They would take a function apart.
    if ((node.type === 'wildcard' || node.type === 'descendant') && functions.has(input as object))
      throw new Unfit('functions have no parts')
  })
  assign(EXIT!, ({ type }: Node, _: unknown, { base }: Environment, result: unknown) => {
    if (result && MAKERS.includes(type!)) functions.add(result as object)
    base.meter!.weigh(result)
  })
  return {
    names,
    async of(entity, meter) {
      try {
        return plain(await expression.evaluate(entity, { [METER]: meter }))
      } catch (error) {
        throw error instanceof Unfit ? error : new Unfit(reason(error as Failure))
      }
    },
  }
}

/** Without what the interpreter notes on its lists, and without what JSON has no word for. */
function plain(value: unknown) {
  if (typeof value === 'function' || (typeof value === 'object' && value && functions.has(value)))
    throw new Unfit('a function is no value')
  return typeof value === 'object' && value ? JSON.parse(JSON.stringify(value)) : (value ?? undefined)
}

/** What went wrong, but for values, which not everybody may read who is told. */
function reason({ code, message, value, value2 }: Failure) {
  if (code === 'D1011') return 'it is nested too deep'
  if (code === 'D3137' || code === 'D3141') return String(message).slice(0, 300) // the expression’s own words
  return code && message && ![value, value2].some((one) => tells(message, one))
    ? message.slice(0, 300)
    : 'the values do not fit'
}

function tells(message: string, value: unknown) {
  try {
    return value !== undefined && message.includes(JSON.stringify(value))
  } catch {
    return true // of functions, which lead back to themselves
  }
}

function* nodes(node: unknown, seen = new Set<unknown>()): Generator<Node> {
  if (node === null || typeof node !== 'object' || node instanceof RegExp || seen.has(node)) return
  seen.add(node)
  yield node as Node
  for (const part of Object.values(node)) yield* nodes(part, seen)
}
