import type { QuickJSHandle } from 'quickjs-emscripten-core'
import { type CurrentRun, createHostFunctions } from './host-functions'
import { type GuestFunctions, installPrelude } from './prelude'
import { quickjs, setMemoryLimit, snapshotMemory } from './quickjs'
import { installWebApis } from './web-apis'

const MAX_STACK_BYTES = 192 << 10 // bytes that the engine may take of its own stack, for which it takes more of ours
const EVAL_OPTIONS = { type: 'global', strict: true } as const

/** Who is in there. */
let currentRun: CurrentRun | undefined

const runtime = quickjs.newRuntime()
runtime.setMaxStackSize(MAX_STACK_BYTES)
runtime.setInterruptHandler(() => !!currentRun?.isOverdue())
runtime.setModuleLoader((name) => ({
  error: new Error(`A lambda cannot import "${name.slice(0, 100)}". Use the parameter "atoll" instead.`),
}))

export const context = runtime.newContext()

const evalAndCall = (code: string, ...values: QuickJSHandle[]): QuickJSHandle =>
  context
    .unwrapResult(context.evalCode(code, 'atoll.js', EVAL_OPTIONS))
    .consume((make) => context.unwrapResult(context.callFunction(make, context.undefined, ...values)))

const host = createHostFunctions(context, () => currentRun!)
const guest = evalAndCall(`(${installPrelude})`, host, evalAndCall(`(${installWebApis})`, host))
const restoreMemory = snapshotMemory()

/**
 * The room in which lambdas run, one after the other: for each it is as it was before the first, byte for byte. `memory`
 * in bytes.
 */
export function resetRuntime(nextRun: CurrentRun, memory: number) {
  restoreMemory()
  setMemoryLimit(memory)
  currentRun = nextRun
}

/** Calls what is there; what it throws is for `failed` to hear. */
export function callGuest(step: keyof GuestFunctions, ...values: QuickJSHandle[]): QuickJSHandle | undefined {
  const result = context.getProp(guest, step).consume((act) => context.callFunction(act, context.undefined, ...values))
  if (result.error) return result.error
  result.value.dispose()
}

/** Does what promises wait for; what an uncaught error was, if there was one. */
export const runPendingJobs = (): QuickJSHandle | undefined => runtime.executePendingJobs().error
