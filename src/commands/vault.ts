import { Command } from 'commander'
import { rotateVaultKey } from '../platform/vault/key-rotation'
import { replaceLostSecrets } from '../tenancy/installation-keys'
import { requireConfirmation } from './confirmation'
import { pluralize, runAndPrint } from './output'

const rotateCommand = new Command('rotate')
  .description('Rotate the encryption key without downtime')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (_options: object, _command: Command) => {
        const result = await rotateVaultKey()
        if (result.failed.length) process.exitCode = 1
        return result
      },
      ({ key, tenants, sealed, lost, failed }) =>
        [
          `Encrypted ${pluralize(sealed, 'value')} of ${pluralize(tenants, 'tenant')} with key ${key}.`,
          ...(lost
            ? [
                `${pluralize(lost, 'value')} could not be decrypted with any key of this installation and were not changed.`,
              ]
            : []),
          ...failed.map(({ tenant, error }) => `${tenant}: ${error}`),
          failed.length
            ? 'The old key was retained. Fix the failed tenants, then run this command again.'
            : 'The old key was deleted.',
        ].join('\n'),
    ),
  )

const newKeysCommand = new Command('new-keys')
  .description('Replace lost keys (invalidates access tokens and discards encrypted values)')
  .option('--yes', 'skip the confirmation')
  .option('--json', 'print JSON')
  .action(
    runAndPrint(
      async (options: { yes?: boolean }, command: Command) => {
        const question = 'Invalidate all access tokens and discard the values encrypted with the lost keys?'
        requireConfirmation(command, question, options)
        return replaceLostSecrets()
      },
      ({ aside }) => `Created new keys.${aside ? ` The old file is ${aside}.` : ''}`,
    ),
  )

export const vault = new Command('vault')
  .description('Manage the encryption key')
  .addCommand(rotateCommand)
  .addCommand(newKeysCommand)
