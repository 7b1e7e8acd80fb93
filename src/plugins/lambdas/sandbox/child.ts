import { fileURLToPath } from 'node:url'
import { report } from '../../../core/log'
import type { Bounds, Compiled, Ending, Line, Order, Word } from './protocol'

const GRACE = 500 // ms for what the engine does without asking how late it is
const COMPILING = 5_000 // ms
const STARTING = 20_000 // ms, on a busy machine

// A compiled binary starts itself, and its first lines know what for.
const command = import.meta.url.includes('/$bunfs/')
  ? [process.execPath, 'sandbox']
  : [process.execPath, fileURLToPath(new URL('./process.ts', import.meta.url))]

/** What a run is given. */
export type Job = { js: string; request: string; env: string; bounds: Bounds }

/** Who answers what a lambda asks, and hears its log. Texts are JSON. */
export type Listener = {
  call(name: string, input: string): Promise<{ ok: boolean; answer: string }>
  line(line: Line): void
}

/** The sandbox is broken, or its process ended. */
export type Broken = { failure: 'broken' }

type Told = Ending | Compiled | Broken
type Current = { number: number; settle: (told: Told) => void; listener?: Listener }

let reported = false

/** Tells once what the system does not let sandboxes go without. */
function reportMissing(missing: string[]) {
  if (!missing.length || reported) return
  reported = true
  report('SANDBOX_LESS_CONFINED', { missing })
}

const children = new Set<Child>()
process.once('exit', () => {
  for (const child of children) child.end()
})

/** A process that runs one lambda at a time. */
export class Child {
  /** Whether another can be run in it. */
  good = true
  ready: Promise<boolean>
  #process: Bun.Subprocess
  #current?: Current
  #runs = 0

  constructor() {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.ready = promise
    const timer = setTimeout(() => this.end(), STARTING)
    this.#process = Bun.spawn(command, {
      // It gets nothing of ours. More of its stack may be used, because the engine's calls take much of it.
      env: { NODE_ENV: 'production', DO_NOT_TRACK: '1', BUN_ENABLE_CRASH_REPORTING: '0' },
      cwd: '/',
      stdio: ['ignore', 'ignore', 'ignore'],
      serialization: 'json',
      ipc: (word: Word) => {
        if ('ready' in word) {
          clearTimeout(timer)
          reportMissing(word.missing)
          resolve(true)
        } else this.#hear(word)
      },
      onExit: () => {
        clearTimeout(timer)
        this.good = false
        children.delete(this)
        resolve(false)
        this.#settle({ failure: 'broken' })
      },
    })
    this.#process.unref()
    children.add(this)
  }

  /** The number of its process. */
  get pid() {
    return this.#process.pid
  }

  /** Runs a lambda until it ends or has to be ended. */
  run(job: Job, listener: Listener): Promise<Ending | Broken> {
    return this.#ask(job, job.bounds.time + GRACE, listener) as Promise<Ending | Broken>
  }

  /** What a code compiles to. */
  compile(code: string): Promise<Compiled | Broken | { failure: 'timeout' }> {
    return this.#ask({ compile: code }, COMPILING) as Promise<Compiled | Broken | { failure: 'timeout' }>
  }

  end() {
    this.good = false
    this.#process.kill('SIGKILL')
  }

  async #ask(order: { compile: string } | Job, patience: number, listener?: Listener): Promise<Told> {
    if (!(await this.ready)) {
      report('SANDBOX_FAILED', { cause: 'The process did not start.' })
      return { failure: 'broken' }
    }
    const { promise, resolve: settle } = Promise.withResolvers<Told>()
    const number = ++this.#runs
    this.#current = { number, settle, listener }
    // WebAssembly that goes round and round can only be ended with its process.
    const timer = setTimeout(() => {
      this.end()
      this.#settle({ failure: 'timeout' })
    }, patience)
    this.#send({ run: number, ...order })
    return promise.finally(() => clearTimeout(timer))
  }

  #hear(word: Exclude<Word, { ready: true }>) {
    const current = this.#current
    if (word.run !== current?.number) return
    if ('line' in word) current.listener?.line(word.line)
    else if ('call' in word) this.#answer(current, word.call, word.name, word.input)
    else {
      if (word.worn) this.end()
      this.#settle(word.end)
    }
  }

  async #answer({ number, listener }: Current, call: number, name: string, input: string) {
    const answered = await listener?.call(name, input)
    // Meanwhile the run may have ended, and another one have begun.
    if (answered && this.#current?.number === number) this.#send({ run: number, call, ...answered })
  }

  #settle(told: Told) {
    this.#current?.settle(told)
    this.#current = undefined
  }

  #send(order: Order) {
    try {
      this.#process.send(order)
    } catch {
      this.end()
    }
  }
}
