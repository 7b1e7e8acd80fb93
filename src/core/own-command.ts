import { IS_COMPILED } from './worker-url'

/** The words that start this program again, before the arguments: a compiled binary contains the command line. */
export const OWN_COMMAND: readonly string[] = IS_COMPILED
  ? [process.execPath]
  : [process.execPath, Bun.fileURLToPath(new URL('../main.ts', import.meta.url))]
