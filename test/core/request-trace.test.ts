// engine: sqlite
import { afterEach, expect, test } from 'bun:test'
import { runInRequestTrace } from '../../src/core/request-trace'
import { recordSpans, type SpanAttributes } from '../../src/core/trace'

afterEach(() => recordSpans(undefined))

test.each(['http', 'https'])('the span of a request by %s has this scheme', async (scheme) => {
  const spans: SpanAttributes[] = []
  recordSpans({
    startSpan(_name, _kind, attributes) {
      spans.push(attributes)
      const trace = { traceId: '1'.repeat(32), spanId: '1'.repeat(16), flags: 1 }
      return { trace, describe() {}, end() {} }
    },
  })
  await runInRequestTrace(new Request(`${scheme}://app.example.com/api/me`), async () => new Response('done'))
  expect(spans).toEqual([{ 'http.request.method': 'GET', 'url.scheme': scheme }])
})
