// engine: sqlite
import { expect, test } from 'bun:test'
import { compileFormula } from '../../src/blueprints/formulas/formula'
import { FUNCTION_NAMES } from '../../src/blueprints/formulas/functions'
import { FormulaError, Meter } from '../../src/blueprints/formulas/meter'
import { seededRandom } from './seeded-random'

const entity = {
  text: 'a'.repeat(999),
  long: 'a'.repeat(900_000),
  list: Array.from({ length: 2_000 }, (_, n) => n),
  // These have the shape of functions of the interpreter.
  forged: { _jsonata_lambda: true, body: { type: 'string', value: 'x' }, arguments: [] },
  native: { _jsonata_function: true, implementation: 'x' },
}

const evaluate = async (text: string) => (await compileFormula(text)).evaluate(entity, new Meter())
const outcomeOf = (text: string) =>
  evaluate(text).then(
    (result) => `made ${JSON.stringify(result)?.slice(0, 100)}`,
    (error) => (error instanceof FormulaError ? 'refused' : error),
  )

test('the list of metered functions has every function of JSONata except eval', async () => {
  const source = await Bun.file('node_modules/jsonata/jsonata.js').text()
  const bound = [...source.matchAll(/(?:staticFrame|environment)\.bind\('(\w+)'/g)].map(([, name]) => name!)
  expect(bound.toSorted()).toEqual([...FUNCTION_NAMES, 'eval'].toSorted())
})

test.each([
  '($f := function() { $f() }; $f())',
  '($f := function($n) { 1 + $f($n + 1) }; $f(1))',
  '($f := function($a) { $g($a) }; $g := function($a) { $f($a) }; $f(1))',
  '($f := function($s, $n) { $n = 0 ? $s : $f($s & $s, $n - 1) }; $f("x", 60))',
  '($f := function($s, $n) { $n = 0 ? $s : $f({"a": $s, "b": $s}, $n - 1) }; $string($f(1, 60)))',
  '($f := function($s, $n) { $n = 0 ? $s : $f([[$s], [$s]], $n - 1) }; $f(1, 60) = $f(1, 60))',
  '$reduce([1..60], function($a) { $a & $a }, "x")',
  '[1..10000000]',
  '[1..5001]',
  '$map([1..5000], function($x) { [1..5000] })',
  'list@$a.list@$b.list@$c.{"x": $a}',
  '$map(list, function($x) { $map(list, function($y) { $x * $y }) })',
  '**.**.**.**',
  '$distinct(list)',
  '$pad("", 500000000)',
  '$pad("x", -1e300, "ab")',
  '$pad("x", 1000, long)',
  '$join($split(long, ""), "x")',
  '$join(list, long)',
  '$replace(text, "a", long)',
  '$contains(long, $substring(long, 0, 400000) & "b")',
  '$substringBefore(long, $substring(long, 0, 400000) & "b")',
  '$match(text, /a.*c|a/)',
  '$contains(long, /a/)',
  '$split(text, /a?/)',
  '$toMillis("11111111111111111111111x", "[Y][Y][Y][Y][Y][Y][Y][Y]")',
  '$fromMillis(1, "[Y,99999999]")',
  '$now("[Y,99999999]")',
  '$formatInteger(100000000, "I")',
  '$formatNumber(1, $pad("", 300, "0"))',
  '$sort($append(list, $append(list, list)), function($a, $b) { $a < $b })',
  '$ ~> | $ | {"self": $} |',
])('rejects a formula that costs too much: %s', async (text) => {
  expect(await outcomeOf(text)).toBe('refused')
})

test.each([
  '$eval',
  '$string.*',
  '$string.implementation.constructor("return 1")()',
  '$spread($string)',
  '[$string].**',
  '{"a": $string}.a',
  '$merge([$string])',
  '$lookup($string, "implementation")',
  '{"_jsonata_lambda": true, "apply": $string}',
  'function($g) { {"_jsonata_lambda": true, "apply": $g} }($uppercase)',
  'forged()',
  'native()',
  '$map(list, forged)',
  '$map',
  'function($x) { $x }',
  '/a/("a")',
  '$uppercase(?)',
])('a formula that returns or forges a function is rejected or yields nothing: %s', async (text) => {
  expect(await outcomeOf(text).catch(() => 'refused')).toBeOneOf(['refused', 'made undefined'])
})

test.each(['constructor', '$.constructor', '$$.__proto__', '__proto__.toString', '"".constructor', 'list.constructor'])(
  'a formula sees only own properties of an entity: %s',
  async (text) => {
    expect(await evaluate(text)).toBeUndefined()
  },
)

test('formulas change neither Object.prototype nor the functions of later formulas', async () => {
  const before = Object.getOwnPropertyNames(Object.prototype)
  for (const text of [
    '{"__proto__": {"polluted": 1}}',
    '$merge([{"__proto__": {"polluted": 1}}])',
    '$ ~> | $ | {"__proto__": {"polluted": 1}} |',
    '$ ~> | __proto__ | {"polluted": 1} |',
    '[{"k": "__proto__", "v": 1}]{ k: {"polluted": v} }',
    '($constructor := 1; $string := 2; $toString := 3)',
  ])
    await outcomeOf(text)
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before)
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  expect(await evaluate('$string(1)')).toBe('1')
})

