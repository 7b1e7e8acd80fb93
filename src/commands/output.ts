import { rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { FileSink } from 'bun'
import { badRequest } from '../core/problem'
import { databases } from '../tenancy/databases'
import { WRITE_FAILURE_REASONS } from './failure'

/** An action of a command: what it returns is printed, as JSON when `--json` asks for it, and the files are closed. */
export const runAndPrint =
  <Args extends unknown[], Result>(
    run: (...args: Args) => Promise<Result>,
    format: (result: Result, ...args: Args) => string,
  ) =>
  async (...args: Args) => {
    try {
      const result = await run(...args)
      // Commander hands the command itself over as the last argument.
      const { json } = (args.at(-1) as { optsWithGlobals(): { json?: boolean } }).optsWithGlobals()
      console.log(json ? JSON.stringify(result, null, 2) : format(result, ...args))
    } finally {
      await databases.close()
    }
  }

/** `1 tenant`, `2 tenants`. */
export const pluralize = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`

/** Lines of columns, as wide as they need to be. */
export function formatTable(rows: (string | number)[][]): string {
  const widths = rows.reduce<number[]>(
    (most, row) => row.map((cell, i) => Math.max(most[i] ?? 0, `${cell}`.length)),
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

/** Writes a file; what is there stays whole until all of the new one is. @throws 400 where it can't be written */
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

/** Writes one after the other, for as long as somebody reads. */
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
