import type { QuickJSHandle } from 'quickjs-emscripten-core'
import type { Occupant } from './host'
import type { Inner } from './prelude'
import type { Ending, Order, Word } from './protocol'
import { context, enter, settle, tell } from './room'

type Begin = Extract<Order, { js: string }>

const forever: Ending = {
  failure: 'failed',
  error: { name: 'Error', message: 'It waits for something that never comes.', stack: '' },
}

/** One run of a lambda, until it has ended. */
export class Run implements Occupant {
  number: number
  calls = 0
  logged = 0
  set = 0
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
    this.number = order.run
    enter(this, memory)
    this.#after(time, () => this.end({ failure: 'timeout' }))
  }

  begin() {
    const { js, request, env } = this.order
    this.#doing(() => {
      const module = context.evalCode(js, 'lambda.js', { type: 'module' })
      if (module.error) this.#tell('failed', module.error)
      else this.#tell('start', module.value, context.newString(request), context.newString(env))
    })
  }

  /** What the server says to something that the lambda asked. */
  answered({ call, ok, answer }: Extract<Order, { call: number }>) {
    this.#waiting--
    const { true: yes, false: no } = context
    this.#doing(() => this.#tell('answered', context.newNumber(call), ok ? yes : no, context.newString(answer)))
  }

  late() {
    this.#late ||= performance.now() - this.#began > this.order.bounds.time
    return this.#late || !!this.#ending
  }

  call(call: number, name: string, input: string) {
    this.#waiting++
    this.say({ run: this.number, call, name, input })
  }

  line(line: Parameters<Occupant['line']>[0]) {
    this.say({ run: this.number, line: { at: Math.round(performance.now() - this.#began), ...line } })
  }

  timer(id: number, ms: number) {
    this.#after(ms, () => this.#doing(() => this.#tell('rang', context.newNumber(id))))
  }

  end(ending: Ending) {
    this.#ending ??= ending
    if (!this.#busy) this.#close()
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
    // The timer that says so may come after the answer that is being handed in.
    if (this.late()) return this.end({ failure: 'timeout' })
    this.#busy = true
    try {
      step()
      const error = this.#ending ? undefined : settle()
      if (error) this.#failed(error)
    } catch (error) {
      this.#broken(error)
    }
    this.#busy = false
    // One of the timers is the run's own.
    if (this.#late) this.#ending = { failure: 'timeout' }
    else if (!this.#ending && !this.#waiting && this.#timers.size === 1) this.#ending = forever
    if (this.#ending) this.#close()
  }

  /** Nothing that is handed in is given back: with the end of the run all of it is gone. */
  #tell(step: keyof Inner, ...values: QuickJSHandle[]) {
    const error = tell(step, ...values)
    if (!error) return
    if (step === 'failed') this.end({ failure: 'memory' })
    else this.#failed(error)
  }

  /** What was thrown where the lambda's own promise does not hear of it. */
  #failed(error: QuickJSHandle) {
    if (!this.#late && !this.#ending) this.#tell('failed', error)
  }

  /** The engine itself has thrown: its stack or its memory did not suffice, and it is not in order any more. */
  #broken(error: unknown) {
    this.#sound = false
    const deep = error instanceof RangeError
    const message = deep ? 'Maximum call stack size exceeded.' : 'The engine could not go on.'
    this.end({ failure: 'failed', error: { name: deep ? 'RangeError' : 'Error', message, stack: '' } })
  }

  #close() {
    for (const timer of this.#timers) clearTimeout(timer)
    this.ended(this.#ending!, this.#sound)
  }
}
