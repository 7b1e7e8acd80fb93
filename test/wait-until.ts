const POLL_INTERVAL_MS = 10

/**
 * Reads until the value is accepted (default: until it is truthy), and returns it.
 * @throws when no value was accepted in time, with the last one
 */
export async function waitUntil<T>(
  read: () => T | Promise<T>,
  isAccepted: (value: T) => unknown = Boolean,
  timeoutMs = 10_000, // enough for a busy machine
): Promise<NonNullable<T>> {
  for (const end = performance.now() + timeoutMs; ; await Bun.sleep(POLL_INTERVAL_MS)) {
    const value = await read()
    if (isAccepted(value)) return value as NonNullable<T>
    if (performance.now() > end) throw new Error(`Nothing was accepted in time, last: ${Bun.inspect(value)}`)
  }
}
