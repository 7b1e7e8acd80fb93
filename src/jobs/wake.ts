let listener: ((tenant: string) => void) | undefined

/** Notifies this process's runner, if there is one, that a tenant has work. */
export const wake = (tenant: string) => listener?.(tenant)

/** Sets the listener of `wake`, or removes it. */
export const onWake = (newListener: typeof listener) => {
  listener = newListener
}
