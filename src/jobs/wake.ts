import { runInTrace } from '../core/trace'

let listener: ((tenant: string) => void) | undefined

/** Notifies this process's runner, if there is one, that a tenant has work. */
export const wake = (tenant: string) => {
  // The runner goes on with jobs that have nothing to do with the trace of this caller.
  if (listener) runInTrace(undefined, () => listener?.(tenant))
}

/** Sets the listener of `wake`, or removes it. */
export const onWake = (newListener: typeof listener) => {
  listener = newListener
}
