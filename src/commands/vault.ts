import { Command } from 'commander'
import { rotate } from '../accounts/vault/rotate'
import { renewSecrets } from '../tenancy/secrets'
import { requireConfirmation } from './confirmation'
import { answers, count } from './output'

const change = new Command('rotate')
  .description('Rotate the encryption key, while tenants are served')
  .option('--json', 'print JSON')
  .action(
    answers(
      async (_options: object, _command: Command) => {
        const done = await rotate()
        if (done.failed.length) process.exitCode = 1
        return done
      },
      ({ key, tenants, sealed, lost, failed }) =>
        [
          `Encrypted ${count(sealed, 'value')} of ${count(tenants, 'tenant')} with key ${key}.`,
          ...(lost
            ? [`${count(lost, 'value')} could not be decrypted with any key of this installation and stayed as before.`]
            : []),
          ...failed.map(({ tenant, error }) => `${tenant}: ${error}`),
          failed.length ? 'The old key stays. Run this again when that is repaired.' : 'The old key was removed.',
        ].join('\n'),
    ),
  )

const renew = new Command('new-keys')
  .description('Replace lost keys: everybody is signed out, and encrypted values are lost')
  .option('--yes', 'do not ask for confirmation')
  .option('--json', 'print JSON')
  .action(
    answers(
      async (options: { yes?: boolean }, command: Command) => {
        const question = 'Sign everybody out, and give up what was encrypted with the lost keys?'
        requireConfirmation(command, question, options)
        return renewSecrets()
      },
      ({ aside }) => `There are new keys now.${aside ? ` The old file is ${aside}.` : ''}`,
    ),
  )

export const vault = new Command('vault').description('Manage the encryption key').addCommand(change).addCommand(renew)
