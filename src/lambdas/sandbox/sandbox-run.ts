import type { QuickJSHandle } from 'quickjs-emscripten-core'
import type { CurrentRun } from './host-functions'
import type { GuestFunctions } from './prelude'
import type { Command, Message, RunResult } from './protocol'
import { callGuest, context, resetRuntime, runPendingJobs } from './runtime'

type RunCommand = Extract<Command, { js: string }>

const NEVER_ENDS: RunResult = {
  failure: 'failed',
  error: { name: 'Error', message: 'The lambda waits for a promise that never settles.', stack: '' },
}

/** One run of a lambda. It calls `onEnd` once. */
export class SandboxRun implements CurrentRun {
  number: number
  calls = 0
  loggedCharacters = 0
  timerCount = 0
  #startedAt = performance.now()
  #result?: RunResult
  #isEngineIntact = true
  #isExecuting = false
  #isTimedOut = false
  #pendingCalls = 0
  #timers = new Set<Timer>()

  constructor(
    private command: RunCommand,
    private send: (message: Message) => void,
    /** `isIntact`: whether the engine can be reused. */
    private onEnd: (result: RunResult, isIntact: boolean) => void,
  ) {
    const { time, memory } = command.limits
    this.number = command.run
    resetRuntime(this, memory)
    this.#after(time, () => this.end({ failure: 'timeout' }))
  }

  start() {
    const { js, request, env } = this.command
    this.#step(() => {
      const module = context.evalCode(js, 'lambda.js', { type: 'module' })
      if (module.error) this.#callGuest('failed', module.error)
      else this.#callGuest('start', module.value, context.newString(request), context.newString(env))
    })
  }

  /** Passes the server's answer to a host call to the lambda. */
  resolveCall({ call, ok, answer }: Extract<Command, { call: number }>) {
    this.#pendingCalls--
    const { true: yes, false: no } = context
    this.#step(() => this.#callGuest('settleCall', context.newNumber(call), ok ? yes : no, context.newString(answer)))
  }

  isOverdue() {
    this.#isTimedOut ||= performance.now() - this.#startedAt > this.command.limits.time
    return this.#isTimedOut || !!this.#result
  }

  call(call: number, name: string, input: string) {
    this.#pendingCalls++
    this.send({ run: this.number, call, name, input })
  }

  line(line: Parameters<CurrentRun['line']>[0]) {
    this.send({ run: this.number, line: { at: Math.round(performance.now() - this.#startedAt), ...line } })
  }

  timer(id: number, ms: number) {
    this.#after(ms, () => this.#step(() => this.#callGuest('fireTimer', context.newNumber(id))))
  }

  end(ending: RunResult) {
    this.#result ??= ending
    if (!this.#isExecuting) this.#close()
  }

  #after(ms: number, act: () => void) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      act()
    }, ms)
    this.#timers.add(timer)
  }

  /** Runs a step, and then all pending jobs of promises. */
  #step(step: () => void) {
    if (this.#result) return
    // An answer may arrive before the timer of the time limit fires.
    if (this.isOverdue()) return this.end({ failure: 'timeout' })
    this.#isExecuting = true
    try {
      step()
      const error = this.#result ? undefined : runPendingJobs()
      if (error) this.#reportError(error)
    } catch (error) {
      this.#handleEngineError(error)
    }
    this.#isExecuting = false
    // One of the timers is that of the time limit.
    if (this.#isTimedOut) this.#result = { failure: 'timeout' }
    else if (!this.#result && !this.#pendingCalls && this.#timers.size === 1) this.#result = NEVER_ENDS
    if (this.#result) this.#close()
  }

  /** Handles are not disposed: the end of the run discards the engine's whole memory. */
  #callGuest(step: keyof GuestFunctions, ...values: QuickJSHandle[]) {
    const error = callGuest(step, ...values)
    if (!error) return
    if (step === 'failed') this.end({ failure: 'memory' })
    else this.#reportError(error)
  }

  /** Reports an error that was thrown outside the lambda's own promise. */
  #reportError(error: QuickJSHandle) {
    if (!this.#isTimedOut && !this.#result) this.#callGuest('failed', error)
  }

  /** The engine itself has thrown: its stack or memory did not suffice, and its state is no longer reliable. */
  #handleEngineError(error: unknown) {
    this.#isEngineIntact = false
    const isStackOverflow = error instanceof RangeError
    const message = isStackOverflow ? 'Maximum call stack size exceeded.' : 'The engine failed.'
    this.end({ failure: 'failed', error: { name: isStackOverflow ? 'RangeError' : 'Error', message, stack: '' } })
  }

  #close() {
    for (const timer of this.#timers) clearTimeout(timer)
    this.onEnd(this.#result!, this.#isEngineIntact)
  }
}
