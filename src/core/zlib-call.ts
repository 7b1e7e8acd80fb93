/** Returns what a function of `node:zlib` makes, off the thread that answers requests. */
export const callZlib = (start: (done: (error: Error | null, result: Buffer) => void) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => start((error, result) => (error ? reject(error) : resolve(result))))
