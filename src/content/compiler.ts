import { Busy } from '../storage/errors'
import type { Tenant } from '../tenancy/tenants'
import { Turns } from '../tenancy/turns'
import { type Bounds, compiling, EXCEEDED, type Outcome } from './compiling'

const BOUNDS: Bounds = { memory: 256 << 20, time: 5_000, output: 512 << 10 }
const PATIENCE = 20_000 // ms; so long the contents of one request may keep a turn, in which a megabyte takes two seconds
const FAILURES = 3 // contents of one request that may end the process

const turns = new Turns(2, 50) // each takes a core, and some 40 MB
const script = `(${compiling})(${JSON.stringify(BOUNDS)}, ${JSON.stringify(EXCEEDED)})`

/**
 * Compiles TypeScript and JSX for browsers, in a process that has neither our memory nor our environment: a few lines
 * can make the compiler fold constants until memory or patience end (`enum E { a = 'xx', b = a + a, c = b + b, … }`).
 * Nothing of the content is run or resolved. @throws 503 when too much is being compiled already.
 */
export async function compile(tenant: Tenant, contents: string[]): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (let failures = 0; outcomes.length < contents.length; failures++) {
    if (failures === FAILURES)
      return contents.map((_, at) => outcomes[at] ?? refused('Too much of what came with it cannot be compiled.'))
    outcomes.push(...(await turns.take(tenant, () => run(contents.slice(outcomes.length)))))
    if (outcomes.length < contents.length) outcomes.push(refused('It takes too much time or memory to compile.'))
  }
  return outcomes
}

/** The outcomes until all were told, or one content ended the process. */
async function run(contents: string[]): Promise<Outcome[]> {
  const child = Bun.spawn([process.execPath, '-e', script], {
    // By this the binary is Bun, instead of the program that it carries.
    env: { BUN_BE_BUN: '1', NODE_ENV: 'production', DO_NOT_TRACK: '1', BUN_ENABLE_CRASH_REPORTING: '0' },
    cwd: '/',
    stdin: new Blob([JSON.stringify(contents)]),
    stdout: 'pipe',
    stderr: 'ignore',
    timeout: PATIENCE,
    killSignal: 'SIGKILL',
  })
  const told = await child.stdout.text()
  await child.exited
  // Somebody else ended it: that says nothing about the content.
  if (['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'].includes(`${child.signalCode}`)) throw new Busy()
  if (child.exitCode) throw new Error(`The compiler ended with code ${child.exitCode}.`)
  return told
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Outcome)
}

const refused = (message: string): Outcome => ({ flaws: [{ path: '/content', message }] })
