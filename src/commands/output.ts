import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FileSink } from 'bun'
import { badRequest } from '../core/problem'
import { databases } from '../tenancy/databases'
import { WRITE_FAILURE_REASONS } from './failure'

/** Returns the action of a command: it prints the result of `run`, as JSON with `--json`, and closes the databases. */
export const runAndPrint =
  <Args extends unknown[], Result>(
    run: (...args: Args) => Promise<Result>,
    format: (result: Result, ...args: Args) => string,
  ) =>
  async (...args: Args) => {
    try {
      const result = await run(...args)
      // Commander passes the command itself as the last argument.
      const { json } = (args.at(-1) as { optsWithGlobals(): { json?: boolean } }).optsWithGlobals()
      console.log(json ? JSON.stringify(result, null, 2) : format(result, ...args))
    } finally {
      await databases.close()
    }
  }

const MAX_NAMED_FILES = 5

/** Returns a sentence about files whose content is missing, after a blank; an empty text when there are none. */
export function describeMissingFiles({ missing }: { missing: string[] }): string {
  if (!missing.length) return ''
  const names = missing.slice(0, MAX_NAMED_FILES).join(', ')
  const more = missing.length > MAX_NAMED_FILES ? ` and ${missing.length - MAX_NAMED_FILES} more` : ''
  return ` The contents of these files are missing or damaged: ${names}${more}.`
}

/** Returns a number with its noun, such as `1 tenant` or `2 tenants`. */
export const pluralize = (number: number, noun: string) =>
  `${number} ${number === 1 ? noun : `${noun.replace(/y$/, 'ie')}s`}`

/** Returns lines of aligned columns. */
export function formatTable(rows: (string | number)[][]): string {
  const widths = rows.reduce<number[]>(
    (longest, row) => row.map((cell, i) => Math.max(longest[i] ?? 0, `${cell}`.length)),
    [],
  )
  return rows
    .map((row) =>
      row
        .map((cell, i) => `${cell}`.padEnd(widths[i]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

type Texts = AsyncIterable<string> | Iterable<string>

/**
 * Writes a file atomically: an existing file stays complete until the new one is.
 * @throws 400 INVALID_INPUT when it cannot be written
 */
export async function writeFileAtomic(texts: Texts, file: string) {
  const draft = `${file}.${process.pid}.tmp`
  try {
    await writeTexts(texts, Bun.file(draft).writer())
    await rename(draft, file)
  } catch (error) {
    await rm(draft, { force: true })
    if (!(error instanceof Error && 'syscall' in error)) throw error
    badRequest({ path: '--out', message: explainWriteFailure(file, error) })
  }
}

function explainWriteFailure(file: string, { code }: Error & { code?: string }) {
  if (code === 'ENOENT') return `The folder "${dirname(file)}" does not exist.`
  return `"${file}" cannot be written: ${WRITE_FAILURE_REASONS[`${code}`] ?? code}.`
}

/** Writes texts one after the other, until the reader closes the pipe. */
export async function writeTexts(texts: Texts, sink: FileSink) {
  try {
    for await (const text of texts) {
      await sink.write(text)
      await sink.flush()
    }
    await sink.end()
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EPIPE') throw error
  }
}
