import { type Span, type SpanAttributes, type SpanKind, startSpan, type Trace, type Tracer } from './trace'

/** A span that has ended in a thread without a tracer. Times are ms since 1970. */
export type RecordedSpan = {
  name: string
  kind: SpanKind
  attributes: SpanAttributes
  parent: Trace
  startedMs: number
  endedMs: number
  error?: string
}

const currentMs = () => performance.timeOrigin + performance.now()

/** Records the spans of a thread, which another thread exports. All are children of the trace that they belong to. */
export class SpanRecorder implements Tracer {
  #ended: RecordedSpan[] = []

  startSpan(name: string, kind: SpanKind, attributes: SpanAttributes, parent: Trace | undefined): Span | undefined {
    if (!parent) return
    const recorded = { name, kind, attributes: { ...attributes }, parent, startedMs: currentMs() }
    return {
      trace: parent,
      describe(more, newName) {
        Object.assign(recorded.attributes, more)
        if (newName) recorded.name = newName
      },
      end: (error) => void this.#ended.push({ ...recorded, endedMs: currentMs(), ...(error && { error }) }),
    }
  }

  /** Returns the spans that have ended since the last call. */
  take = () => this.#ended.splice(0)
}

/** Exports spans that another thread has recorded. */
export function exportRecorded(spans: readonly RecordedSpan[]) {
  for (const { name, kind, attributes, parent, startedMs, endedMs, error } of spans)
    startSpan(name, kind, attributes, parent, startedMs)?.end(error, endedMs)
}
