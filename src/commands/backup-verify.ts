import { Command } from 'commander'
import { openTarget } from '../backups/targets'
import { type VerifiedTenant, verifyTarget } from '../backups/verify'
import { pluralize, runAndPrint } from './output'

/** Reads everything in a target of backups back. */
export const backupVerify = new Command('verify')
  .description('Read all backups in a target and verify their integrity; exits with 1 if any are damaged')
  .argument('<target>', 'a folder, or s3://bucket/prefix')
  .argument('[tenants...]', 'tenant IDs (default: all)')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (to: string, ids: string[], _: object, _command: Command) => {
        const tenants = await verifyTarget(openTarget(to), ids)
        const ok = tenants.some(({ backups }) => backups > 0) && tenants.every(({ problems }) => !problems.length)
        if (!ok) process.exitCode = 1
        return { ok, tenants }
      },
      ({ tenants }) => (tenants.length ? tenants.map(describe).join('\n') : 'PROBLEM No backups found.'),
    ),
  )

const describe = ({ tenant, backups, until, problems }: VerifiedTenant) =>
  [
    `${problems.length ? 'PROBLEM' : 'ok     '} ${tenant}: ${pluralize(backups, 'backup')}${until ? `, log until ${until}` : ''}`,
    ...problems.map((problem) => `        ${problem}`),
  ].join('\n')
