/** The formats of exports. The server writes CSV and NDJSON; JSON is made of the latter. */
export type ExportFormat = 'csv' | 'ndjson' | 'json'

type Format = {
  value: ExportFormat
  label: string
  description: string
  type: string
  /** The format that the server sends. */
  serverFormat: 'csv' | 'ndjson'
}

/** The formats as a person chooses them. */
export const EXPORT_FORMATS: readonly Format[] = [
  {
    ...{ value: 'csv', label: 'CSV', serverFormat: 'csv', type: 'text/csv' },
    description: 'For spreadsheets. Lists and objects are written as JSON.',
  },
  {
    ...{ value: 'ndjson', label: 'NDJSON', serverFormat: 'ndjson', type: 'application/x-ndjson' },
    description: 'A JSON object in each line. Exact, and can be imported again.',
  },
  {
    ...{ value: 'json', label: 'JSON', serverFormat: 'ndjson', type: 'application/json' },
    description: 'One list of objects.',
  },
]

const [LINE_FEED, QUOTE] = [10, 34]

/** Returns a function that counts the rows of pieces of a file. A quoted line break of CSV ends none. */
export function createRowCounter(format: ExportFormat): (piece: Uint8Array) => number {
  // The head of a CSV file is not a row.
  let [rows, isQuoted] = [format === 'csv' ? -1 : 0, false]
  return (piece) => {
    for (const byte of piece)
      if (byte === QUOTE && format === 'csv') isQuoted = !isQuoted
      else if (byte === LINE_FEED && !isQuoted) rows++
    return Math.max(0, rows)
  }
}

/** Returns a stream that makes one JSON list of NDJSON. */
export function toJsonList(): TransformStream<Uint8Array, Uint8Array<ArrayBuffer>> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  let [rest, isFirst] = ['', true]
  const write = (line: string) => {
    const entry = `${isFirst ? '' : ','}\n  ${line}`
    isFirst = false
    return entry
  }
  return new TransformStream({
    start: (controller) => controller.enqueue(encoder.encode('[')),
    transform: (piece, controller) => {
      const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
      rest = lines.pop() ?? ''
      if (lines.length) controller.enqueue(encoder.encode(lines.map(write).join('')))
    },
    flush: (controller) => controller.enqueue(encoder.encode(`${rest ? write(rest) : ''}\n]\n`)),
  })
}
