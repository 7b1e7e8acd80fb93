import type { QuickJSHandle } from 'quickjs-emscripten-core'
import { allow, engine, remembered } from './engine'
import { hostFunctions, type Occupant } from './host'
import { type Inner, prelude } from './prelude'
import { web } from './web'

const STACK = 192 << 10 // bytes that the engine may take of its own stack, for which it takes more of ours
const SETTING_UP = { type: 'global', strict: true } as const

/** Who is in there. */
let occupant: Occupant | undefined

const runtime = engine.newRuntime()
runtime.setMaxStackSize(STACK)
runtime.setInterruptHandler(() => !!occupant?.late())
runtime.setModuleLoader((name) => ({
  error: new Error(`A lambda cannot import "${name.slice(0, 100)}": what there is, is in "atoll".`),
}))

export const context = runtime.newContext()

const made = (code: string, ...values: QuickJSHandle[]): QuickJSHandle =>
  context
    .unwrapResult(context.evalCode(code, 'atoll.js', SETTING_UP))
    .consume((make) => context.unwrapResult(context.callFunction(make, context.undefined, ...values)))

const host = hostFunctions(context, () => occupant!)
const inner = made(`(${prelude})`, host, made(`(${web})`, host))
const restore = remembered()

/**
 * The room in which lambdas run, one after the other: for each it is as it was before the first, byte for byte. `memory`
 * in bytes.
 */
export function enter(next: Occupant, memory: number) {
  restore()
  allow(memory)
  occupant = next
}

/** Calls what is there; what it throws is for `failed` to hear. */
export function tell(step: keyof Inner, ...values: QuickJSHandle[]): QuickJSHandle | undefined {
  const result = context.getProp(inner, step).consume((act) => context.callFunction(act, context.undefined, ...values))
  if (result.error) return result.error
  result.value.dispose()
}

/** Does what promises wait for; what an uncaught error was, if there was one. */
export const settle = (): QuickJSHandle | undefined => runtime.executePendingJobs().error
