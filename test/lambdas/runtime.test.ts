// engine: sqlite
import { expect, test as testing } from 'bun:test'
import { viewMemory } from '../../src/lambdas/sandbox/quickjs'
import { resetRuntime } from '../../src/lambdas/sandbox/runtime'
import { SandboxRun } from '../../src/lambdas/sandbox/sandbox-run'
import { databaseUrl } from '../storage/engines'

// The sandbox knows nothing of databases, so once is enough.
const test = databaseUrl ? testing.skip : testing

const STACK_AND_DATA = 5 << 20 // bytes at the beginning of the engine's memory
const locals = Array.from({ length: 5_000 }, (_, n) => `a${n} = ${n}`).join()
const nested = (open: string, close: string) => `'${open}'.repeat(10_000) + '${close}'.repeat(10_000)`

const runToEnd = (body: string) =>
  new Promise((ended) => {
    const limits = { time: 300, memory: 64 << 20 }
    new SandboxRun(
      { run: 1, js: `export default () => ${body}`, request: '{}', env: '{}', limits },
      () => {},
      ended,
    ).start()
  })

test('a lambda leaves nothing in the stack and data memory of the engine for the next, however deep it recursed', async () => {
  const occupant = {
    calls: 0,
    timerCount: 0,
    loggedCharacters: 0,
    isOverdue: () => false,
    call() {},
    line() {},
    timer() {},
    end() {},
  }
  const snapshotAfterReset = () => {
    resetRuntime(occupant, 64 << 20)
    return Buffer.from(viewMemory().subarray(0, STACK_AND_DATA))
  }
  const before = snapshotAfterReset()
  for (const body of [
    '1',
    '{ const deep = (n) => 1 + deep(n + 1); return deep(0) }',
    `{ const wide = (n) => { let ${locals}; return a1 + wide(n) }; return wide(0) }`,
    '{ const one = { get of() { return [one.of] } }; return one.of }',
    '{ let p = {}; for (let n = 0; n < 2e4; n++) p = new Proxy(p, {}); return p.x }',
    `JSON.parse(${nested('[', ']')})`,
    `new RegExp(${nested('(', ')')}).test('a')`,
    "/^(a+)+$/.test('a'.repeat(28) + 'b')",
    '(0, eval)("[".repeat(10_000))',
    '{ const sort = () => [2, 1].sort(sort); return sort() }',
    "'a'.replace(/a/g, function again() { return 'a'.replace(/a/g, again) })",
    '{ let text = ""; for (let n = 0; n < 2e4; n++) text = text + n; return text.length }',
  ]) {
    await runToEnd(body)
    expect(snapshotAfterReset().equals(before), body).toBe(true)
  }
})
