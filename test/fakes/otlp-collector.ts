/** A span as a collector receives it. Ids are hexadecimal. */
export type ReceivedSpan = {
  traceId: string
  spanId: string
  parentSpanId: string
  name: string
  kind: string
  ms: number
  attributes: Record<string, string | number | boolean>
  isError: boolean
  resource: Record<string, string | number | boolean>
}

/** A field of a message: a number for the wire types 0 and 1, bytes for the wire type 2. */
type Field = { number: number; value: bigint | Uint8Array }

/** Reads the fields of a message. @see https://protobuf.dev/programming-guides/encoding */
function readFields(bytes: Uint8Array): Field[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const fields: Field[] = []
  let at = 0
  const readVarint = () => {
    let value = 0n
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++]!
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
  }
  /** Returns where the next bytes begin. */
  const skip = (length: number) => {
    at += length
    return at - length
  }
  while (at < bytes.length) {
    const tag = Number(readVarint())
    const [number, type] = [tag >> 3, tag & 7]
    if (type === 0) fields.push({ number, value: readVarint() })
    else if (type === 1) fields.push({ number, value: view.getBigUint64(skip(8), true) })
    else if (type === 5) fields.push({ number, value: BigInt(view.getUint32(skip(4), true)) })
    else if (type === 2) {
      const start = skip(Number(readVarint()))
      fields.push({ number, value: bytes.subarray(start, at) })
    } else throw new Error(`The wire type ${type} does not exist.`)
  }
  return fields
}

const messagesOf = (bytes: Uint8Array, number: number) =>
  readFields(bytes).flatMap((field) =>
    field.number === number && field.value instanceof Uint8Array ? [field.value] : [],
  )
const textOf = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString() : '')
const hexOf = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString('hex') : '')
const numberOf = (bytes: Uint8Array, number: number) =>
  readFields(bytes).find((field) => field.number === number)?.value as bigint | undefined

/** Reads a list of `KeyValue`. */
const readAttributes = (list: Uint8Array[]) =>
  Object.fromEntries(
    list.map((pair) => {
      const [value] = readFields(messagesOf(pair, 2)[0]!)
      return [textOf(messagesOf(pair, 1)[0]), readAnyValue(value!)]
    }),
  )

function readAnyValue({ number, value }: Field): string | number | boolean {
  if (value instanceof Uint8Array) return textOf(value)
  return number === 2 ? value === 1n : Number(value)
}

const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer']

/** Reads an `ExportTraceServiceRequest`. The numbers of its fields are those of opentelemetry-proto. */
const readSpans = (request: Uint8Array): ReceivedSpan[] =>
  messagesOf(request, 1).flatMap((resourceSpans) => {
    const resource = readAttributes(messagesOf(messagesOf(resourceSpans, 1)[0]!, 1))
    const spans = messagesOf(resourceSpans, 2).flatMap((scopeSpans) => messagesOf(scopeSpans, 2))
    return spans.map((span) => {
      const [start = 0n, end = 0n] = [7, 8].map((number) => numberOf(span, number))
      const status = messagesOf(span, 15)[0]
      return {
        traceId: hexOf(messagesOf(span, 1)[0]),
        spanId: hexOf(messagesOf(span, 2)[0]),
        parentSpanId: hexOf(messagesOf(span, 4)[0]),
        name: textOf(messagesOf(span, 5)[0]),
        kind: KINDS[Number(numberOf(span, 6) ?? 0n)]!,
        ms: Number(end - start) / 1e6,
        attributes: readAttributes(messagesOf(span, 9)),
        isError: !!status && numberOf(status, 3) === 2n,
        resource,
      }
    })
  })

/** Starts a server that takes traces as a collector of OpenTelemetry does (OTLP over HTTP, in protobuf). */
export function startOtlpCollector() {
  const spans: ReceivedSpan[] = []
  const requests: { path: string; headers: Record<string, string> }[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      requests.push({ path: new URL(request.url).pathname, headers: Object.fromEntries(request.headers) })
      if (request.headers.get('content-type') !== 'application/x-protobuf') return new Response(null, { status: 415 })
      const body = new Uint8Array(await request.arrayBuffer())
      spans.push(...readSpans(request.headers.get('content-encoding') === 'gzip' ? Bun.gunzipSync(body) : body))
      return new Response(new Uint8Array(), { headers: { 'content-type': 'application/x-protobuf' } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, spans, requests, [Symbol.asyncDispose]: () => server.stop(true) }
}
