import type { PublicCtx } from '../accounts/context'
import { toWorkOwner } from '../accounts/work-owner'
import { FairShare } from '../core/fair-share'
import { Busy } from '../storage/errors'
import { type CompileLimits, type CompileOutcome, LIMIT_SIGNAL, runCompilerProcess } from './compiler-process'

const COMPILE_LIMITS: CompileLimits = { memoryBytes: 256 << 20, timeMs: 5_000, outputCharacters: 512 << 10 }
const PROCESS_TIMEOUT_MS = 20_000 // ms per request; a megabyte takes about two seconds
const MAX_FAILURES_PER_REQUEST = 3 // contents of one request that may crash the process

const compilerShare = new FairShare({
  running: { total: 2 }, // each takes a core and about 40 MB
  waiting: { perTenant: 50 },
  turnMs: 200,
})
const compilerScript = `(${runCompilerProcess})(${JSON.stringify(COMPILE_LIMITS)}, ${JSON.stringify(LIMIT_SIGNAL)})`

/**
 * Compiles TypeScript and JSX for browsers, in a process without the server's memory and environment: a few lines can
 * make the compiler fold constants until time or memory run out (`enum E { a = 'xx', b = a + a, c = b + b, … }`). The
 * content is never run, and its imports are not resolved. @throws 503 when too many requests are waiting
 */
export async function compile(ctx: PublicCtx, contents: string[]): Promise<CompileOutcome[]> {
  const outcomes: CompileOutcome[] = []
  for (let failures = 0; outcomes.length < contents.length; failures++) {
    if (failures === MAX_FAILURES_PER_REQUEST)
      return contents.map(
        (_, at) =>
          outcomes[at] ??
          failedOutcome('It was not compiled, because too many other components of the request failed.'),
      )
    outcomes.push(...(await compilerShare.run(toWorkOwner(ctx), () => runCompiler(contents.slice(outcomes.length)))))
    if (outcomes.length < contents.length)
      outcomes.push(failedOutcome('The code takes too much time or memory to compile.'))
  }
  return outcomes
}

/** Returns the outcomes of all contents, or of those before the content that ended the process. @throws 503 */
async function runCompiler(contents: string[]): Promise<CompileOutcome[]> {
  const child = Bun.spawn([process.execPath, '-e', compilerScript], {
    // `BUN_BE_BUN` makes a compiled binary run as Bun instead of its program.
    env: { BUN_BE_BUN: '1', NODE_ENV: 'production', DO_NOT_TRACK: '1', BUN_ENABLE_CRASH_REPORTING: '0' },
    cwd: '/',
    stdin: new Blob([JSON.stringify(contents)]),
    stdout: 'pipe',
    stderr: 'ignore',
    timeout: PROCESS_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  })
  const output = await child.stdout.text()
  await child.exited
  // The process was ended from outside or timed out, so the content is not to blame.
  if (['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'].includes(`${child.signalCode}`)) throw new Busy()
  if (child.exitCode) throw new Error(`The compiler ended with code ${child.exitCode}.`)
  return output
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as CompileOutcome)
}

const failedOutcome = (message: string): CompileOutcome => ({ flaws: [{ path: '/content', message }] })
