/** Runs a function of `node:zlib` off the main thread. */
export const callZlib = (start: (done: (error: Error | null, result: Buffer) => void) => void): Promise<Buffer> =>
  new Promise((resolve, reject) => start((error, result) => (error ? reject(error) : resolve(result))))
