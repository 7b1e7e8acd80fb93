/**
 * Returns the error of a promise. Unlike `expect(…).rejects`, it waits without holding up the servers of this process.
 * @throws when the promise is fulfilled
 */
export async function errorOf(promise: PromiseLike<unknown>): Promise<Error & { code?: string }> {
  const value = await promise.then(
    (fulfilled) => ({ fulfilled }),
    (error) => ({ error }),
  )
  if ('error' in value) return value.error
  throw new Error(`The promise was fulfilled: ${Bun.inspect(value.fulfilled)}`)
}
