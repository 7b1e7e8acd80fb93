/** A value, or a promise of it. What is in memory is returned as it is: promises would cost a hot read more than reading. */
export type Awaitable<T> = T | Promise<T>

/** Returns what `next` returns for a value; without a promise when the value is at hand and `next` needs none. */
export const andThen = <T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> =>
  value instanceof Promise ? value.then(next) : next(value)
