/** What a run may take: ms until it has ended, and bytes of memory. */
export type Bounds = { time: number; memory: number }

/** What is said to the process of a sandbox. All that comes from or goes to a lambda is text. */
export type Order =
  | { run: number; compile: string }
  | { run: number; js: string; request: string; env: string; bounds: Bounds }
  | { run: number; call: number; ok: boolean; answer: string }

/** What it says. */
export type Word =
  /** What it could not be confined by (`confinement.ts`). */
  | { ready: true; missing: string[] }
  | { run: number; call: number; name: string; input: string }
  | { run: number; line: Line }
  | { run: number; end: Ending | Compiled; worn: boolean }

/** A line of a lambda's log: `at` is ms since the run began. */
export type Line = { at: number; level: Level; text: string }
export type Level = 'debug' | 'info' | 'warn' | 'error'

/** What JSON stands for: itself; an answer with status, headers and body; the same, whose body is bytes, in base64. */
export type Shape = 'value' | 'answer' | 'bytes'

/** How a run ended. `value` is JSON. */
export type Ending =
  | { value: string; shape: Shape }
  | { failure: 'timeout' | 'memory' }
  | { failure: 'failed'; error: Thrown }

/** What a lambda threw, as far as it could be told. */
export type Thrown = { name: string; message: string; stack: string }

/** The code that runs, or what is wrong with it and where. */
export type Compiled = { js: string } | { flaws: Place[] }
export type Place = { message: string; line?: number; column?: number }
