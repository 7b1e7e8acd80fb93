import { rename, rm } from 'node:fs/promises'
import { Command } from 'commander'
import { configuredEncryption, readPassphraseFile } from '../backups/encryption'
import { writePrivateFile } from '../backups/private-file'
import { exportTenant, importTenant } from '../backups/tenant-export'
import { badRequest } from '../core/problem'
import { describeMissingFiles, pluralize, runAndPrint } from './output'
import { showProgress } from './progress'

type ExportOptions = { to: string; passphraseFile?: string }
type ImportOptions = { as: string; passphraseFile?: string }

const passphraseOption = [
  '--passphrase-file <file>',
  'file with the passphrase in its first line (default: ATOLL_BACKUP_PASSPHRASE)',
] as const

const readPassphrase = ({ passphraseFile }: { passphraseFile?: string }) =>
  passphraseFile ? readPassphraseFile(passphraseFile) : configuredEncryption().passphrase

/** Writes a tenant into a file that an installation with any engine can import. */
export const exportCommand = new Command('export')
  .description('Export a tenant to a file that any installation can import')
  .argument('<tenant>', 'tenant ID')
  .requiredOption('--to <file>', 'output file')
  .option(...passphraseOption)
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (id: string, options: ExportOptions, _command: Command) => {
        await import('../app') // the store of the contents of files
        using progress = showProgress()
        const draft = `${options.to}.${process.pid}.partial`
        const write = async (content: ReadableStream<Uint8Array>) => {
          await writePrivateFile(content, draft)
          await rename(draft, options.to)
        }
        const onProgress = (step: string, done?: number) => progress.update(id, step, done)
        try {
          const summary = await exportTenant(id, readPassphrase(options), write, { onProgress })
          return { ...summary, file: options.to }
        } finally {
          await rm(draft, { force: true })
        }
      },
      ({ tenant, rows, files, omittedSecrets, file }) =>
        `Exported the tenant "${tenant}" to ${file}: ${pluralize(rows, 'row')}, ${pluralize(files.count, 'content')} of files.` +
        describeMissingFiles(files) +
        (omittedSecrets ? ` ${pluralize(omittedSecrets, 'secret')} omitted; use a passphrase to include secrets.` : ''),
    ),
  )

/** Creates a tenant from a file of `atoll export`. */
export const importCommand = new Command('import')
  .description('Create a tenant from an exported file')
  .argument('<file>', 'the file')
  .requiredOption('--as <tenant>', 'ID of the new tenant')
  .option(...passphraseOption)
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (path: string, options: ImportOptions, _command: Command) => {
        await import('../app') // areas name the tables of their credentials
        const file = Bun.file(path)
        if (!(await file.exists())) badRequest({ path: 'file', message: `The file "${path}" does not exist.` })
        return importTenant(file.stream(), options.as, readPassphrase(options))
      },
      ({ tenant, rows, files, ms }) =>
        `Created the tenant "${tenant}": ${pluralize(rows, 'row')}, ${pluralize(files.count, 'content')} of files in ${ms} ms.` +
        describeMissingFiles(files),
    ),
  )
