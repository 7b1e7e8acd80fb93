let listener: ((tenant: string) => void) | undefined

/** Tells this process's runner, if it has one, that there is something to do at a tenant. */
export const wake = (tenant: string) => listener?.(tenant)

/** Who is told; nobody any more, when there is none. */
export const onWake = (newListener: typeof listener) => {
  listener = newListener
}