test('a formula does not change its entity', async () => {
  const before = structuredClone(entity)
  await evaluate('$count($ ~> | forged | {"changed": true} |)')
  await evaluate('($append(list, 1); $sort(list); $reverse(list); 1)')
  expect(entity).toEqual(before)
})

test('formulas of one write share a budget, and each write has its own', async () => {
  const [formula, meter] = [await compileFormula('$count($map(list, function($x) { $x + 1 }))'), new Meter()]
  const countRuns = async (meter: () => Meter) => {
    for (let n = 1; n <= 20; n++) if ((await formula.evaluate(entity, meter()).catch(() => 0)) !== 2_000) return n
    return 'all'
  }
  expect(await countRuns(() => new Meter())).toBe('all')
  expect(await countRuns(() => meter)).toBeNumber()
})

test('an evaluation pauses for others whenever it has spent a part of its budget, and has the same result', async () => {
  const formula = await compileFormula('$sum([1..60].($x := $; $sum([1..60].($ * $x))))')
  const meter = new Meter()
  let pauses = 0
  meter.pause = async () => {
    pauses++
    await new Promise(setImmediate)
  }
  expect(await formula.evaluate({}, meter)).toBe(1830 * 1830)
  expect(pauses).toBeWithin(5, 21)
  const cheap = new Meter()
  cheap.pause = () => Promise.reject(new Error('A cheap formula does not pause.'))
  expect(await (await compileFormula('$sum([1..20])')).evaluate({}, cheap)).toBe(210)
})

test('concurrent evaluations of one formula for many entities do not mix', async () => {
  const double = await compileFormula('($slow := $map([1..10], function($x) { $x }); n * 2)')
  const all = Array.from({ length: 200 }, (_, n) => double.evaluate({ n }, new Meter()))
  expect(await Promise.all(all)).toEqual(Array.from({ length: 200 }, (_, n) => n * 2))
})

test('a rejected costly formula does not affect cheap formulas that run at the same time', async () => {
  const [endless, cheap] = [await compileFormula('($f := function() { $f() }; $f())'), await compileFormula('1 + 1')]
  const [costly, ...cheapOnes] = await Promise.allSettled([
    endless.evaluate({}, new Meter()),
    ...Array.from({ length: 10 }, () => cheap.evaluate({}, new Meter())),
  ])
  expect(costly!.status).toBe('rejected')
  for (const result of cheapOnes) expect(result).toEqual({ status: 'fulfilled', value: 2 })
})

test('a result is plain data without the properties that the interpreter adds to lists', async () => {
  const made = (await evaluate('list[[0..2]]')) as number[]
  expect([made, Object.getOwnPropertyNames(made)]).toEqual([
    [0, 1, 2],
    ['0', '1', '2', 'length'],
  ])
  expect(await evaluate('{"a": nowhere, "b": 1}')).toEqual({ b: 1 })
})

test('random expressions yield a value or are rejected with a FormulaError', async () => {
  const { pick } = seededRandom(7)
  const parts = [
    ...FUNCTION_NAMES.map((name) => `$${name}`),
    ...['text', 'list', 'forged', '"x"', '1', '0', '-1', '1e9', 'null', 'true', '[', ']', '{', '}', '(', ')', '(', ')'],
    ...[
      '+',
      '-',
      '*',
      '/',
      '%',
      '&',
      '=',
      '!=',
      '<',
      'in',
      'and',
      '~>',
      '.',
      '..',
      ':',
      ':=',
      '?',
      ',',
      ';',
      '|',
      '^',
      '@$v',
    ],
    ...['function($x){', '$x', '$', '$$', '**', '/a+/', '#$i', '`a b`', '"k":', '[0]', '\\', '\u0000', '😀'],
  ]
  for (let n = 0; n < 3_000; n++) {
    const text = Array.from({ length: 1 + (n % 12) }, () => pick(parts)).join(n % 3 ? ' ' : '')
    const outcome = await outcomeOf(text)
    expect(outcome, text).toBeString()
  }
})
