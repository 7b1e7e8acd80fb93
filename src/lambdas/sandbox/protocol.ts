/** The limits of a run: ms until it times out, and bytes of memory. */
export type RunLimits = { time: number; memory: number }

/** A message to a sandbox process. Everything from and to a lambda is text. */
export type Command =
  | { run: number; compile: string }
  | { run: number; js: string; request: string; env: string; limits: RunLimits }
  | { run: number; call: number; ok: boolean; answer: string }

/** A message from a sandbox process. */
export type Message =
  /** The steps of the confinement that failed (`confinement.ts`). */
  | { ready: true; missing: string[] }
  | { run: number; call: number; name: string; input: string }
  | { run: number; line: LogLine }
  | { run: number; end: RunResult | CompileResult; isWornOut: boolean }

/** A line of a lambda's log: `at` is ms since the run began. */
export type LogLine = { at: number; level: LogLevel; text: string }
export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** How to read the JSON of a result: as a value, as a whole response, or as one whose body is bytes in base64. */
export type ResultFormat = 'value' | 'answer' | 'bytes'

/** How a run ended. `value` is JSON. */
export type RunResult =
  | { value: string; format: ResultFormat }
  | { failure: 'timeout' | 'memory' }
  | { failure: 'failed'; error: ThrownError }

/** The error that a lambda threw, truncated. */
export type ThrownError = { name: string; message: string; stack: string }

/** The compiled code, or its errors with their positions. */
export type CompileResult = { js: string } | { errors: CompileError[] }
export type CompileError = { message: string; line?: number; column?: number }
