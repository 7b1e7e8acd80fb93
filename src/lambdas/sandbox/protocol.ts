/** What a run may take: ms until it has ended, and bytes of memory. */
export type RunLimits = { time: number; memory: number }

/** What is said to the process of a sandbox. All that comes from or goes to a lambda is text. */
export type Command =
  | { run: number; compile: string }
  | { run: number; js: string; request: string; env: string; bounds: RunLimits }
  | { run: number; call: number; ok: boolean; answer: string }

/** What it says. */
export type Message =
  /** What it could not be confined by (`confinement.ts`). */
  | { ready: true; missing: string[] }
  | { run: number; call: number; name: string; input: string }
  | { run: number; line: LogLine }
  | { run: number; end: RunResult | CompileResult; worn: boolean }

/** A line of a lambda's log: `at` is ms since the run began. */
export type LogLine = { at: number; level: LogLevel; text: string }
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** What JSON stands for: itself; an answer with status, headers and body; the same, whose body is bytes, in base64. */
export type ResultFormat = 'value' | 'answer' | 'bytes'

/** How a run ended. `value` is JSON. */
export type RunResult =
  | { value: string; shape: ResultFormat }
  | { failure: 'timeout' | 'memory' }
  | { failure: 'failed'; error: ThrownError }

/** What a lambda threw, as far as it could be told. */
export type ThrownError = { name: string; message: string; stack: string }

/** The code that runs, or what is wrong with it and where. */
export type CompileResult = { js: string } | { flaws: CompileError[] }
export type CompileError = { message: string; line?: number; column?: number }
