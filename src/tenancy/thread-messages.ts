import type { RecordedSpan } from '../core/span-recorder'
import type { Trace } from '../core/trace'
import type { ReadStatistics } from '../storage/database-statistics'
import type { DatabaseLocation } from '../storage/port'

/** A read that a thread answers as this thread would: its name, where the data are, and the request. */
export type ThreadRead = {
  name: string
  place: DatabaseLocation
  /** Who asks; a guest is undefined. */
  actor: unknown
  args: string[]
  /** Whether the body is sent in parts. */
  isStreamed: boolean
  url: string
  headers: [name: string, value: string][]
  /** The trace of the request, if it is recorded. */
  trace?: Trace
}

/** A message to a reader thread. */
export type ThreadCommand =
  /** `commits` is memory that is shared, unless all processes share some. */
  | { act: 'start'; commits: ArrayBufferLike | undefined }
  | { act: 'read'; id: number; read: ThreadRead }
  /** The next part of a body may be sent. */
  | { act: 'next'; id: number }
  | { act: 'cancel'; id: number }
  /** The database is closed here, and may be replaced. */
  | { act: 'release'; id: number; place: DatabaseLocation }
  | { act: 'end' }

/** The head of an answer. `text` is all of its body, unless it comes in parts. */
export type ThreadAnswer = { status: number; headers: [string, string][]; text?: string }
/** A refusal, as a `Problem` has it. */
export type ThreadProblem = {
  status: number
  code: string
  message: string
  details?: unknown
  headers?: [string, string][]
}

/** What a thread has done since its last report, for metrics and traces. */
export type ThreadWork = { statistics: ReadStatistics[]; spans: RecordedSpan[] }

/** A message of a reader thread. */
export type ThreadMessage =
  | { id: number; answer: ThreadAnswer }
  | { id: number; part: Uint8Array<ArrayBuffer> }
  | { id: number; isOver: true }
  | { id: number; problem: ThreadProblem }
  | { id: number; failure: string }
  | { id: number; isReleased: true }
  | { log: string }
  | { work: ThreadWork }
  | { isReady: true }
  | { hasEnded: true }
