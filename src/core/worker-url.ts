/** Tells whether this process runs as the compiled binary, which holds the sources in a file system of its own. */
export const IS_COMPILED = /^(\/\$bunfs|[A-Z]:[\\/]~BUN)/.test(Bun.main)

/** Returns the URL of a thread's code by its path below `src`, without extension. The build names it as an entry point. */
export const workerUrl = (path: string) => new URL(IS_COMPILED ? `./${path}.js` : `../${path}.ts`, import.meta.url).href
