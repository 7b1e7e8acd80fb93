/** A value, or a promise of it. Cached values are returned without a promise, which would cost more than the read. */
export type Awaitable<T> = T | Promise<T>

/** Calls `next` with a value: synchronously unless the value is a promise. */
export const andThen = <T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(next) : next(value)
