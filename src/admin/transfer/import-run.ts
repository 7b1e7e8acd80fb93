import { observable } from '../api/observable'
import { queryClient } from '../api/queries'
import { startWork } from '../tray/work'
import { type Import, type ImportReport, importRows } from './entity-import'
import { downloadFile } from './file-download'

/** The last import of this tab: its report grows while it runs. */
export type ImportRun = {
  request: Import
  report: ImportReport
  isRunning: boolean
  /** Why it ended early. */
  failure?: string
}

/** The last import of this tab, or undefined. */
export const lastImport = observable<ImportRun | undefined>(undefined)

const describeResult = ({ imported, failed }: ImportReport, isDryRun: boolean) =>
  [
    `${imported.toLocaleString()} ${imported === 1 ? 'row' : 'rows'} ${isDryRun ? 'can be imported' : 'imported'}`,
    failed ? `${failed.toLocaleString()} refused` : '',
  ]
    .filter(Boolean)
    .join(', ')

/** Imports a file, or only checks it; the tray shows the progress. */
export async function startImport(request: Import, total: number | undefined) {
  const { blueprint, isDryRun, file } = request
  const report: ImportReport = { imported: 0, failed: 0, refused: [] }
  lastImport.set({ request, report, isRunning: true })
  const { state, result } = await startWork({
    ...{ label: `${isDryRun ? 'Check' : 'Import'} of ${file.file.name}`, unit: 'rows', total },
    path: `/data/${blueprint.key}/all/import`,
    run: async (control) => {
      await importRows(request, report, control)
      return `${describeResult(report, isDryRun)}.`
    },
  })
  lastImport.set({ request, report, isRunning: false, failure: state === 'done' ? undefined : result })
  if (!isDryRun) await queryClient.invalidateQueries({ queryKey: ['entities', blueprint.key] })
}

const quoteCell = (value: unknown) => {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Saves the refused rows as a file with their problems. Once they are corrected, the file can be imported as it is. */
export function downloadRefusedRows({ request: { file }, report: { refused } }: ImportRun) {
  const name = `refused-${file.file.name.replace(/\.\w+$/, '')}`
  if (!file.isCsv)
    return downloadFile(
      `${name}.ndjson`,
      [refused.map(({ values }) => `${JSON.stringify(values)}\n`).join('')],
      'application/x-ndjson',
    )
  const head = [...file.columns, 'problem'].map(quoteCell).join(',')
  const lines = refused.map(({ values, message }) =>
    [...file.columns.map((column) => values[column]), message].map(quoteCell).join(','),
  )
  downloadFile(`${name}.csv`, [`${[head, ...lines].join('\r\n')}\r\n`], 'text/csv')
}
