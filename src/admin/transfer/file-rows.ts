import Papa from 'papaparse'

const CHUNK_BYTES = 256 << 10
const TESTED_BYTES = 64 << 10

/** A row of a file with the number under which a spreadsheet or an editor shows it. */
export type FileRow = { row: number; values: Record<string, unknown> }

/** A file that can be read again and again: the names of its columns, and its rows, piece by piece. */
export type RowFile = {
  file: File
  isCsv: boolean
  columns: string[]
  /** The first rows. */
  sample: FileRow[]
  /** How a CSV file is read. */
  dialect?: CsvDialect
}

/** The encoding of a CSV file and what separates its cells. */
export type CsvDialect = { encoding: string; separator: string }

const SAMPLE_ROWS = 500

/** Files of older spreadsheets are not UTF-8. */
async function detectEncoding(file: File): Promise<string> {
  try {
    // The last character may be cut.
    new TextDecoder('utf-8', { fatal: true }).decode(await file.slice(0, TESTED_BYTES).arrayBuffer(), { stream: true })
    return 'utf-8'
  } catch {
    return 'windows-1252'
  }
}

/** A number after a name makes it unique, as spreadsheets do. */
function toUniqueNames(head: string[]): string[] {
  const names: string[] = []
  for (const [n, cell] of head.entries()) {
    const name = cell.trim() || `Column ${n + 1}`
    let unique = name
    for (let at = 2; names.includes(unique); at++) unique = `${name} ${at}`
    names.push(unique)
  }
  return names
}

/** Returns the separator that a first line such as `sep=;` names, as some spreadsheets write it. */
const readNamedSeparator = async (file: File) =>
  /^(?:\xEF\xBB\xBF)?"?sep=(.)"?\r?$/im.exec((await file.slice(0, 32).text()).split('\n', 1)[0] ?? '')?.[1]

type Piece = { rows: string[][]; separator: string; parser: Papa.Parser }

type FilePiece = { columns: string[]; rows: FileRow[]; bytes: number; dialect?: CsvDialect }

/** Yields the rows of a CSV file as it is read; the reading waits for whoever takes them. */
async function* readCsv(file: File, chosenSeparator?: string): AsyncGenerator<FilePiece> {
  const encoding = await detectEncoding(file)
  const named = await readNamedSeparator(file)
  let next = Promise.withResolvers<Piece | undefined>()
  let bytes = 0
  Papa.parse<string[]>(file, {
    encoding,
    delimiter: chosenSeparator ?? named ?? '',
    chunkSize: CHUNK_BYTES,
    chunk: ({ data, meta }, parser) => {
      parser.pause()
      bytes = meta.cursor
      next.resolve({ rows: data, separator: meta.delimiter, parser })
    },
    complete: () => next.resolve(undefined),
    error: (error) => next.reject(error),
  })
  let [columns, number]: [string[] | undefined, number] = [undefined, 0]
  for (;;) {
    const piece = await next.promise
    if (!piece) return
    next = Promise.withResolvers()
    const rows: FileRow[] = []
    for (const cells of piece.rows) {
      number++
      if (named && number === 1) continue
      if (cells.every((cell) => cell.trim() === '')) continue
      if (columns) rows.push({ row: number, values: toRecord(columns, cells) })
      else columns = toUniqueNames(cells.map((cell, n) => (n ? cell : cell.replace(/^\uFEFF/, ''))))
    }
    let isTaken = false
    try {
      yield { columns: columns ?? [], rows, bytes, dialect: { encoding, separator: piece.separator } }
      isTaken = true
    } finally {
      if (isTaken) piece.parser.resume()
      else piece.parser.abort()
    }
  }
}

const toRecord = (columns: string[], cells: string[]) =>
  Object.fromEntries(columns.map((column, n) => [column, cells[n] ?? '']))

/** An export without `$flat` has the fields of an entity under `metadata`. */
const flatten = ({ metadata, ...rest }: Record<string, unknown>): Record<string, unknown> =>
  metadata && typeof metadata === 'object'
    ? { ...rest, ...metadata }
    : { ...rest, ...(metadata !== undefined && { metadata }) }

function parseLine(line: string, row: number): FileRow {
  try {
    const value: unknown = JSON.parse(line)
    if (value && typeof value === 'object' && !Array.isArray(value)) return { row, values: flatten(value as never) }
  } catch {
    // The error below says which line it is.
  }
  throw new Error(`Line ${row} is not a JSON object.`)
}

async function* readNdjson(file: File): AsyncGenerator<FilePiece> {
  const reader = file.stream().getReader()
  const decoder = new TextDecoder()
  let [rest, number, bytes] = ['', 0, 0]
  const columns = new Set<string>()
  for (let isDone = false; !isDone; ) {
    const { done, value } = await reader.read()
    isDone = done
    bytes += value?.byteLength ?? 0
    const lines = (rest + decoder.decode(value, { stream: !done })).split('\n')
    rest = done ? '' : (lines.pop() ?? '')
    const rows = lines.flatMap((line) => {
      number++
      return line.trim() ? parseLine(line, number) : []
    })
    for (const { values } of rows) for (const key of Object.keys(values)) columns.add(key)
    yield { columns: [...columns], rows, bytes }
  }
}

/** Yields the rows of a file, and how many bytes were read. @throws Error for a line that cannot be read */
export const readRows = ({ file, isCsv, dialect }: Pick<RowFile, 'file' | 'isCsv' | 'dialect'>) =>
  isCsv ? readCsv(file, dialect?.separator) : readNdjson(file)

/** Returns how many rows a file has. It is read to its end. */
export async function countFileRows(file: RowFile): Promise<number> {
  let count = 0
  for await (const { rows } of readRows(file)) count += rows.length
  return count
}

/** Opens a CSV or NDJSON file. Without a `separator`, the file tells what separates its cells. @throws Error when it has no rows or cannot be read */
export async function openRowFile(file: File, separator?: string): Promise<RowFile> {
  const isCsv = !/\.(ndjson|jsonl|json)$/i.test(file.name)
  const sample: FileRow[] = []
  let [columns, dialect]: [string[], CsvDialect | undefined] = [[], undefined]
  const chosen = separator === undefined ? undefined : { encoding: '', separator }
  for await (const piece of readRows({ file, isCsv, dialect: chosen })) {
    columns = piece.columns
    dialect = piece.dialect
    sample.push(...piece.rows.slice(0, SAMPLE_ROWS - sample.length))
    if (sample.length >= SAMPLE_ROWS) break
  }
  if (!sample.length) throw new Error(isCsv ? 'The file has no rows beneath its first line.' : 'The file has no lines.')
  return { file, isCsv, columns, sample, dialect }
}
