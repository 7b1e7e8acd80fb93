import type { QuickJSContext, QuickJSHandle, QuickJSRuntime } from 'quickjs-emscripten-core'
import { allow, engine } from './engine'
import { hostFunctions } from './host'
import { type Inner, prelude } from './prelude'
import type { Ending, Order, Word } from './protocol'
import { web } from './web'

type Begin = Extract<Order, { js: string }>

const STACK = 192 << 10 // bytes that the engine may take of its own stack, for which it takes more of ours
const SETTING_UP = { type: 'global', strict: true } as const
const WEB = `(${web})`
const PRELUDE = `(${prelude})`

const forever: Ending = {
  failure: 'failed',
  error: { name: 'Error', message: 'It waits for something that never comes.', stack: '' },
}

/** One run of a lambda, in a runtime of its own: nothing is left of it when it has ended. */
export class Run {
  #runtime: QuickJSRuntime
  #context: QuickJSContext
  #host?: QuickJSHandle
  #inner?: QuickJSHandle
  #began = performance.now()
  #ending?: Ending
  #sound = true
  #busy = false
  #late = false
  #waiting = 0
  #timers = new Set<Timer>()

  constructor(
    private order: Begin,
    private say: (word: Word) => void,
    /** `sound`: whether the engine is as good as before. */
    private ended: (ending: Ending, sound: boolean) => void,
  ) {
    const { time, memory } = order.bounds
    allow(memory)
    this.#runtime = engine.newRuntime()
    this.#runtime.setMaxStackSize(STACK)
    this.#runtime.setInterruptHandler(() => {
      this.#late ||= performance.now() - this.#began > time
      return this.#late || !!this.#ending
    })
    this.#runtime.setModuleLoader((name) => ({
      error: new Error(`A lambda cannot import "${name.slice(0, 100)}": what there is, is in "atoll".`),
    }))
    this.#context = this.#runtime.newContext()
    this.#after(time, () => this.#end({ failure: 'timeout' }))
  }

  begin() {
    this.#doing(() => {
      const context = this.#context
      this.#inner = this.#inside()
      const module = context.evalCode(this.order.js, 'lambda.js', { type: 'module' })
      const [step, loading] = module.error ? (['failed', module.error] as const) : (['start', module.value] as const)
      loading.consume((handle) => this.#tell(step, handle))
    })
  }

  /** What the server says to something that the lambda asked. */
  answered({ call, ok, answer }: Extract<Order, { call: number }>) {
    this.#waiting--
    this.#doing(() => {
      const { true: yes, false: no } = this.#context
      const values = [this.#context.newNumber(call), ok ? yes : no, this.#context.newString(answer)]
      this.#tell('answered', ...values)
      for (const value of values) value.dispose()
    })
  }

  /** What the sandbox has besides its language. */
  #inside(): QuickJSHandle {
    const { run, request, env } = this.order
    this.#host = hostFunctions(this.#context, {
      call: (call, name, input) => {
        this.#waiting++
        this.say({ run, call, name, input })
      },
      line: (line) => this.say({ run, line: { at: Math.round(performance.now() - this.#began), ...line } }),
      timer: (id, ms) =>
        this.#after(ms, () =>
          this.#doing(() => this.#context.newNumber(id).consume((value) => this.#tell('rang', value))),
        ),
      end: (ending) => this.#end(ending),
      web: (host) => this.#made(WEB, host),
    })
    const texts = [request, env].map((text) => this.#context.newString(text))
    const inner = this.#made(PRELUDE, this.#host, ...texts)
    for (const handle of texts) handle.dispose()
    return inner
  }

  #made(code: string, ...values: QuickJSHandle[]): QuickJSHandle {
    const context = this.#context
    return context
      .unwrapResult(context.evalCode(code, 'atoll.js', SETTING_UP))
      .consume((make) => context.unwrapResult(context.callFunction(make, context.undefined, ...values)))
  }

  #after(ms: number, act: () => void) {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      act()
    }, ms)
    this.#timers.add(timer)
  }

  /** A step of the run, with all that follows from it at once. */
  #doing(step: () => void) {
    if (this.#ending) return
    this.#busy = true
    try {
      step()
      if (!this.#ending) this.#runtime.executePendingJobs().error?.consume((error) => this.#failed(error))
    } catch (error) {
      this.#broken(error)
    }
    this.#busy = false
    // One of the timers is the run's own.
    if (this.#late) this.#ending = { failure: 'timeout' }
    else if (!this.#ending && !this.#waiting && this.#timers.size === 1) this.#ending = forever
    if (this.#ending) this.#close()
  }

  #tell(step: keyof Inner, ...values: QuickJSHandle[]) {
    const context = this.#context
    const result = context
      .getProp(this.#inner!, step)
      .consume((act) => context.callFunction(act, context.undefined, ...values))
    if (!result.error) result.value.dispose()
    else if (step === 'failed') result.error.consume(() => this.#end({ failure: 'memory' }))
    else result.error.consume((error) => this.#failed(error))
  }

  /** What was thrown where the lambda's own promise does not hear of it. */
  #failed(error: QuickJSHandle) {
    if (!this.#late && !this.#ending) this.#tell('failed', error)
  }

  /** The engine itself has thrown: its stack or its memory did not suffice, and it may not be in order any more. */
  #broken(error: unknown) {
    this.#sound = false
    const deep = error instanceof RangeError
    if (!this.#inner) this.#end({ failure: 'memory' })
    const message = deep ? 'Maximum call stack size exceeded.' : 'The engine could not go on.'
    this.#end({ failure: 'failed', error: { name: deep ? 'RangeError' : 'Error', message, stack: '' } })
  }

  #end(ending: Ending) {
    this.#ending ??= ending
    if (!this.#busy) this.#close()
  }

  #close() {
    for (const timer of this.#timers) clearTimeout(timer)
    try {
      this.#inner?.dispose()
      this.#host?.dispose()
      this.#context.dispose()
      this.#runtime.dispose()
    } catch {
      this.#sound = false
    }
    this.ended(this.#ending!, this.#sound)
  }
}
