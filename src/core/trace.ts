import { AsyncLocalStorage } from 'node:async_hooks'

/** The place of some work in a trace: the trace, and the span that caused the work. */
export type Trace = {
  traceId: string
  spanId: string
  /** 1 when whoever began the trace records it, plus 2 when the id of the trace is random. */
  flags: number
  /** What others noted about the trace, as they sent it. */
  state?: string
}

export type SpanKind = 'server' | 'client' | 'consumer' | 'internal'
export type SpanAttributes = Record<string, string | number | boolean>

/** A piece of work in a trace that is exported when it ends. */
export type Span = {
  trace: Trace
  describe(attributes: SpanAttributes, name?: string): void
  /** @param error the code of what went wrong. `endedMs` is the time of the end (ms since 1970, default: now) */
  end(error?: string, endedMs?: number): void
}
export type Tracer = {
  /** `startedMs` is the time of the start (ms since 1970, default: now). */
  startSpan(
    name: string,
    kind: SpanKind,
    attributes: SpanAttributes,
    parent: Trace | undefined,
    startedMs?: number,
  ): Span | undefined
}

const traces = new AsyncLocalStorage<Trace | undefined>()
let tracer: Tracer | undefined

/** From now on work is recorded by this tracer; undefined ends that. */
export function recordSpans(newTracer: Tracer | undefined) {
  tracer = newTracer
}

/** Tells whether spans are recorded. Without that a trace is only carried on. */
export const areSpansRecorded = () => tracer !== undefined

/** Returns the trace of the work that is running, if it has one. */
export const currentTrace = (): Trace | undefined => traces.getStore()

/** Returns the value of a header `traceparent` for the work that is running, or null without a trace. */
export function currentTraceparent(): string | null {
  const trace = currentTrace()
  return trace ? toTraceparent(trace) : null
}

/** Runs work as a part of a trace, or of none. */
export const runInTrace = <T>(trace: Trace | undefined, work: () => T): T =>
  trace === currentTrace() ? work() : traces.run(trace, work)

/** Returns a function that runs in the trace of its caller, whoever calls it later. */
export const bindTrace = <Args extends unknown[], T>(work: (...args: Args) => T): ((...args: Args) => T) => {
  const trace = currentTrace()
  return (...args) => runInTrace(trace, () => work(...args))
}

/** Starts a span, if spans are recorded. The caller ends it. */
export const startSpan = (
  name: string,
  kind: SpanKind,
  attributes: SpanAttributes,
  parent = currentTrace(),
  startedMs?: number,
) => tracer?.startSpan(name, kind, attributes, parent, startedMs)

/** Tells whether the work that is running is part of a trace that is recorded. */
export const isTraceRecorded = () => tracer !== undefined && ((currentTrace()?.flags ?? 0) & RECORDED) !== 0

/** Runs work as a span of the current trace. When that is not recorded, it only runs the work. */
export async function runInSpan<T>(
  name: string,
  kind: SpanKind,
  attributes: () => SpanAttributes,
  work: (span?: Span) => Promise<T>,
): Promise<T> {
  const span = isTraceRecorded() ? startSpan(name, kind, attributes()) : undefined
  if (!span) return work()
  try {
    const result = await runInTrace(span.trace, () => work(span))
    span.end()
    return result
  } catch (error) {
    span.end(toErrorType(error))
    throw error
  }
}

/** Messages of errors may quote values, so only a code or the name of the class is exported. */
function toErrorType(error: unknown): string {
  const { code } = Object(error) as { code?: unknown }
  return typeof code === 'string' ? code : error instanceof Error ? error.constructor.name : 'unknown'
}

const TRACEPARENT = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/
const MAX_STATE_LENGTH = 512
const RECORDED = 1
/** The id of a trace is random (level 2 of the standard), which holds for all of its spans. */
export const RANDOM_ID = 2
const KNOWN_FLAGS = RECORDED | RANDOM_ID

/**
 * Returns the trace of the headers `traceparent` and `tracestate`, or undefined when there is none or it is invalid.
 * @see https://www.w3.org/TR/trace-context/#traceparent-header
 */
export function parseTrace(parent: string | null | undefined, state?: string | null): Trace | undefined {
  const [, version, traceId = '', spanId = '', flags = '', more] = TRACEPARENT.exec(parent ?? '') ?? []
  // Later versions may append fields; this one may not.
  if (!version || version === 'ff' || (version === '00' && more !== undefined)) return
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return
  const isStateValid = state && state.length <= MAX_STATE_LENGTH && /^[\x20-\x7e]+$/.test(state)
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & KNOWN_FLAGS, ...(isStateValid && { state }) }
}

/** Returns the value of the header `traceparent`. */
export const toTraceparent = ({ traceId, spanId, flags }: Trace) =>
  `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`
