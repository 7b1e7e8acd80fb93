import { storage } from '../tenancy/storage'

/** An action of a command: what it returns is printed, as JSON when `--json` asks for it, and the files are closed. */
export const answers =
  <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>, tell: (result: Result) => string) =>
  async (...args: Args) => {
    try {
      const result = await work(...args)
      // Commander hands the command itself over as the last argument.
      const { json } = (args.at(-1) as { optsWithGlobals(): { json?: boolean } }).optsWithGlobals()
      console.log(json ? JSON.stringify(result, null, 2) : tell(result))
    } finally {
      await storage.close()
    }
  }

/** Lines of columns, as wide as they need to be. */
export function table(rows: (string | number)[][]): string {
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
