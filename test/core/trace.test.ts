// engine: sqlite
import { describe, expect, test } from 'bun:test'
import { bindTrace, currentTrace, parseTrace, runInSpan, runInTrace, toTraceparent } from '../../src/core/trace'
import { errorOf } from '../rejections'

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c'
const SPAN_ID = 'b7ad6b7169203331'

describe('the header traceparent', () => {
  test('a valid header is read, and written again unchanged', () => {
    for (const flags of ['00', '01', '02', '03']) {
      const header = `00-${TRACE_ID}-${SPAN_ID}-${flags}`
      const trace = parseTrace(header, 'vendor=1,other=2')
      expect(trace).toEqual({ traceId: TRACE_ID, spanId: SPAN_ID, flags: Number(flags), state: 'vendor=1,other=2' })
      expect(toTraceparent(trace!)).toBe(header)
    }
  })

  test('flags that this version does not know are left out', () => {
    const trace = parseTrace(`00-${TRACE_ID}-${SPAN_ID}-ff`)!
    expect(trace.flags).toBe(3)
    expect(toTraceparent(trace)).toBe(`00-${TRACE_ID}-${SPAN_ID}-03`)
    expect(toTraceparent(parseTrace(`00-${TRACE_ID}-${SPAN_ID}-fd`)!)).toBe(`00-${TRACE_ID}-${SPAN_ID}-01`)
  })

  test('a later version may have more fields, and this one may not', () => {
    expect(parseTrace(`01-${TRACE_ID}-${SPAN_ID}-01-more`)?.traceId).toBe(TRACE_ID)
    expect(parseTrace(`00-${TRACE_ID}-${SPAN_ID}-01-more`)).toBeUndefined()
  })

  test.each([
    ['', null, undefined, 'nonsense', `ff-${TRACE_ID}-${SPAN_ID}-01`, `00-${TRACE_ID}-${SPAN_ID}`],
    [
      `00-${'0'.repeat(32)}-${SPAN_ID}-01`,
      `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
      `00-${TRACE_ID.toUpperCase()}-${SPAN_ID}-01`,
    ],
    [`00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`, `00-${TRACE_ID}-${SPAN_ID}-1`, ` 00-${TRACE_ID}-${SPAN_ID}-01`],
  ])('invalid headers are ignored: %p, %p, %p …', (...headers: unknown[]) => {
    for (const header of headers as (string | null | undefined)[])
      expect(parseTrace(header), `${header}`).toBeUndefined()
  })

  test('a tracestate that is too long or has control characters is left out', () => {
    for (const state of ['x'.repeat(513), 'a=\r\nb', 'a=ü', ''])
      expect(parseTrace(`00-${TRACE_ID}-${SPAN_ID}-01`, state)).toEqual({
        traceId: TRACE_ID,
        spanId: SPAN_ID,
        flags: 1,
      })
  })
})

describe('the trace of running work', () => {
  const [one, other] = [TRACE_ID, 'f'.repeat(32)].map((traceId) => ({ traceId, spanId: SPAN_ID, flags: 1 }))

  test('work of two traces at once keeps its own after every wait', async () => {
    const work = async () => {
      await Bun.sleep(2)
      return currentTrace()
    }
    expect(await Promise.all([runInTrace(one, work), runInTrace(other, work), work()])).toEqual([one, other, undefined])
  })

  test('a bound function runs in the trace of whoever bound it', () => {
    const bound = runInTrace(one, () => bindTrace(currentTrace))
    expect(runInTrace(other, bound)).toEqual(one)
    expect(runInTrace(one, () => runInTrace(undefined, currentTrace))).toBeUndefined()
  })

  test('a span without an exporter only runs its work, and passes its error on', async () => {
    const describe = () => expect.unreachable() as never
    expect(await runInTrace(one, () => runInSpan('x', 'client', describe, async () => currentTrace()))).toEqual(one)
    const failing = runInTrace(one, () => runInSpan('x', 'client', describe, () => Promise.reject(new Error('mine'))))
    expect((await errorOf(failing)).message).toBe('mine')
  })
})
