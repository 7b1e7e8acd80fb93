import type jsonata from 'jsonata'
import { loadMeteredFunctions } from './functions'
import { FormulaError, jsonataFunctions, type Meter } from './meter'
import { compilePattern, MeteredRegExp } from './regex'

/** The expression of a computed field. */
export type Formula = {
  /** Returns the value for an entity, or undefined. @throws FormulaError whose message is the end of a sentence */
  evaluate(entity: object, meter: Meter): Promise<unknown>
  /** All names in the expression: properties, and parts of them. */
  referencedNames: Set<string>
}

type AstNode = { type?: string; value?: unknown; position?: number }
type Base = { meter?: Meter; RegexEngine: unknown }
type Environment = { base: Base; lookup(name: string): unknown }
type JsonataError = { code?: string; message?: string; position?: number; value?: unknown; value2?: unknown }

const MAX_EVALUATION_DEPTH = 400 // nested evaluations
const MAX_SEQUENCE_LENGTH = 5_000 // values in one sequence of the interpreter
const STEPS_PER_NODE = 100 // steps for each evaluated node
const FUNCTION_NODE_TYPES = ['lambda', 'partial', 'transform'] // nodes whose value is a function
// No variable of an expression can have a name with a space.
const METER_VARIABLE = ' meter'
const [EVALUATE_ENTRY, EVALUATE_EXIT] = ['jsonata.__evaluate_entry', 'jsonata.__evaluate_exit'].map((name) =>
  Symbol.for(name),
)

/** Messages for syntax errors, by JSONata's codes. */
const SYNTAX_ERROR_MESSAGES: Record<string, string> = {
  S0101: 'a string has no closing quote',
  S0102: 'a number is too large',
  S0103: 'a backslash is followed by an unsupported character',
  S0104: '\\u must be followed by four hexadecimal digits',
  S0105: 'a name has no closing backtick',
  S0106: 'a comment is not closed',
  S0201: 'there is unexpected text after the expression',
  S0202: 'another token is expected here',
  S0203: 'a token is missing before its end',
  S0204: 'it uses an unknown operator',
  S0207: 'it ends unexpectedly',
  S0211: 'a value is expected here',
  S0301: 'a regular expression is empty',
  S0302: 'a regular expression has no closing slash',
}

let jsonataPromise: Promise<{ make: typeof jsonata; known: Map<string, unknown> }> | undefined

/** Loads JSONata when the first formula is compiled. */
async function loadJsonata() {
  const { default: make } = await import('jsonata')
  return { make, known: await loadMeteredFunctions(make) }
}

/**
 * Compiles an expression. It may be any expression, and it runs in the process that serves all tenants, so everything
 * that it does is charged to a budget (`Meter`): its nodes, functions, patterns and the size of its values.
 * @throws FormulaError when the expression is invalid
 */
export async function compileFormula(text: string): Promise<Formula> {
  jsonataPromise ??= loadJsonata()
  const { make, known: builtInFunctions } = await jsonataPromise
  let expression: jsonata.Expression
  const names = new Set<string>()
  try {
    expression = make(text, { stack: MAX_EVALUATION_DEPTH, sequence: MAX_SEQUENCE_LENGTH })
    for (const node of iterateNodes(expression.ast())) {
      if (node.type === 'name') names.add(`${node.value}`)
      if (node.type === 'regex') compilePattern(node.value as RegExp)
      if (node.type === 'variable' && node.value === 'eval') throw new FormulaError('$eval is not supported')
    }
  } catch (error) {
    const { code = '', message, position } = error as JsonataError
    const reasonText = code.startsWith('S') ? (SYNTAX_ERROR_MESSAGES[code] ?? 'it is not valid JSONata') : message
    throw new FormulaError(`${reasonText ?? 'it is invalid'}${position ? ` (at character ${position})` : ''}`)
  }
  const assign = expression.assign as (name: string | symbol, value: unknown) => void
  for (const [name, definition] of builtInFunctions) assign(name, definition)
  assign(EVALUATE_ENTRY!, (node: AstNode, input: unknown, { base, lookup }: Environment) => {
    if (!base.meter) {
      base.meter = lookup(METER_VARIABLE) as Meter
      base.RegexEngine = MeteredRegExp.bind(null, base.meter)
    }
    base.meter.spend(STEPS_PER_NODE)
    // These would expose the internals of a function.
    if ((node.type === 'wildcard' || node.type === 'descendant') && jsonataFunctions.has(input as object))
      throw new FormulaError('functions have no properties')
    return base.meter.pauseIfDue() // which the interpreter awaits
  })
  assign(EVALUATE_EXIT!, ({ type }: AstNode, _: unknown, { base }: Environment, result: unknown) => {
    if (result && FUNCTION_NODE_TYPES.includes(type!)) jsonataFunctions.add(result as object)
    base.meter!.chargeFor(result)
  })
  return {
    referencedNames: names,
    async evaluate(entity, meter) {
      try {
        return toPlainValue(await expression.evaluate(entity, { [METER_VARIABLE]: meter }))
      } catch (error) {
        throw error instanceof FormulaError ? error : new FormulaError(describeError(error as JsonataError))
      }
    },
  }
}

/** Returns a plain JSON value, without the properties that the interpreter adds to lists. @throws FormulaError */
function toPlainValue(value: unknown) {
  if (typeof value === 'function' || (typeof value === 'object' && value && jsonataFunctions.has(value)))
    throw new FormulaError('a function is not a value')
  return typeof value === 'object' && value ? JSON.parse(JSON.stringify(value)) : (value ?? undefined)
}

/** Returns an error message without values, which the caller may not be allowed to read. */
function describeError({ code, message, value, value2 }: JsonataError) {
  if (code === 'D1011') return 'it is nested too deep'
  if (code === 'D3137' || code === 'D3141') return String(message).slice(0, 300) // written by the expression
  return code && message && ![value, value2].some((secret) => revealsValue(message, secret))
    ? message.slice(0, 300)
    : 'the values do not fit the expression'
}

function revealsValue(message: string, value: unknown) {
  try {
    return value !== undefined && message.includes(JSON.stringify(value))
  } catch {
    return true // functions contain circular references
  }
}

function* iterateNodes(node: unknown, seen = new Set<unknown>()): Generator<AstNode> {
  if (node === null || typeof node !== 'object' || node instanceof RegExp || seen.has(node)) return
  seen.add(node)
  yield node as AstNode
  for (const part of Object.values(node)) yield* iterateNodes(part, seen)
}
