import { logError } from '../../core/log'
import { IS_COMPILED } from '../../core/worker-url'
import type { Command, CompileResult, LogLine, Message, RunLimits, RunResult } from './protocol'

const KILL_GRACE_MS = 500 // the engine does not check the time during some operations
const COMPILE_TIMEOUT_MS = 5_000
const START_TIMEOUT_MS = 20_000 // enough for a busy machine

// A compiled binary starts itself with the argument `sandbox`.
const SPAWN_COMMAND = IS_COMPILED
  ? [process.execPath, 'sandbox']
  : [process.execPath, Bun.fileURLToPath(new URL('./process-main.ts', import.meta.url))]

/** The input of a run. `request` and `env` are JSON. */
export type RunInput = { js: string; request: string; env: string; limits: RunLimits }

/** Answers the host calls of a lambda, and receives its log. `input` and `answer` are JSON. */
export type RunListener = {
  call(name: string, input: string): Promise<{ ok: boolean; answer: string }>
  line(line: LogLine): void
}

/** The sandbox process did not start, or ended during the run. */
export type SandboxCrash = { failure: 'broken' }

type SandboxResult = RunResult | CompileResult | SandboxCrash
type PendingCommand = { number: number; settle: (result: SandboxResult) => void; listener?: RunListener }

let hasReportedMissing = false

/** Logs once which steps of the confinement this system does not support. */
function reportMissingConfinement(missing: string[]) {
  if (!missing.length || hasReportedMissing) return
  hasReportedMissing = true
  logError('SANDBOX_LESS_CONFINED', { missing })
}

const processes = new Set<SandboxProcess>()
process.once('exit', () => {
  for (const child of processes) child.kill()
})

/** A process that runs one lambda at a time. */
export class SandboxProcess {
  /** Whether it can run another lambda. */
  isReusable = true
  ready: Promise<boolean>
  #process: Bun.Subprocess
  #current?: PendingCommand
  #lastNumber = 0

  constructor() {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.ready = promise
    const timer = setTimeout(() => this.kill(), START_TIMEOUT_MS)
    this.#process = Bun.spawn(SPAWN_COMMAND, {
      // It does not inherit the server's environment.
      env: { NODE_ENV: 'production', DO_NOT_TRACK: '1', BUN_ENABLE_CRASH_REPORTING: '0' },
      cwd: '/',
      stdio: ['ignore', 'ignore', 'ignore'],
      serialization: 'json',
      ipc: (message: Message) => {
        if ('ready' in message) {
          clearTimeout(timer)
          reportMissingConfinement(message.missing)
          resolve(true)
        } else this.#handleMessage(message)
      },
      onExit: () => {
        clearTimeout(timer)
        this.isReusable = false
        processes.delete(this)
        resolve(false)
        this.#settle({ failure: 'broken' })
      },
    })
    this.#process.unref()
    processes.add(this)
  }

  /** The id of its process. */
  get pid() {
    return this.#process.pid
  }

  /** Runs a lambda until it ends. 500 ms after its time limit the process is killed. */
  run(job: RunInput, listener: RunListener): Promise<RunResult | SandboxCrash> {
    return this.#execute(job, job.limits.time + KILL_GRACE_MS, listener) as Promise<RunResult | SandboxCrash>
  }

  /** Compiles the code of a lambda. */
  compile(code: string): Promise<CompileResult | SandboxCrash | { failure: 'timeout' }> {
    return this.#execute({ compile: code }, COMPILE_TIMEOUT_MS) as Promise<
      CompileResult | SandboxCrash | { failure: 'timeout' }
    >
  }

  kill() {
    this.isReusable = false
    this.#process.kill('SIGKILL')
  }

  async #execute(
    command: { compile: string } | RunInput,
    timeoutMs: number,
    listener?: RunListener,
  ): Promise<SandboxResult> {
    if (!(await this.ready)) {
      logError('SANDBOX_FAILED', { cause: 'The process did not start.' })
      return { failure: 'broken' }
    }
    const { promise, resolve: settle } = Promise.withResolvers<SandboxResult>()
    const number = ++this.#lastNumber
    this.#current = { number, settle, listener }
    // WebAssembly in an endless loop can only be ended with its process.
    const timer = setTimeout(() => {
      this.kill()
      this.#settle({ failure: 'timeout' })
    }, timeoutMs)
    this.#send({ run: number, ...command })
    return promise.finally(() => clearTimeout(timer))
  }

  #handleMessage(message: Exclude<Message, { ready: true }>) {
    const current = this.#current
    if (message.run !== current?.number) return
    if ('line' in message) current.listener?.line(message.line)
    else if ('call' in message) this.#answerCall(current, message.call, message.name, message.input)
    else {
      if (message.isWornOut) this.kill()
      this.#settle(message.end)
    }
  }

  async #answerCall({ number, listener }: PendingCommand, call: number, name: string, input: string) {
    const answer = await listener?.call(name, input)
    // Meanwhile the run may have ended and another one have begun.
    if (answer && this.#current?.number === number) this.#send({ run: number, call, ...answer })
  }

  #settle(result: SandboxResult) {
    this.#current?.settle(result)
    this.#current = undefined
  }

  #send(command: Command) {
    try {
      this.#process.send(command)
    } catch {
      this.kill()
    }
  }
}
