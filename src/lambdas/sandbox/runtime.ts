import type { QuickJSHandle } from 'quickjs-emscripten-core'
import { type CurrentRun, createHostFunctions } from './host-functions'
import { type GuestFunctions, installPrelude } from './prelude'
import { quickjs, setMemoryLimit, snapshotMemory } from './quickjs'
import { installWebApis } from './web-apis'

const MAX_STACK_BYTES = 192 << 10 // of the engine's stack; it takes more of the process's stack
const EVAL_OPTIONS = { type: 'global', strict: true } as const

/** The run that is in the sandbox now. */
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
 * Restores the engine, byte for byte, to its state before the first run. `memory` is the limit of the next run in
 * bytes.
 */
export function resetRuntime(nextRun: CurrentRun, memory: number) {
  restoreMemory()
  setMemoryLimit(memory)
  currentRun = nextRun
}

/** Calls a function of the sandbox. Returns what it threw, which the caller passes to `failed`. */
export function callGuest(step: keyof GuestFunctions, ...values: QuickJSHandle[]): QuickJSHandle | undefined {
  const result = context.getProp(guest, step).consume((act) => context.callFunction(act, context.undefined, ...values))
  if (result.error) return result.error
  result.value.dispose()
}

/** Runs the pending jobs of promises. Returns an uncaught error, if there was one. */
export const runPendingJobs = (): QuickJSHandle | undefined => runtime.executePendingJobs().error
